"""Operations of a process group in flight: one thread per queue carries them out in order."""

from __future__ import annotations

import queue
import threading
from collections import OrderedDict
from datetime import timedelta
from typing import Any, Callable, TypeVar

import torch
import torch.distributed as dist
from torch.autograd import Variable

from renzan.errors import Error, PeerError

# PyTorch before 2.8 does not keep a Python Work alive that C++ code waits for:
# DistributedDataParallel waits for all operations of a backward pass at its end.
_MOST_UNCLAIMED = 256

_Kind = TypeVar("_Kind", bound=Error)


class Work(dist.Work):
    """torch.distributed.Work: an operation that runs, or waits for its turn."""

    def __init__(self, name: str, body: Callable[[], Any]):
        """`name` appears in error messages. body() carries it out; result() returns what it
        returns."""
        super().__init__()
        self._name = name
        self._body: Callable[[], Any] | None = body
        self._done = threading.Event()
        self._lock = threading.Lock()  # guards the future
        self._future: torch.futures.Future[Any] | None = None
        self._error: Exception | None = None
        self._result: Any = None
        self._claim: Callable[[], Any] = lambda: None

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Returns once it has ended; raises its error. No time limit but the group's by default."""
        self._claim()
        seconds = timeout.total_seconds()
        if not self._done.wait(seconds if seconds > 0 else None):
            raise PeerError(f"{self._name}: has not ended within {seconds:g} s")
        if self._error is not None:
            raise self._error
        return True

    synchronize = wait

    def is_completed(self) -> bool:
        """Whether it has ended, even with an error."""
        return self._done.is_set()

    def is_success(self) -> bool:
        """Whether it has ended without an error."""
        return self._done.is_set() and self._error is None

    def exception(self) -> Exception | None:
        """Its error."""
        return self._error

    def result(self) -> Any:
        """The tensors that it has written."""
        self.wait()
        return self._result

    def source_rank(self) -> int:
        """No operation receives from an arbitrary worker."""
        return -1

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future[Any]:
        """Completed, with result(), by the thread that carries the operation out. If a backward
        pass calls this, it raises the operation's error; DistributedDataParallel would turn it into
        a RuntimeError with its text."""
        self._claim()
        try:
            Variable._execution_engine.queue_callback(self.wait)
        except RuntimeError:
            pass  # not within a backward pass
        with self._lock:
            if self._future is None:
                self._future = torch.futures.Future()
                if not self._done.is_set():
                    return self._future
            else:
                return self._future
        self._complete()
        return self._future

    def _run(self, lost: PeerError | None) -> PeerError | None:
        """Carries it out, unless a worker is lost. Returns the error that says that one is lost."""
        try:
            if lost is not None:
                raise lost
            assert self._body is not None
            self._result = self._body()
        except PeerError as error:
            lost = lost or _with_name(self._name, error)
            self._error = lost
        except Exception as error:  # whatever it is, the waiting thread gets it
            self._error = _with_name(self._name, error) if isinstance(error, Error) else error
        self._body = None
        with self._lock:
            self._done.set()
            asked = self._future is not None
        if asked:
            self._complete()
        return lost

    def _complete(self) -> None:
        assert self._future is not None
        if self._error is not None:
            self._future.set_exception(self._error)
        else:
            self._future.set_result(self._result)


class Worker:
    """Carries out works in their order, on a thread of its own. Thread-safe."""

    def __init__(self, name: str, end: Callable[[], None]):
        """The thread calls `end` after the last work."""
        self._queue: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._unclaimed: OrderedDict[int, Work] = OrderedDict()
        self._thread = threading.Thread(target=_carry_out, args=(self._queue, end), name=name,
                                        daemon=True)
        self._thread.start()

    def submit(self, work: Work) -> Work:
        """Returns `work`, which runs after all earlier ones."""
        unclaimed, key = self._unclaimed, id(work)
        unclaimed[key] = work
        work._claim = lambda: unclaimed.pop(key, None)
        if len(unclaimed) > _MOST_UNCLAIMED:
            unclaimed.popitem(last=False)
        self._queue.put(work)
        return work

    def close(self) -> None:
        """Returns once all works, and the thread, have ended."""
        self._unclaimed.clear()
        self._queue.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()


def _carry_out(works: queue.SimpleQueue[Work | None], end: Callable[[], None]) -> None:
    # This holds no reference to the process group, which can therefore end meanwhile.
    lost = None
    try:
        while True:
            work = works.get()
            if work is None:
                return
            lost = work._run(lost)
            del work
    finally:
        end()


def _with_name(name: str, error: _Kind) -> _Kind:
    named = type(error)(f"{name}: {error}", error.exit_status)
    named.__cause__ = error.__cause__
    return named
