"""Operations between the workers of a process set, carried out one after another on one thread.

Before an operation the workers tell each other, in a message of fixed size, what they are about to
do. So a disagreement is an error on all of them, and a worker that has joined (join()) learns which
reductions it takes part in with zeros.
"""

from __future__ import annotations

import hashlib
import queue
import struct
import threading
from typing import Any, NamedTuple, Protocol, Sequence

import numpy as np
import torch

from renzan.communicator import Communicator
from renzan.errors import Error, PeerError, UsageError
from renzan.horovod.exceptions import HorovodInternalError
from renzan.horovod.torch import _exchanges

# kind, code of the type, elements, rows, hash of the text, its beginning
_HEADER = struct.Struct("<BBQQ16s221s")
_JOIN, _WITH_ZEROS, _ALL_NEEDED = 0, 1, 2


class Header(NamedTuple):
    """What a worker announces before an operation."""

    kind: int
    dtype: int
    count: int  # type: ignore[assignment]  # not tuple.count()
    rows: int
    hash: bytes
    text: str

    def pack(self) -> np.ndarray:
        """Its bytes, uint8 [_HEADER.size]."""
        text = self.text.encode()[:221]
        return np.frombuffer(_HEADER.pack(*self[:5], text), np.uint8)

    @classmethod
    def unpack(cls, message: np.ndarray) -> Header:
        """The header in these bytes."""
        *fields, text = _HEADER.unpack(message.tobytes())
        return cls._make([*fields, text.rstrip(b"\0").decode(errors="replace")])


class Handle(Protocol):
    """What poll() and synchronize() take."""

    def poll(self) -> bool:
        """Whether it is done."""

    def wait(self) -> Any:
        """Its result."""


class Operation:
    """One operation, and a handle for it."""

    def __init__(self, text: str, rows: int = 0, zeros: tuple[int, int] | None = None):
        """`text` describes everything that workers must agree on. `rows`: a number that each tells
        the others. `zeros`: the type code and the number of elements of a sum that joined workers
        take part in with zeros."""
        self._done = threading.Event()
        self._error: Error | None = None
        kind = _ALL_NEEDED if zeros is None else _WITH_ZEROS
        code, count = zeros or (0, 0)
        self.header = Header(kind, code, count, rows,
                             hashlib.blake2b(text.encode(), digest_size=16).digest(), text)

    def carry_out(self, comm: Communicator, rows: list[int]) -> None:
        """Makes the exchange. Runs on the group's thread."""

    def result(self) -> Any:
        """What synchronize() returns. Runs on the waiting thread."""

    def finish(self, error: Error | None = None) -> None:
        """Marks it as done or failed."""
        self._error = error
        self._done.set()

    def poll(self) -> bool:
        """Whether it is done."""
        return self._done.is_set()

    def wait(self) -> Any:
        """Its result."""
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self.result()


class Several(Operation):
    """A handle for several operations."""

    def __init__(self, operations: Sequence[Handle]):
        """`operations` must have been submitted."""
        self._operations = operations

    def poll(self) -> bool:
        """Whether all are done."""
        return all(operation.poll() for operation in self._operations)

    def wait(self) -> list[Any]:
        """Their results."""
        return [operation.wait() for operation in self._operations]


class Join(Operation):
    """Lasts until all workers have joined."""

    def __init__(self) -> None:
        super().__init__("join()")
        self.header = self.header._replace(kind=_JOIN)
        self.last = -1

    def result(self) -> int:
        """The worker that joined last."""
        return self.last


class Group:
    """The workers of a communicator, and the thread that carries out their operations."""

    def __init__(self, comm: Communicator):
        """Starts the thread."""
        self.comm = comm
        self.rank, self.size = comm.rank, comm.world_size
        self._joined: list[int] = []  # ranks, in the order in which they joined
        self._queue: queue.SimpleQueue[Operation | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="renzan.horovod", daemon=True)
        self._thread.start()

    def submit(self, operation: Operation) -> Operation:
        """Carries it out after all earlier ones."""
        if self._closed:
            raise UsageError("this process set has been closed")
        self._queue.put(operation)
        return operation

    def close(self) -> None:
        """Waits for what has been submitted, and ends the thread."""
        self._closed = True
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        torch.set_grad_enabled(False)  # for this thread
        while True:
            operation = self._queue.get()
            if operation is None:
                return
            try:
                self._carry_out(operation)
                operation.finish()
            except PeerError as error:
                operation.finish(HorovodInternalError(f"{operation.header.text}: {error}"))
            except Error as error:
                operation.finish(error)
            except Exception as error:  # pylint: disable=broad-except
                operation.finish(Error(f"{operation.header.text}: {error!r}"))

    def _carry_out(self, operation: Operation) -> None:
        while True:
            headers = [Header.unpack(m) for m in self.comm.all_gather(operation.header.pack())]
            self._note_joins(headers)
            common = self._agree(headers)
            if common is None:
                assert isinstance(operation, Join)
                operation.last = self._joined[-1]
                self._joined.clear()
                return
            if not isinstance(operation, Join):
                operation.carry_out(self.comm, [header.rows for header in headers])
                return
            if common.count > 0:
                _exchanges.add_zeros(self.comm, common.dtype, common.count)

    def _note_joins(self, headers: list[Header]) -> None:
        for rank, header in enumerate(headers):
            if header.kind == _JOIN and rank not in self._joined:
                self._joined.append(rank)

    def _agree(self, headers: list[Header]) -> Header | None:
        """The header of those that have not joined; None if all have."""
        active = [rank for rank, header in enumerate(headers) if header.kind != _JOIN]
        if not active:
            return None
        first = active[0]
        for rank in active[1:]:
            if headers[rank].hash != headers[first].hash:
                raise UsageError(
                    f"worker {first} submits {headers[first].text}, but worker {rank} submits "
                    f"{headers[rank].text}: every worker must submit the same operations in the "
                    "same order")
        if len(active) < len(headers) and headers[first].kind == _ALL_NEEDED:
            raise UsageError(
                f"worker {first} submits {headers[first].text}, but worker {self._joined[0]} has "
                "joined: only Sum and Average of allreduce, and barrier, are possible then")
        return headers[first]
