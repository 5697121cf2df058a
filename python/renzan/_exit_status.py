"""An uncaught exception of Renzan ends the process with its own exit status.

A launcher restarts a run whose worker died (69), but not one with a wrong argument (64); Python
ends with 1 for both.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Callable

from renzan.errors import Error, Stopped

_previous: Callable[..., Any] | None = None


def end_by_exit_status() -> None:
    """Applies from now on in this process. Tracebacks stay, except for a stop on request."""
    global _previous
    if _previous is None:
        _previous, sys.excepthook = sys.excepthook, _report


def _report(kind: type[BaseException], value: BaseException,
            traceback: TracebackType | None) -> None:
    if isinstance(value, Stopped):
        print(f"renzan: {value}", file=sys.stderr, flush=True)
    else:
        assert _previous is not None
        _previous(kind, value, traceback)
    if isinstance(value, Error):
        raise SystemExit(value.exit_status)
