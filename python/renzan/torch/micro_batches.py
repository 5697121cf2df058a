"""Splitting a worker's batch into the micro-batches of its virtual workers."""

from __future__ import annotations

from typing import Any, Iterator

import torch

from renzan.data import Bags
from renzan.errors import UsageError


_ALIGNMENT = 64  # bytes: that of PyTorch's own allocations
_CHANNELS_LAST = {4: (torch.channels_last,), 5: (torch.channels_last_3d,)}


def rows_of(batch: Any) -> int:
    """The rows of a batch: the first dimension of all tensors in it (tuples, lists, dicts), and the
    number of Bags."""
    rows = set(_rows(batch))
    if not rows:
        raise UsageError("the batch holds no tensors: pass what a DataLoader gives")
    if len(rows) > 1:
        raise UsageError("the tensors of a batch differ in their first dimension, by which it is "
                         "split: " + ", ".join(map(str, sorted(rows))))
    return rows.pop()


def rows_from(batch: Any, begin: int, end: int) -> Any:
    """Rows [begin, end) of all tensors in it, which do not tell where in the batch they were; what is
    no tensor stays as it is."""
    if isinstance(batch, torch.Tensor):
        return _placed_alike(batch[begin:end])
    if isinstance(batch, Bags):
        return batch[begin:end]
    if isinstance(batch, dict):
        return {name: rows_from(value, begin, end) for name, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(rows_from(value, begin, end) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(rows_from(value, begin, end) for value in batch)
    return batch


def _placed_alike(rows: torch.Tensor) -> torch.Tensor:
    # Matrix products (MKL's) are rounded by the addresses and strides of their operands, and those of
    # a slice depend on what else its worker carries.
    formats = [torch.contiguous_format, *_CHANNELS_LAST.get(rows.ndim, ())]
    if not any(rows.is_contiguous(memory_format=one) for one in formats):
        return rows.contiguous()
    return rows if rows.data_ptr() % _ALIGNMENT == 0 else rows.clone()


def _rows(batch: Any) -> Iterator[int]:
    if isinstance(batch, torch.Tensor):
        yield batch.shape[0] if batch.ndim > 0 else 0
    elif isinstance(batch, Bags):
        yield len(batch)
    elif isinstance(batch, dict):
        for value in batch.values():
            yield from _rows(value)
    elif isinstance(batch, (list, tuple)):
        for value in batch:
            yield from _rows(value)
