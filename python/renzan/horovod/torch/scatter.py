"""reducescatter and its variants."""

from __future__ import annotations

from typing import Any, Sequence

import torch

from renzan.communicator import Communicator
from renzan.horovod.torch import _exchanges
from renzan.horovod.torch._engine import Handle, Several
from renzan.horovod.torch.collectives import Exchange, allgather_async
from renzan.horovod.torch.compression import Compression, Compressor
from renzan.horovod.torch.process_set import ProcessSet, global_process_set
from renzan.horovod.torch.reductions import (Average, ReduceOp, Scaling, Sum, quoted, resolve,
                                             short)


def _rows(total: int, size: int) -> list[int]:
    return [total // size + (p < total % size) for p in range(size)]


def reducescatter_async(tensor: torch.Tensor, name: str | None = None, op: ReduceOp = Average,
                        process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                        postscale_factor: float = 1.0) -> Handle:
    """reducescatter() that returns a handle; the order is that of allreduce_async()."""
    group, op = process_set.group(), resolve(op)
    if tensor.dim() == 0:
        raise ValueError("reducescatter of a tensor without dimensions")
    mine = _exchanges.staged(tensor)
    scaling = Scaling(op, prescale_factor, postscale_factor, group.size)
    rows = _rows(mine.shape[0], group.size)

    def reduce(comm: Communicator, _: list[int]) -> torch.Tensor:
        sent = mine.clone() if prescale_factor != 1.0 else mine
        scaling.before(sent)
        result = mine.new_empty((rows[group.rank], *mine.shape[1:]))
        elements = mine[:1].numel()
        _exchanges.reduce_scatter(comm, sent, result, [n * elements for n in rows], scaling.native)
        scaling.after(result)
        return result

    text = f"reducescatter{quoted(name)} of {short(mine.dtype)} {list(mine.shape)} ({scaling})"
    return group.submit(Exchange(text, reduce, device=tensor.device))


class _ReduceScatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, name: str | None,  # type: ignore[override]
                op: ReduceOp, process_set: ProcessSet, prescale_factor: float,
                postscale_factor: float) -> torch.Tensor:
        ctx.factor = prescale_factor * postscale_factor
        ctx.factor /= process_set.size() if op is Average else 1
        ctx.process_set = process_set
        return reducescatter_async(tensor, name, op, process_set, prescale_factor,
                                   postscale_factor).wait()

    @staticmethod
    def backward(ctx: Any,  # type: ignore[override]
                 gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        everyone = allgather_async(gradient, process_set=ctx.process_set).wait()
        return (everyone * ctx.factor,) + (None,) * 5


def reducescatter(tensor: torch.Tensor, name: str | None = None,
                  compression: type[Compressor] = Compression.none, op: ReduceOp = Average,
                  process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                  postscale_factor: float = 1.0) -> torch.Tensor:
    """The workers' tensors [n, ...] combined; each worker gets consecutive rows: n/W, and the first
    n mod W workers one more. The other arguments are allreduce()'s; the gradient of Average and Sum
    is that of the sum of the workers' losses."""
    compressed, context = compression.compress(tensor)
    if resolve(op) not in (Sum, Average):
        compressed = compressed.detach()  # there is no gradient
    result = _ReduceScatter.apply(compressed, name, resolve(op), process_set, prescale_factor,
                                  postscale_factor)
    return compression.decompress(result, context)


def grouped_reducescatter(tensors: Sequence[torch.Tensor], name: str | None = None,
                          compression: type[Compressor] = Compression.none, op: ReduceOp = Average,
                          process_set: ProcessSet = global_process_set,
                          prescale_factor: float = 1.0,
                          postscale_factor: float = 1.0) -> list[torch.Tensor]:
    """reducescatter() of several tensors: a list."""
    return [reducescatter(tensor, name, compression, op, process_set, prescale_factor,
                          postscale_factor) for tensor in tensors]


def grouped_reducescatter_async(tensors: Sequence[torch.Tensor], name: str | None = None,
                                op: ReduceOp = Average,
                                process_set: ProcessSet = global_process_set,
                                prescale_factor: float = 1.0,
                                postscale_factor: float = 1.0) -> Handle:
    """grouped_reducescatter() that returns a handle."""
    return Several([reducescatter_async(tensor, name, op, process_set, prescale_factor,
                                        postscale_factor) for tensor in tensors])
