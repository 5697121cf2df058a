"""Turns signals to a training program into requests, which it handles between two steps.

SIGTERM, SIGINT and SIGHUP ask it to stop, SIGUSR1 to save; a second SIGINT (Ctrl-C) kills it. A
separate thread counts them, so that they count even while the main thread waits in a library.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
from types import FrameType

from renzan._requests import requests

_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_ALL = (*_STOPS, signal.SIGUSR1)
_serving = False
_mask: set[int] = set()  # signals, before a fork


def serve_signals() -> None:
    """Applies from now on, for the rest of the process. Call it from the main thread."""
    global _serving
    if _serving:
        return
    _serving = True
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in _ALL:
        # Unless nohup has set it to be ignored.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _nothing)
    threading.Thread(target=_count, args=(reader,), daemon=True, name="renzan signals").start()
    # While Python ends it restores the default action, which kills; the work is already done.
    atexit.register(_ignore)
    # Signals are blocked during a fork, so that none counts for this process before _in_child has
    # run.
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)


def _nothing(number: int, frame: FrameType | None) -> None:
    """Does nothing: all that matters is that Python writes the signal to the pipe."""


def _ignore() -> None:
    for number in _ALL:
        signal.signal(number, signal.SIG_IGN)


def _count(reader: int) -> None:
    interrupted = False
    while True:
        for number in os.read(reader, 64):
            if number == signal.SIGINT and interrupted:
                os.kill(os.getpid(), signal.SIGKILL)
            interrupted = interrupted or number == signal.SIGINT
            if number in _STOPS:
                requests.stops += 1
            elif number == signal.SIGUSR1:
                requests.checkpoints += 1


def _before_fork() -> None:
    global _mask
    _mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ALL)


def _after_fork() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _mask)


def _in_child() -> None:
    """Called in a process that this one forks (to load data, say): launchers signal the whole
    group, but the data that it loads is needed for the last step. Only its parent may end it."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, set(_ALL) - {signal.SIGTERM})
    threading.Thread(target=_await_parent, daemon=True).start()


def _await_parent() -> None:
    while signal.sigwaitinfo([signal.SIGTERM]).si_pid not in (os.getppid(), os.getpid()):
        pass
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    os.kill(os.getpid(), signal.SIGTERM)
