"""allreduce of sparse tensors."""

from __future__ import annotations

from typing import Callable

import torch

from renzan.horovod.torch.collectives import allgather_async
from renzan.horovod.torch.process_set import ProcessSet, global_process_set
from renzan.horovod.torch.reductions import Average, ReduceOp, Sum, resolve


def sparse_allreduce_async(tensor: torch.Tensor, name: str | None = None, op: ReduceOp = Average,
                           process_set: ProcessSet = global_process_set
                           ) -> Callable[[], torch.Tensor]:
    """The sum or average of the workers' sparse COO tensors, all of one shape. Returns a function
    that waits for it and returns it; otherwise like allreduce_async().

    All workers' entries are gathered: worthwhile if there are few.
    """
    op = resolve(op)
    if op not in (Sum, Average):
        raise ValueError(f"sparse_allreduce_async with {op}: use Sum or Average")
    entries = tensor.coalesce() if not tensor.is_coalesced() else tensor
    indices = allgather_async(entries.indices().t(), f"{name or 'sparse'} (indices)", process_set)
    values = allgather_async(entries.values(), f"{name or 'sparse'} (values)", process_set)

    def wait() -> torch.Tensor:
        everyone = values.wait()
        if op is Average:
            everyone = everyone / process_set.size()
        return torch.sparse_coo_tensor(indices.wait().t(), everyone, tensor.shape).coalesce()

    return wait
