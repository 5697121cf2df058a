"""Broadcasts of models, optimizers and objects."""

from __future__ import annotations

import pickle
from typing import Any, Iterable

import torch

from renzan.horovod.torch.collectives import broadcast_async_, exchange_bytes
from renzan.horovod.torch.process_set import ProcessSet, global_process_set
from renzan.horovod.torch.reductions import quoted


def broadcast_parameters(params: dict[str, Any] | Iterable[tuple[str, Any]], root_rank: int,
                         process_set: ProcessSet = global_process_set) -> None:
    """Worker `root_rank`'s values to all, in place. `params`: a state_dict(), named_parameters(),
    or a list of (name, tensor); values that are not tensors stay as they are."""
    named = sorted(params.items()) if isinstance(params, dict) else list(params)
    if not all(isinstance(entry, tuple) and len(entry) == 2 for entry in named):
        raise ValueError("broadcast_parameters takes a state_dict() or named_parameters()")
    handles = [broadcast_async_(tensor, root_rank, name, process_set) for name, tensor in named
               if isinstance(tensor, torch.Tensor)]
    for handle in handles:
        handle.wait()


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int,
                              model: torch.nn.Module | None = None,
                              process_set: ProcessSet = global_process_set) -> None:
    """Worker `root_rank`'s optimizer.state_dict() to all: state and options of every group. `model`
    is ignored."""
    mine = process_set.root(root_rank) == process_set.rank()
    state: Any = optimizer.state_dict() if mine else None
    state = broadcast_object(state, root_rank, "optimizer state", process_set)
    if not mine:
        optimizer.load_state_dict(state)


def broadcast_object(obj: Any, root_rank: int = 0, name: str | None = None,
                     process_set: ProcessSet = global_process_set) -> Any:
    """Worker `root_rank`'s object, pickled; what the others pass is ignored."""
    root = process_set.root(root_rank)
    mine = root == process_set.rank()
    data = pickle.dumps(obj) if mine else b""
    data = exchange_bytes(f"broadcast_object{quoted(name)} from worker {root_rank}",
                          lambda comm: comm.broadcast_bytes(data, root), process_set)
    return obj if mine else pickle.loads(data)


def allgather_object(obj: Any, name: str | None = None,
                     process_set: ProcessSet = global_process_set) -> list[Any]:
    """Every worker's object, pickled, by rank."""
    data = pickle.dumps(obj)
    everyone = exchange_bytes(f"allgather_object{quoted(name)}",
                              lambda comm: comm.gather_bytes(data), process_set)
    return [pickle.loads(other) for other in everyone]
