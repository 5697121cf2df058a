"""An exception of Renzan that nobody catches ends the process by its own exit status.

A launcher restarts a run whose worker died (69), but not one with a wrong argument (64); Python
ends with 1 for both.
"""

from __future__ import annotations

import sys

from renzan.errors import Error, Stopped

_previous = None


def end_by_exit_status() -> None:
    """From now on in this process. Tracebacks stay, but for a stop on request."""
    global _previous
    if _previous is None:
        _previous, sys.excepthook = sys.excepthook, _report


def _report(kind, value, traceback) -> None:
    if isinstance(value, Stopped):
        print(f"renzan: {value}", file=sys.stderr, flush=True)
    else:
        _previous(kind, value, traceback)
    if isinstance(value, Error):
        raise SystemExit(value.exit_status)
