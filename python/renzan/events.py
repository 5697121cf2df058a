"""Metrics for TensorBoard: `tensorboard --logdir DIRECTORY` shows them."""

from __future__ import annotations

import os
import sys
from ctypes import byref, c_char_p, c_double, c_void_p
from typing import Mapping, SupportsFloat

from renzan import _world
from renzan._native import library
from renzan.communicator import place_from_environment
from renzan.errors import UsageError


class EventLog:
    """An event file in a directory. Each call of log() is in the file when it returns. For one
    thread at a time."""

    def __init__(self, directory: str | os.PathLike[str] | None = None, next_step: int = 0,
                 all_workers: bool = False):
        """`directory` is created if necessary; default: the run directory, RENZAN_RUN_DIR.
        `next_step`: the first step of a resumed run; this step and later ones in earlier files of
        the directory are then ignored. Only worker 0 writes, unless `all_workers`."""
        directory = directory if directory is not None else os.environ.get("RENZAN_RUN_DIR")
        if not directory:
            raise UsageError("RENZAN_RUN_DIR is not set, so there is no run directory for metrics: "
                             "set it, or use renzan.EventLog(DIRECTORY)")
        self._handle = c_void_p()
        self._writes = all_workers or _rank() == 0
        if self._writes:
            library.renzan_events_create(os.fsencode(directory), next_step, byref(self._handle))

    @property
    def path(self) -> str | None:
        """The file; None if this worker writes none."""
        if not self._handle:
            return None
        return os.fsdecode(library.renzan_events_path(self._handle))

    def log(self, step: int, scalars: Mapping[str, SupportsFloat]) -> None:
        """Adds the numbers of a step, by tag: {"train/loss": 0.3}. Tags with the same beginning
        are shown together. A number may be a tensor or array of one element."""
        numbers = {tag: float(value) for tag, value in scalars.items()}
        if not self._writes:
            return
        if not self._handle:
            raise UsageError("this event log is closed")
        count = len(numbers)
        library.renzan_events_add(self._handle, step,
                                  (c_char_p * count)(*[tag.encode() for tag in numbers]),
                                  (c_double * count)(*numbers.values()), count)

    def close(self) -> None:
        """Closes the file."""
        handle, self._handle = self._handle, c_void_p()
        library.renzan_events_destroy(handle)

    def __enter__(self) -> EventLog:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()


_run_log: EventLog | None = None
_said_nowhere = False


def log(step: int, scalars: Mapping[str, SupportsFloat]) -> None:
    """Adds the numbers of a step to the event file of this run in RENZAN_RUN_DIR, by tag:
    renzan.log(step, {"train/loss": loss, "eval/accuracy": 0.9}). Every worker may call it; worker 0
    writes. When a run resumes, steps that are logged again replace the earlier ones. Without
    RENZAN_RUN_DIR nothing is written, and one warning says so.
    """
    global _run_log, _said_nowhere
    if _run_log is None and not os.environ.get("RENZAN_RUN_DIR"):
        if not _said_nowhere and _rank() == 0:
            print("renzan: RENZAN_RUN_DIR is not set: metrics are not kept", file=sys.stderr,
                  flush=True)
        _said_nowhere = True
        return
    if _run_log is None:
        _run_log = EventLog(next_step=step)
    _run_log.log(step, scalars)


def _rank() -> int:
    if _world.is_initialized():
        return _world.init().rank
    return int(place_from_environment().rank)
