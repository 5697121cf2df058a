"""A group of workers that exchange arrays."""

from __future__ import annotations

import ctypes
import enum
from ctypes import byref, c_size_t, c_void_p
from typing import Sequence

import numpy as np

from renzan._native import Place, library
from renzan.errors import UsageError

__all__ = ["Communicator", "Op", "place_from_environment"]


class Op(enum.IntEnum):
    """How arrays are combined. The bitwise operations are for integers."""

    SUM = 0
    PRODUCT = 1
    MIN = 2
    MAX = 3
    BIT_AND = 4
    BIT_OR = 5
    BIT_XOR = 6


# The codes of renzan_dtype. NumPy has no bfloat16: 3.
DTYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 3, "int8": 4, "uint8": 5, "int16": 6,
          "int32": 7, "int64": 8}


def place_from_environment() -> Place:
    """This worker's place, from the variables of torchrun, `renzan run`, mpirun or srun."""
    place = Place()
    library.renzan_place_from_environment(byref(place))
    return place


class Communicator:
    """A group of workers, from the variables that a launcher sets; alone without them.

    Every worker makes the same calls in the same order. Where they do not, each of them gets a
    UsageError that says what the others call; if a worker dies or does not answer within the time
    limit, a PeerError that names it, after which the communicator cannot be used.

    Arrays are NumPy arrays of float16, float32, float64, int8, uint8, int16, int32 and int64;
    broadcasts, gathers and all-to-all exchanges take any type without objects. Reductions combine
    the workers' arrays in the order of a fixed balanced binary tree over the ranks, whatever the
    backend. Safe to use from several threads, one call at a time.
    """

    def __init__(self, backend: str = "auto", timeout: float = 300.0, threads: int = 1,
                 place: Place | None = None):
        """`backend`: "gloo" (TCP), "mpi", "local" (one worker), or "auto": local for one worker,
        mpi under mpirun, else gloo. `timeout`: seconds, for the rendezvous and for each call.
        `threads` share the work of reductions."""
        self._handle = c_void_p()
        self.place = place if place is not None else place_from_environment()
        library.renzan_comm_create(byref(self.place), backend.encode(), timeout, threads,
                                   byref(self._handle))

    def close(self) -> None:
        """Leaves the group. Peers that still wait for this worker get an error."""
        handle, self._handle = self._handle, c_void_p()
        library.renzan_comm_destroy(handle)

    def __enter__(self) -> Communicator:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Communicator: worker {self.rank} of {self.world_size}, {self.backend}>"

    @property
    def closed(self) -> bool:
        """Whether close() has been called."""
        return not self._handle

    @property
    def handle(self) -> c_void_p:
        """The renzan_comm of the C interface."""
        if not self._handle:
            raise UsageError("this communicator is closed")
        return self._handle

    @property
    def rank(self) -> int:
        """This worker's number, from 0."""
        return self.place.rank

    @property
    def world_size(self) -> int:
        """The number of workers."""
        return self.place.world_size

    @property
    def local_rank(self) -> int:
        """This worker's number among those of its host."""
        return self.place.local_rank

    @property
    def backend(self) -> str:
        """ "local", "gloo" or "mpi"."""
        name: bytes = library.renzan_comm_backend(self.handle)
        return name.decode()

    def barrier(self) -> None:
        """Returns once all workers have called it."""
        library.renzan_barrier(self.handle)

    def begin_step(self, step: int) -> None:
        """A barrier at which all workers begin the same training step. Starting a reduction does
        not check that the others start it too."""
        library.renzan_begin_step(self.handle, step)

    def all_reduce(self, array: np.ndarray, op: Op = Op.SUM) -> np.ndarray:
        """The workers' arrays, of one shape and type, combined element by element."""
        array = _as_sent(array)
        result = np.empty_like(array)
        library.renzan_all_reduce(self.handle, array.ctypes.data, result.ctypes.data, array.size,
                                  _code(array), op)
        return result

    def reduce_scatter(self, array: np.ndarray, op: Op = Op.SUM) -> np.ndarray:
        """The workers' arrays [n, ...] combined; worker r gets rows r·n/W to (r + 1)·n/W. n is a
        multiple of W."""
        array = _as_sent(array)
        rows = self._rows_each(array)
        result = np.empty((rows, *array.shape[1:]), array.dtype)
        counts = (c_size_t * self.world_size)(*[result.size] * self.world_size)
        library.renzan_reduce_scatter(self.handle, array.ctypes.data, result.ctypes.data, counts,
                                      _code(array), op)
        return result

    def broadcast(self, array: np.ndarray, root: int = 0) -> np.ndarray:
        """Worker `root`'s array. The others pass one of the same shape and type."""
        result = np.array(_as_sent(array), order="C")
        library.renzan_broadcast(self.handle, result.ctypes.data, result.nbytes, root)
        return result

    def all_gather(self, array: np.ndarray) -> list[np.ndarray]:
        """Every worker's array, by rank. They have one shape and type."""
        array = _as_sent(array)
        results = [np.empty_like(array) for _ in range(self.world_size)]
        self._gather(array, results)
        return results

    def all_gather_v(self, array: np.ndarray) -> list[np.ndarray]:
        """Every worker's array [n, ...], by rank. Their n may differ."""
        array = _as_sent(array)
        rows = self.all_gather(np.array([len(array)], np.int64))
        results = [np.empty((int(n[0]), *array.shape[1:]), array.dtype) for n in rows]
        self._gather(array, results)
        return results

    def all_to_all(self, array: np.ndarray) -> np.ndarray:
        """Rows r·n/W to (r + 1)·n/W of array [n, ...] go to worker r; returns what the workers send
        to this one, by rank. n is a multiple of W."""
        array = _as_sent(array)
        rows = self._rows_each(array)
        parts = [array[p * rows:(p + 1) * rows] for p in range(self.world_size)]
        return np.concatenate(self._exchange(parts, [rows] * self.world_size))

    def all_to_all_v(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """parts[p] [n, ...] goes to worker p; returns what worker p sends to this one. Only n may
        differ."""
        if len(parts) != self.world_size:
            raise UsageError(f"all_to_all_v of {len(parts)} parts among {self.world_size} workers")
        arrays = [_as_sent(part) for part in parts]
        incoming = self.all_to_all(np.array([len(array) for array in arrays], np.int64))
        return self._exchange(arrays, incoming.tolist())

    def gather_bytes(self, data: bytes) -> list[bytes]:
        """Every worker's bytes, by rank."""
        return [part.tobytes() for part in self.all_gather_v(np.frombuffer(data, np.uint8))]

    def broadcast_bytes(self, data: bytes, root: int = 0) -> bytes:
        """Worker `root`'s bytes; what the others pass is ignored."""
        size = int(self.broadcast(np.array([len(data)], np.int64), root)[0])
        mine = np.frombuffer(data, np.uint8) if self.rank == root else np.empty(size, np.uint8)
        return self.broadcast(mine, root).tobytes()

    def _rows_each(self, array: np.ndarray) -> int:
        if array.ndim == 0 or len(array) % self.world_size != 0:
            rows = "no rows" if array.ndim == 0 else f"{len(array)} rows"
            raise UsageError(f"an array of {rows} cannot be split among {self.world_size} workers")
        return len(array) // self.world_size

    def _gather(self, array: np.ndarray, results: list[np.ndarray]) -> None:
        library.renzan_all_gather(self.handle, array.ctypes.data, array.nbytes,
                                  *_pointers(results))

    def _exchange(self, parts: Sequence[np.ndarray], rows: Sequence[int]) -> list[np.ndarray]:
        results = [np.empty((n, *part.shape[1:]), part.dtype) for n, part in zip(rows, parts)]
        library.renzan_all_to_all(self.handle, *_pointers(parts), *_pointers(results))
        return results


def _as_sent(array: np.ndarray) -> np.ndarray:
    """The array, row-major and in this machine's byte order. A UsageError if it holds Python
    objects, whose addresses mean nothing to another worker."""
    array = np.asarray(array, order="C")
    if array.dtype.hasobject:
        raise UsageError(f"arrays of {array.dtype} cannot be sent: they hold Python objects; send "
                         "numbers, or bytes (gather_bytes, broadcast_bytes)")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _code(array: np.ndarray) -> int:
    code = DTYPES.get(array.dtype.name)
    if code is None:
        raise UsageError(f"arrays of {array.dtype} cannot be combined: use one of "
                         + ", ".join(name for name in DTYPES if name != "bfloat16"))
    return code


def _pointers(
        arrays: Sequence[np.ndarray]) -> tuple[ctypes.Array[c_void_p], ctypes.Array[c_size_t]]:
    """Addresses and sizes in bytes, as the C interface takes them."""
    return ((c_void_p * len(arrays))(*[array.ctypes.data for array in arrays]),
            (c_size_t * len(arrays))(*[array.nbytes for array in arrays]))
