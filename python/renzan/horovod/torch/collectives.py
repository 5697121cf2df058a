"""Gathers, broadcasts, all-to-all exchanges, barrier and join."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np
import torch

from renzan.communicator import Communicator
from renzan.horovod.torch import _exchanges
from renzan.horovod.torch._engine import Handle, Join, Operation, Several
from renzan.horovod.torch.process_set import ProcessSet, global_process_set
from renzan.horovod.torch.reductions import quoted, short


class Exchange(Operation):
    """An operation that calls one function of (communicator, every worker's rows)."""

    def __init__(self, text: str, function: Callable[[Communicator, list[int]], Any],
                 rows: int = 0, device: torch.device | None = None):
        """`rows`: this worker's. A tensor that the function returns is moved to `device`."""
        super().__init__(text, rows)
        self._function, self._device = function, device
        self._result: Any = None

    def carry_out(self, comm: Communicator, rows: list[int]) -> None:
        """Calls the function."""
        self._result = self._function(comm, rows)

    def result(self) -> Any:
        """What the function has returned."""
        if isinstance(self._result, torch.Tensor) and self._device is not None:
            return self._result.to(self._device)
        return self._result


def poll(handle: Handle) -> bool:
    """Whether an operation is done."""
    return handle.poll()


def synchronize(handle: Handle) -> Any:
    """Waits for an operation, and returns its result. Raises HorovodInternalError if a worker has
    died, UsageError if the workers have submitted different operations."""
    return handle.wait()


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Returns once all workers that have not joined have called it, and their earlier operations
    are done."""
    # The agreement on the operation is already the barrier.
    process_set.group().submit(Operation("barrier", zeros=(0, 0))).wait()


def join(device: int = -1) -> int:
    """Says that this worker has no more data: until all workers have joined, it takes part in their
    allreduce with zeros (Sum and Average, which still divides by the number of all workers).

    Returns the last worker that joined. Any other operation while a worker has joined is an error
    on all workers. `device` is ignored.
    """
    return global_process_set.group().submit(Join()).wait()


def allgather_async(tensor: torch.Tensor, name: str | None = None,
                    process_set: ProcessSet = global_process_set) -> Handle:
    """allgather() that returns a handle; the order is that of allreduce_async()."""
    mine = _exchanges.staged(tensor)
    if mine.dim() == 0:
        mine = mine.reshape(1)

    def gather(comm: Communicator, rows: list[int]) -> torch.Tensor:
        result = mine.new_empty((sum(rows), *mine.shape[1:]))
        _exchanges.all_gather(comm, mine, result.split(rows))
        return result

    text = f"allgather{quoted(name)} of {short(mine.dtype)} {['n', *mine.shape[1:]]}"
    return process_set.group().submit(
        Exchange(text.replace("'n'", "n"), gather, mine.shape[0], tensor.device))


# The functions below have parameters of their own, which PyTorch's type declarations do not allow.


class _AllGather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor,  # type: ignore[override]
                name: str | None, process_set: ProcessSet) -> torch.Tensor:
        ctx.shape, ctx.process_set = tensor.shape, process_set
        return allgather_async(tensor, name, process_set).wait()

    @staticmethod
    def backward(ctx: Any,  # type: ignore[override]
                 gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        from renzan.horovod.torch.reductions import allreduce
        rows = ctx.shape[0] if ctx.shape else 1
        everyone = allgather_async(torch.tensor([rows]), process_set=ctx.process_set).wait()
        mean = allreduce(gradient, process_set=ctx.process_set)
        first = sum(everyone.tolist()[:ctx.process_set.rank()])
        return mean[first:first + rows].reshape(ctx.shape), None, None


def allgather(tensor: torch.Tensor, name: str | None = None,
              process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """Every worker's tensor [n, ...], one after another by rank. They may differ in n. As in
    Horovod its gradient is the average over the workers."""
    return _AllGather.apply(tensor, name, process_set)


def grouped_allgather(tensors: Sequence[torch.Tensor], name: str | None = None,
                      process_set: ProcessSet = global_process_set) -> list[torch.Tensor]:
    """allgather() of several tensors: a list."""
    return [allgather(tensor, _numbered(name, i), process_set) for i, tensor in enumerate(tensors)]


def grouped_allgather_async(tensors: Sequence[torch.Tensor], name: str | None = None,
                            process_set: ProcessSet = global_process_set) -> Handle:
    """grouped_allgather() that returns a handle."""
    return Several([allgather_async(tensor, _numbered(name, i), process_set)
                    for i, tensor in enumerate(tensors)])


def _broadcast_async(tensor: torch.Tensor, root_rank: int, name: str | None,
                     process_set: ProcessSet, in_place: bool) -> Handle:
    root = process_set.root(root_rank)
    staged = _exchanges.staged(tensor)
    values = staged if in_place or staged.data_ptr() != tensor.data_ptr() else staged.clone()

    def broadcast_values(comm: Communicator, rows: list[int]) -> torch.Tensor:
        _exchanges.broadcast(comm, values, root)
        return values

    text = (f"broadcast{quoted(name)} of {short(values.dtype)} {list(values.shape)} from worker "
            f"{root_rank}")
    operation = Exchange(text, broadcast_values, device=tensor.device)
    if in_place:
        operation = _InPlace(text, broadcast_values, tensor)
    return process_set.group().submit(operation)


class _InPlace(Exchange):
    """Copies its result into a tensor, unless it is there already."""

    def __init__(self, text: str, function: Callable[[Communicator, list[int]], Any],
                 target: torch.Tensor):
        super().__init__(text, function)
        self._target = target

    def result(self) -> torch.Tensor:
        if self._result is not None:
            if self._result.data_ptr() != self._target.data_ptr():
                with torch.no_grad():
                    self._target.copy_(self._result)
            self._result = None
        return self._target


def broadcast_async(tensor: torch.Tensor, root_rank: int, name: str | None = None,
                    process_set: ProcessSet = global_process_set) -> Handle:
    """broadcast() that returns a handle; the order is that of allreduce_async()."""
    return _broadcast_async(tensor, root_rank, name, process_set, in_place=False)


def broadcast_async_(tensor: torch.Tensor, root_rank: int, name: str | None = None,
                     process_set: ProcessSet = global_process_set) -> Handle:
    """broadcast_() that returns a handle; the order is that of allreduce_async()."""
    return _broadcast_async(tensor, root_rank, name, process_set, in_place=True)


def broadcast_(tensor: torch.Tensor, root_rank: int, name: str | None = None,
               process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """broadcast() in place, without gradients."""
    return broadcast_async_(tensor, root_rank, name, process_set).wait()


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, root_rank: int,  # type: ignore[override]
                name: str | None, process_set: ProcessSet) -> torch.Tensor:
        ctx.root_rank, ctx.process_set = root_rank, process_set
        return broadcast_async(tensor, root_rank, name, process_set).wait()

    @staticmethod
    def backward(ctx: Any,  # type: ignore[override]
                 gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        from renzan.horovod.torch.reductions import allreduce
        mean = allreduce(gradient, process_set=ctx.process_set)
        is_root = ctx.process_set.root(ctx.root_rank) == ctx.process_set.rank()
        return mean if is_root else torch.zeros_like(mean), None, None, None


def broadcast(tensor: torch.Tensor, root_rank: int, name: str | None = None,
              process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """Worker `root_rank`'s tensor; the others pass one of the same shape and type. As in Horovod
    its gradient is the average over the workers."""
    return _Broadcast.apply(tensor, root_rank, name, process_set)


def alltoall_async(tensor: torch.Tensor, splits: Sequence[int] | torch.Tensor | None = None,
                   name: str | None = None, process_set: ProcessSet = global_process_set) -> Handle:
    """alltoall() that returns a handle; the order is that of allreduce_async()."""
    group = process_set.group()
    mine = _exchanges.staged(tensor)
    rows = _splits(mine, splits, group.size)

    def exchange(comm: Communicator, _: list[int]) -> Any:
        incoming = comm.all_to_all(np.array(rows, np.int64)).tolist()
        result = mine.new_empty((sum(incoming), *mine.shape[1:]))
        _exchanges.all_to_all(comm, mine.split(rows), result.split(incoming))
        result = result.to(tensor.device)
        if splits is None:
            return result
        device: torch.device | str = splits.device if isinstance(splits, torch.Tensor) else "cpu"
        return result, torch.tensor(incoming, dtype=torch.int32, device=device)

    text = f"alltoall{quoted(name)} of {short(mine.dtype)} {['n', *mine.shape[1:]]}"
    return group.submit(Exchange(text.replace("'n'", "n"), exchange))


def _splits(tensor: torch.Tensor, splits: Sequence[int] | torch.Tensor | None,
            size: int) -> list[int]:
    if tensor.dim() == 0:
        raise ValueError("alltoall of a tensor without dimensions")
    if splits is None:
        if tensor.shape[0] % size != 0:
            raise ValueError(f"alltoall of {tensor.shape[0]} rows among {size} workers: "
                             "give splits")
        return [tensor.shape[0] // size] * size
    rows = [int(n) for n in splits]
    if len(rows) != size or min(rows) < 0 or sum(rows) != tensor.shape[0]:
        raise ValueError(f"alltoall: splits {rows} do not divide {tensor.shape[0]} rows among "
                         f"{size} workers")
    return rows


class _AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, splits: torch.Tensor,  # type: ignore[override]
                name: str | None, process_set: ProcessSet) -> tuple[torch.Tensor, torch.Tensor]:
        result, received = alltoall_async(tensor, splits, name, process_set).wait()
        ctx.received, ctx.process_set = received, process_set
        ctx.mark_non_differentiable(received)
        return result, received

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor,  # type: ignore[override]
                 _: Any) -> tuple[torch.Tensor | None, ...]:
        back, _ = alltoall_async(gradient, ctx.received, None, ctx.process_set).wait()
        return back, None, None, None


def alltoall(tensor: torch.Tensor, splits: Sequence[int] | torch.Tensor | None = None,
             name: str | None = None,
             process_set: ProcessSet = global_process_set
             ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Consecutive rows of tensor [n, ...] go to the workers: splits[p] to worker p, or n/W each
    without splits. Returns what the workers send to this one, by rank; with splits also how many
    rows each has sent (int32 [W])."""
    rows = _splits(tensor, splits, process_set.size())
    given = splits if isinstance(splits, torch.Tensor) else torch.tensor(rows, dtype=torch.int32)
    result, received = _AllToAll.apply(tensor, given, name, process_set)
    return result if splits is None else (result, received)


def exchange_bytes(text: str, function: Callable[[Communicator], Any],
                   process_set: ProcessSet) -> Any:
    """Calls a function of the communicator in its turn, and returns its result."""
    return process_set.group().submit(Exchange(text, lambda comm, _: function(comm))).wait()


def _numbered(name: str | None, i: int) -> str | None:
    return None if name is None else f"{name}.{i}"


__all__ = ["allgather", "allgather_async", "alltoall", "alltoall_async", "barrier", "broadcast",
           "broadcast_", "broadcast_async", "broadcast_async_", "grouped_allgather",
           "grouped_allgather_async", "join", "poll", "synchronize"]
