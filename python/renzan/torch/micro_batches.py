"""Splitting a worker's batch into the micro-batches of its virtual workers."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np
import torch

from renzan.data import Bags
from renzan.errors import UsageError


_ALIGNMENT = 64  # bytes, as in PyTorch's own allocations
_CHANNELS_LAST = {4: (torch.channels_last,), 5: (torch.channels_last_3d,)}


def rows_of(batch: Any) -> int:
    """The rows of a batch: the first dimension of all tensors and NumPy arrays in it (tuples,
    lists, dicts), the number of Bags, and the lengths of lists of texts or other values."""
    rows = set(_rows(batch))
    if not rows:
        raise UsageError("the batch holds no tensors: pass what a DataLoader gives")
    if len(rows) > 1:
        raise UsageError("the tensors, arrays and lists of values of a batch differ in their first "
                         "dimension, by which it is split: " + ", ".join(map(str, sorted(rows))))
    return rows.pop()


def rows_from(batch: Any, begin: int, end: int) -> Any:
    """Rows [begin, end) of everything that rows_of() counts; the memory of tensors and arrays does
    not reveal their place in the batch. A single value stays as it is."""
    if isinstance(batch, torch.Tensor):
        return _placed_alike(batch[begin:end])
    if isinstance(batch, np.ndarray) and batch.ndim > 0:
        return _array_placed_alike(batch[begin:end])
    if _is_one_per_row(batch):
        return batch[begin:end]
    if isinstance(batch, dict):
        return {name: rows_from(value, begin, end) for name, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(rows_from(value, begin, end) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(rows_from(value, begin, end) for value in batch)
    return batch


def _is_one_per_row(batch: Any) -> bool:
    """Whether it has one value per sample: an array, Bags, or a list or tuple of texts."""
    if isinstance(batch, np.ndarray):
        return batch.ndim > 0
    if isinstance(batch, (list, tuple)) and not hasattr(batch, "_fields"):
        return len(batch) > 0 and not any(_has_parts(value) for value in batch)
    return isinstance(batch, Bags)


def _has_parts(value: Any) -> bool:
    return isinstance(value, (torch.Tensor, np.ndarray, Bags, dict, list, tuple))


def _placed_alike(rows: torch.Tensor) -> torch.Tensor:
    # The rounding of matrix products (MKL's) depends on the addresses and strides of their
    # operands, and those of a slice depend on what else its worker computes.
    formats = [torch.contiguous_format, *_CHANNELS_LAST.get(rows.ndim, ())]
    if not any(rows.is_contiguous(memory_format=one) for one in formats):
        return rows.contiguous()
    return rows if rows.data_ptr() % _ALIGNMENT == 0 else rows.clone()


def _array_placed_alike(rows: np.ndarray) -> np.ndarray:
    # The loss function may turn it into a tensor, which shares its memory.
    if rows.dtype.hasobject or rows.nbytes == 0:
        return rows
    memory = torch.empty(rows.nbytes, dtype=torch.uint8).numpy()
    placed = memory.view(rows.dtype).reshape(rows.shape)
    placed[...] = rows
    return placed


def _rows(batch: Any) -> Iterator[int]:
    if isinstance(batch, torch.Tensor):
        yield batch.shape[0] if batch.ndim > 0 else 0
    elif _is_one_per_row(batch):
        yield len(batch)
    elif isinstance(batch, dict):
        for value in batch.values():
            yield from _rows(value)
    elif isinstance(batch, (list, tuple)):
        for value in batch:
            yield from _rows(value)
