"""Tensors as the C interface takes them."""

from __future__ import annotations

import contextlib
from ctypes import Array, c_size_t, c_void_p
from typing import Any, Iterator, Sequence

import torch
from torch.distributed import ReduceOp

from renzan.communicator import DTYPES, Op
from renzan.errors import UsageError

_CODES = {getattr(torch, name): code for name, code in DTYPES.items()}
_OPS: list[tuple[Any, Op]] = [
    (ReduceOp.SUM, Op.SUM), (ReduceOp.PRODUCT, Op.PRODUCT), (ReduceOp.MIN, Op.MIN),
    (ReduceOp.MAX, Op.MAX), (ReduceOp.BAND, Op.BIT_AND), (ReduceOp.BOR, Op.BIT_OR),
    (ReduceOp.BXOR, Op.BIT_XOR)]
# For booleans, 0 or 1 each: a sum is whether any is true, a product whether all are.
_TRUTH: dict[Op | None, Op] = {Op.SUM: Op.MAX, Op.PRODUCT: Op.MIN}


def check(what: str, *tensors: torch.Tensor) -> None:
    """Raises a UsageError unless all are dense tensors in memory."""
    for tensor in tensors:
        if not isinstance(tensor, torch.Tensor):
            raise UsageError(f"{what}: takes tensors, not {type(tensor).__name__}")
        if tensor.device.type != "cpu":
            raise UsageError(f"{what}: a tensor is on {tensor.device}, but backend renzan takes "
                             "those of the CPU: call .cpu() first, or use backend nccl")
        if tensor.layout is not torch.strided:
            raise UsageError(f"{what}: a tensor is {tensor.layout}, but backend renzan takes dense "
                             "ones (of an embedding: nn.Embedding(..., sparse=False))")


class Reduction:
    """How tensors of one type are combined."""

    def __init__(self, what: str, tensor: torch.Tensor, op: ReduceOp, size: int):
        """`size`: the number of workers over which ReduceOp.AVG averages."""
        average = ReduceOp.AVG  # type: ignore[attr-defined]  # PyTorch 1.13 has it undeclared
        self.average = size if op == average else None
        native = next((ours for theirs, ours in _OPS if op == theirs), None)
        code: int | None
        dtype = tensor.dtype
        if self.average is not None and (dtype.is_floating_point or dtype.is_complex):
            native = Op.SUM
        if dtype is torch.bool:
            native = _TRUTH.get(native, native)
            code = _CODES[torch.uint8]
        elif dtype.is_complex:
            if native is not Op.SUM:
                native = None
            code = _CODES.get(torch.empty(0, dtype=dtype).real.dtype)
        else:
            code = _CODES.get(dtype)
        if native is None or code is None:
            name = str(getattr(op, "op", op)).rsplit(".", maxsplit=1)[-1]
            raise UsageError(f"{what}: backend renzan has no {name} of {dtype}")
        self.op, self.code = native, code
        # Elements of the C interface per element of the tensor.
        self.parts = 2 if dtype.is_complex else 1

    def finish(self, result: torch.Tensor) -> None:
        """Finishes a sum."""
        if self.average is not None:
            (torch.view_as_real(result) if result.is_complex() else result).div_(self.average)


def _is_plain(tensor: torch.Tensor) -> bool:
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def readable(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or a contiguous copy. It may also be the one that is written, if it is
    `writable`."""
    tensor = tensor.detach()
    return tensor if _is_plain(tensor) else tensor.resolve_conj().resolve_neg().contiguous()


@contextlib.contextmanager
def writable(*tensors: torch.Tensor) -> Iterator[list[torch.Tensor]]:
    """The tensors, or contiguous copies that are written back at the end."""
    plain = [readable(tensor) for tensor in tensors]
    yield plain
    for tensor, copy in zip(tensors, plain):
        if not _is_plain(tensor):
            tensor.detach().copy_(copy)


def num_bytes(tensor: torch.Tensor) -> int:
    """The bytes of its elements."""
    return tensor.numel() * tensor.element_size()


def pointers(tensors: Sequence[torch.Tensor | None]) -> tuple[Array[c_void_p], Array[c_size_t]]:
    """Addresses and sizes in bytes, as the C interface takes them. None counts as empty."""
    return ((c_void_p * len(tensors))(*[None if t is None else t.data_ptr() for t in tensors]),
            (c_size_t * len(tensors))(*[0 if t is None else num_bytes(t) for t in tensors]))
