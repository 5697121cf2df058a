"""ChainerMN's names for PyTorch modules and NumPy arrays: thin aliases of renzan.horovod.torch.

    comm = renzan.chainermn.create_communicator()
    optimizer = renzan.chainermn.create_multi_node_optimizer(optimizer, comm)
    train = renzan.chainermn.scatter_dataset(train, comm, shuffle=True)

Not offered: point-to-point calls, model-parallel functions and links, and Chainer's own modules.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import torch
from torch.utils.data import Subset

import renzan.horovod.torch as hvd
from renzan.random import sample_order


class CommunicatorBase:
    """All workers. Every worker makes the same calls in the same order."""

    @property
    def rank(self) -> int:
        """This worker's number."""
        return hvd.rank()

    @property
    def size(self) -> int:
        """The number of workers."""
        return hvd.size()

    @property
    def intra_rank(self) -> int:
        """This worker's number among those of its host."""
        return hvd.local_rank()

    @property
    def intra_size(self) -> int:
        """The number of workers of its host."""
        return hvd.local_size()

    @property
    def inter_rank(self) -> int:
        """The number of its host."""
        return hvd.cross_rank()

    @property
    def inter_size(self) -> int:
        """The number of hosts."""
        return hvd.cross_size()

    def allreduce(self, data: np.ndarray) -> np.ndarray:
        """The sum of the workers' arrays."""
        return hvd.allreduce(torch.from_numpy(np.array(data)), op=hvd.Sum).numpy()

    def bcast(self, data: np.ndarray | None, root: int = 0) -> np.ndarray:
        """Worker `root`'s array; what the others pass is ignored."""
        return self.bcast_obj(data, root)

    def allgather(self, data: np.ndarray) -> tuple[np.ndarray, ...]:
        """Every worker's array, by rank."""
        return tuple(hvd.allgather_object(data))

    def bcast_obj(self, obj: Any, root: int = 0) -> Any:
        """Worker `root`'s object."""
        return hvd.broadcast_object(obj, root)

    def gather_obj(self, obj: Any, root: int = 0) -> list[Any] | None:
        """Every worker's object, by rank, on worker `root`."""
        everyone = hvd.allgather_object(obj)
        return everyone if self.rank == root else None

    def allreduce_obj(self, obj: Any) -> Any:
        """The sum of the workers' objects, added by rank."""
        everyone = hvd.allgather_object(obj)
        total = everyone[0]
        for other in everyone[1:]:
            total = total + other
        return total

    def bcast_data(self, model: torch.nn.Module) -> None:
        """Worker 0's parameters and buffers to all."""
        hvd.broadcast_parameters(model.state_dict(), 0)

    def multi_node_mean_grad(self, model: torch.nn.Module, zero_fill: bool = False) -> None:
        """The average of the workers' gradients. A parameter without a gradient is skipped (then
        it must have none on all workers), or takes part with zeros (`zero_fill`)."""
        for parameter in model.parameters():
            if parameter.grad is None and zero_fill and parameter.requires_grad:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        if gradients:
            hvd.grouped_allreduce_(gradients, op=hvd.Average)

    allreduce_grad = multi_node_mean_grad

    def finalize(self) -> None:
        """Leaves the workers."""
        hvd.shutdown()


def create_communicator(communicator_name: str = "naive") -> CommunicatorBase:
    """All workers that a launcher started. The name is ignored: renzan.init() chooses."""
    hvd.init()
    return CommunicatorBase()


def create_multi_node_optimizer(actual_optimizer: torch.optim.Optimizer,
                                communicator: CommunicatorBase) -> torch.optim.Optimizer:
    """An optimizer that applies the average of the workers' gradients."""
    return hvd.DistributedOptimizer(actual_optimizer)


def scatter_dataset(dataset: Any, comm: CommunicatorBase, root: int = 0, shuffle: bool = False,
                    seed: int | None = None, *,
                    force_equal_length: bool = True) -> Subset[Any]:
    """This worker's part of a dataset (anything with a length and samples by number) that every
    worker has as a whole: consecutive samples, or some of a shuffled order. With
    force_equal_length, some samples are in two parts."""
    total, size = len(dataset), comm.size
    order = sample_order(seed or 0, 0, total) if shuffle else np.arange(total)
    begin, end = total * comm.rank // size, total * (comm.rank + 1) // size
    if force_equal_length:
        end = begin + -(-total // size)
    return Subset(dataset, [int(order[i % total]) for i in range(begin, end)])


def create_multi_node_evaluator(actual_evaluator: Callable[..., dict[str, float]],
                                communicator: CommunicatorBase) -> Callable[..., dict[str, float]]:
    """A function of the same arguments whose results are the averages over the workers."""
    def evaluate(*args: Any, **kwargs: Any) -> dict[str, float]:
        mine = actual_evaluator(*args, **kwargs)
        everyone = hvd.allgather_object({name: float(value) for name, value in mine.items()})
        return {name: sum(other[name] for other in everyone) / len(everyone) for name in mine}
    return evaluate
