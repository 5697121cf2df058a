"""Sums over virtual workers: the same bits on any number of workers."""

from __future__ import annotations

import operator
from ctypes import byref, c_int, c_void_p
from typing import Sequence

from renzan._native import Part, library
from renzan.communicator import DTYPES, Communicator
from renzan.errors import ConfigError, UsageError

__all__ = ["Parts", "Reduction", "virtual_worker_range"]


def virtual_worker_range(virtual_workers: int, world_size: int, rank: int) -> range:
    """The virtual workers that a worker computes: contiguous, for 1 to `virtual_workers`
    workers."""
    try:
        virtual_workers = operator.index(virtual_workers)
    except TypeError:
        raise ConfigError(f"virtual_workers={virtual_workers!r}: a whole number is "
                          "needed") from None
    begin, end = c_int(), c_int()
    library.renzan_virtual_worker_range(virtual_workers, world_size, rank, byref(begin), byref(end))
    return range(begin.value, end.value)


class Parts:
    """An array in pieces, each at its own address: pieces[i].data, None where there is none.

    Made once: only the addresses change from step to step.
    """

    def __init__(self, pieces: Sequence[tuple[int, str]], addresses: Sequence[int | None] = ()):
        """`pieces`: (number of elements, name of the type). `addresses` may be set later."""
        self.array = (Part * len(pieces))(*[Part(None, count, DTYPES[dtype])
                                            for count, dtype in pieces])
        self.pieces = [self.array[i] for i in range(len(pieces))]
        for piece, address in zip(self.pieces, addresses):
            piece.data = address


class Reduction:
    """The sum of one array per virtual worker, in the order of a fixed balanced binary tree.

    The arrays of this worker's virtual workers are added one after another, in their order; then
    start(), continue_() and finish() exchange the partial sums, which every worker calls in the same
    order. An array is given as Parts.
    """

    def __init__(self, communicator: Communicator, virtual_workers: int, count: int,
                 dtype: str = "float32", wire: str | None = None, name: str = "arrays"):
        """`count` elements of float32 or float64. `wire`: "float16" or "bfloat16" rounds every array
        and every partial sum of float32 to 16 bits. `name` appears in error messages."""
        self._communicator = communicator  # must outlive this
        self._handle = c_void_p()
        library.renzan_reduction_create(communicator.handle, virtual_workers, count, DTYPES[dtype],
                                        DTYPES[wire or dtype], name.encode(), byref(self._handle))

    def close(self) -> None:
        """Frees its arrays; if the communicator was closed first, it keeps them."""
        handle, self._handle = self._handle, c_void_p()
        if handle and not self._communicator.closed:
            library.renzan_reduction_destroy(handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    @property
    def _open_handle(self) -> c_void_p:
        """The handle. Its resources live as long as the communicator."""
        if not self._handle or self._communicator.closed:
            raise UsageError("this reduction, or its communicator, is closed")
        return self._handle

    @property
    def num_arrays(self) -> int:
        """The number of arrays of `count` elements that it holds."""
        count: int = library.renzan_reduction_num_arrays(self._open_handle)
        return count

    def add(self, parts: Parts) -> None:
        """Adds the array of the next virtual worker; an address of None is zeros."""
        library.renzan_reduction_add(self._open_handle, parts.array, len(parts.array))

    def start(self) -> None:
        """Posts the exchange. All of this worker's virtual workers must have been added."""
        library.renzan_reduction_start(self._open_handle)

    def continue_(self) -> None:
        """Waits for the scattering half of the exchange."""
        library.renzan_reduction_continue(self._open_handle)

    def finish(self, parts: Parts, scale: float = 1.0) -> bool:
        """Writes the sum times `scale`. Returns whether the sum is finite."""
        finite = c_int()
        library.renzan_reduction_finish(self._open_handle, parts.array, len(parts.array), scale,
                                        byref(finite))
        return finite.value != 0

    def reset(self) -> None:
        """Discards what has been added since the last sum."""
        library.renzan_reduction_reset(self._open_handle)
