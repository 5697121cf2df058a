"""Exchanges of contiguous tensors in this process's memory."""

from __future__ import annotations

from ctypes import Array, c_size_t, c_void_p
from typing import Sequence

import torch

from renzan._native import library
from renzan.communicator import DTYPES, Communicator, Op
from renzan.errors import UsageError


def code(dtype: torch.dtype) -> int:
    """The code of a type whose arrays can be combined."""
    found = DTYPES.get(str(dtype).replace("torch.", ""))
    if found is None:
        raise UsageError(f"tensors of {dtype} cannot be reduced: use one of " + ", ".join(DTYPES))
    return found


def staged(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself if it can be exchanged, else a copy of it that can."""
    if tensor.is_sparse:
        raise UsageError("a sparse tensor cannot be exchanged: use its to_dense(), or "
                         "sparse_allreduce_async")
    return tensor.detach().cpu().contiguous()


def all_reduce(comm: Communicator, tensor: torch.Tensor, op: Op) -> None:
    """Combines the workers' tensors in place."""
    library.renzan_all_reduce(comm.handle, tensor.data_ptr(), tensor.data_ptr(), tensor.numel(),
                              code(tensor.dtype), op)


def add_zeros(comm: Communicator, dtype_code: int, count: int) -> None:
    """Takes part in a sum with zeros."""
    zeros = torch.zeros(count * 8, dtype=torch.uint8)  # enough for any type
    library.renzan_all_reduce(comm.handle, zeros.data_ptr(), zeros.data_ptr(), count, dtype_code,
                              Op.SUM)


def reduce_scatter(comm: Communicator, tensor: torch.Tensor, result: torch.Tensor,
                   counts: Sequence[int], op: Op) -> None:
    """Combines the workers' tensors; worker p gets counts[p] elements of the result."""
    library.renzan_reduce_scatter(comm.handle, tensor.data_ptr(), result.data_ptr(),
                                  (c_size_t * len(counts))(*counts), code(tensor.dtype), op)


def all_gather(comm: Communicator, tensor: torch.Tensor, results: Sequence[torch.Tensor]) -> None:
    """Every worker's tensor, by rank."""
    library.renzan_all_gather(comm.handle, tensor.data_ptr(), _bytes(tensor), *_pointers(results))


def all_to_all(comm: Communicator, parts: Sequence[torch.Tensor],
               results: Sequence[torch.Tensor]) -> None:
    """parts[p] goes to worker p, results[p] comes from it."""
    library.renzan_all_to_all(comm.handle, *_pointers(parts), *_pointers(results))


def broadcast(comm: Communicator, tensor: torch.Tensor, root: int) -> None:
    """Worker `root`'s tensor, in place."""
    library.renzan_broadcast(comm.handle, tensor.data_ptr(), _bytes(tensor), root)


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _pointers(tensors: Sequence[torch.Tensor]) -> tuple[Array[c_void_p], Array[c_size_t]]:
    return ((c_void_p * len(tensors))(*[tensor.data_ptr() for tensor in tensors]),
            (c_size_t * len(tensors))(*[_bytes(tensor) for tensor in tensors]))
