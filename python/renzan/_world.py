"""The communicator of all workers, one per process."""

from __future__ import annotations

import atexit
import sys

from renzan.communicator import Communicator
from renzan.errors import UsageError

_world: Communicator | None = None


def init(backend: str = "auto", timeout: float = 300.0, threads: int = 1) -> Communicator:
    """Joins the workers that a launcher started, and returns their communicator (see Communicator
    for the arguments). Later calls return the same one."""
    global _world
    if _world is None:
        _world = Communicator(backend, timeout, threads)
        atexit.register(_leave_at_exit)
    return _world


def world() -> Communicator:
    """The communicator of init()."""
    if _world is None:
        raise UsageError("call renzan.init() first")
    return _world


def is_initialized() -> bool:
    """Whether init() has been called."""
    return _world is not None


def finalize() -> None:
    """Leaves the workers. init() may be called again, but over MPI only before finalize()."""
    global _world
    if _world is not None:
        _world.close()
        _world = None


def _leave_at_exit() -> None:
    # After an error others may wait for this worker: they must notice, so do not leave in order.
    if not hasattr(sys, "last_type"):
        finalize()
