"""status.json in RENZAN_RUN_DIR, which tells a scheduler what a job does (docs/cluster.md)."""

from __future__ import annotations

import os
import sys
import threading
import time
from ctypes import byref

from renzan._native import RunStatus, library
from renzan.errors import Error

_SECONDS = 1.0


class Status:
    """Written by worker 0, by its own thread and at most once a second, except for changes of the
    state. Nothing happens without RENZAN_RUN_DIR."""

    def __init__(self) -> None:
        self.state = ""
        self._rank: int | None = None
        self._step = self._steps = 0
        self._checkpoint = (-1, 0.0)
        self._first: tuple[int, float, float] | None = None  # step, monotonic and Unix seconds
        self._rate = 0.0  # steps per second
        self._batch_size = 0
        self._written_at = -_SECONDS
        self._thread: threading.Thread | None = None
        self._failed = False

    def begin(self, rank: int) -> None:
        """Called by renzan.torch.run before the program does anything."""
        self._rank = rank
        self.change("starting")

    def change(self, state: str) -> None:
        """Sets a new state, which is on disk when this returns."""
        if self._rank is None:
            return
        self.state = state
        if self._path:
            if self._thread is not None:
                self._thread.join()
            self._write(self._path, self._now())

    def running(self, step: int, steps: int, batch_size: int) -> None:
        """After a step."""
        if self._rank is None:
            return
        now = time.monotonic()
        self.state, self._step, self._steps, self._batch_size = "running", step, steps, batch_size
        if self._first is None:
            self._first = (step, now, time.time())
        elif now > self._first[1]:
            self._rate = (step - self._first[0]) / (now - self._first[1])
        if (not self._path or now - self._written_at < _SECONDS
                or (self._thread is not None and self._thread.is_alive())):
            return
        self._written_at = now
        # A slow disk must not stop the training.
        self._thread = threading.Thread(target=self._write, args=(self._path, self._now()))
        self._thread.start()

    def saved(self, step: int, unix_seconds: float) -> None:
        """Records the last checkpoint."""
        self._checkpoint = (step, unix_seconds)
        self._step = max(self._step, step)

    @property
    def _path(self) -> str:
        directory = os.environ.get("RENZAN_RUN_DIR", "")
        return os.path.join(directory, "status.json") if directory and self._rank == 0 else ""

    def _now(self) -> RunStatus:
        left = self._steps - self._step
        return RunStatus(self.state.encode(), self._step, max(self._steps, self._step),
                         self._rate * self._batch_size,
                         max(0.0, left / self._rate) if self._rate > 0 and self._steps > 0 else -1.0,
                         *self._checkpoint, self._first[2] if self._first else 0.0)

    def _write(self, path: str, content: RunStatus) -> None:
        try:
            library.renzan_write_run_status(os.fsencode(path), byref(content))
        except Error as problem:
            if not self._failed:
                print(f"renzan: warning: {problem}", file=sys.stderr, flush=True)
            self._failed = True


status = Status()
"""The status of this process."""
