"""The torch.distributed backend "renzan": init_process_group("renzan").

Reductions are in the order of a fixed balanced binary tree over the ranks, whatever the backend
below: the same bits on every run.
"""

from __future__ import annotations

import atexit
import inspect
import sys
import weakref
from ctypes import c_size_t
from datetime import timedelta
from typing import Any, Callable, Sequence, Union

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

from renzan._native import library
from renzan.errors import UsageError
from renzan.torch._channel import Channel
from renzan.torch._group_communicator import connect, is_world_of_mpirun
from renzan.torch._tensors import (Reduction, check, num_bytes, pointers, readable, writable)
from renzan.torch._work import Work, Worker

Tensors = Sequence[torch.Tensor]
OneTensor = Union[Tensors, torch.Tensor]
"""A tensor, or a list of one."""


class ProcessGroup(dist.ProcessGroup):
    """Workers with a communicator of their own, over Gloo; over MPI if they are all those of an
    mpirun.

    Methods are called by torch.distributed, with its names and arguments: tensors of the CPU, of
    any strides. Each returns a Work; operations are carried out in order by one thread, so that
    they overlap with computing. Where workers disagree, all of them get a UsageError; if one dies
    or does not answer within the group's time limit, a PeerError that names it, from this operation
    and all later ones.

    Sums, products, minima and maxima are of integers of 8 to 64 bits and floats of 16 to 64; 16-bit
    floats are added in float32 and rounded at each node of the tree. Truth values are combined by
    or (SUM, MAX, BOR), and (PRODUCT, MIN, BAND) and BXOR; of complex numbers there is SUM and AVG.
    """

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta):
        """Called by init_process_group and new_group. Returns once all workers have called it;
        `timeout` applies to that, and to each operation."""
        super().__init__(rank, size)  # type: ignore[call-arg]  # PyTorch 1.13 declares none
        self._group_name = self._group_desc = ""
        self._rank, self._size, self._store, self._timeout = rank, size, store, timeout
        backend = "mpi" if is_world_of_mpirun(rank, size) else None
        communicator = connect(store, "address of worker 0", rank, size, timeout, backend)
        self._comm = communicator.handle
        self._channels: dict[tuple[int, int], Channel] = {}
        self._worker: Worker | None = Worker("renzan process group", communicator.close)
        _alive.add(self)

    def __del__(self) -> None:
        if not sys.is_finalizing():  # other threads no longer run then
            self.shutdown()

    def shutdown(self) -> None:
        """Leaves the group, once all operations have ended."""
        worker, self._worker = getattr(self, "_worker", None), None
        if worker is not None:
            worker.close()
            for channel in self._channels.values():
                channel.close()

    abort = shutdown

    def getBackendName(self) -> str:  # noqa: N802 (PyTorch's)
        """ "renzan"."""
        return "renzan"

    name = _get_backend_name = getBackendName

    # PyTorch 2 keeps these two in its own backends, of which there are none here.
    def _set_group_name(self, name: str) -> None:
        self._group_name = name

    def _set_group_desc(self, description: str) -> None:
        self._group_desc = description

    @property
    def group_name(self) -> str:
        """The group's name in this process."""
        return self._group_name

    @property
    def group_desc(self) -> str:
        """What the group is for."""
        return self._group_desc

    def barrier(self, opts: object = None) -> Work:
        """As torch.distributed.barrier: ends once all workers have called it."""
        return self._submit("barrier", lambda: library.renzan_barrier(self._comm))

    def broadcast(self, tensors: OneTensor,
                  opts: dist.BroadcastOptions | int | None = None) -> Work:
        """As torch.distributed.broadcast: the tensor of worker `opts` (or opts.rootRank) to all, in
        place."""
        tensor = _one("broadcast", tensors)
        root = opts if isinstance(opts, int) else opts.rootRank if opts else 0

        def run() -> Tensors:
            with writable(tensor) as (plain,):
                library.renzan_broadcast(self._comm, plain.data_ptr(), num_bytes(plain), root)
            return [tensor]

        return self._submit("broadcast", run)

    def allreduce(self, tensors: OneTensor,
                  opts: dist.AllreduceOptions | ReduceOp | None = None) -> Work:
        """As torch.distributed.all_reduce: the workers' tensors combined, in place. A UsageError if
        tensors of this type cannot be combined so; this holds for all reductions."""
        return self._all_reduce("all_reduce", [_one("all_reduce", tensors)], opts)

    def allreduce_coalesced(self, tensors: Tensors,
                            opts: dist.AllreduceCoalescedOptions | ReduceOp | None = None) -> Work:
        """As torch.distributed.all_reduce_coalesced: allreduce() of each of them."""
        check("all_reduce_coalesced", *tensors)
        return self._all_reduce("all_reduce_coalesced", tensors, opts)

    def reduce(self, tensors: OneTensor, opts: dist.ReduceOptions | int | None = None,
               op: ReduceOp | None = None) -> Work:
        """As torch.distributed.reduce: the workers' tensors combined, in place, on worker `opts`
        (or opts.rootRank). The tensors of the others stay as they are."""
        tensor = _one("reduce", tensors)
        assert opts is not None
        root = opts if isinstance(opts, int) else opts.rootRank
        reduction = Reduction("reduce", tensor, _op(op or opts), self._size)

        def run() -> Tensors:
            # Everyone's whole array goes to the root.
            if self._rank != root:
                self._reduce_scatter(readable(tensor), None, tensor.numel(), root, reduction)
                return [tensor]
            with writable(tensor) as (plain,):
                self._reduce_scatter(plain, plain, tensor.numel(), root, reduction)
            return [tensor]

        return self._submit("reduce", run)

    # PyTorch declares additional overloads of these methods with other types (a list and a tensor),
    # which torch.distributed does not use.

    def allgather(self, output_tensors: Sequence[Tensors],  # type: ignore[override]
                  input_tensors: OneTensor, opts: object = None) -> Work:
        """As torch.distributed.all_gather: every worker's tensor, by rank, in the only list of
        `output_tensors`."""
        tensor = _one("all_gather", input_tensors)
        outputs = _one_list("all_gather", output_tensors, self._size)

        def run() -> Tensors:
            with writable(*outputs) as plain:
                self._all_gather(readable(tensor), plain)
            return outputs

        return self._submit("all_gather", run)

    def allgather_coalesced(self, output_lists: Sequence[Tensors], input_list: Tensors,
                            opts: object = None) -> Work:
        """As torch.distributed.all_gather_coalesced: every worker's tensors in the list of its
        rank."""
        what = "all_gather_coalesced"
        check(what, *input_list)
        if len(output_lists) != self._size:
            raise UsageError(f"{what}: {len(output_lists)} lists among {self._size} workers")
        for outputs in output_lists:
            check(what, *outputs)
            if len(outputs) != len(input_list):
                raise UsageError(f"{what}: {len(outputs)} outputs for {len(input_list)} inputs")

        def run() -> Sequence[Tensors]:
            for i, tensor in enumerate(input_list):
                with writable(*[outputs[i] for outputs in output_lists]) as plain:
                    self._all_gather(readable(tensor), plain)
            return output_lists

        return self._submit(what, run)

    def _allgather_base(self, output: torch.Tensor, input: torch.Tensor,
                        opts: object = None) -> Work:
        """As torch.distributed.all_gather_into_tensor: all workers' tensors, by rank, in one
        tensor."""
        return self.allgather_into_tensor_coalesced([output], [input])

    def allgather_into_tensor_coalesced(self, outputs: Tensors, inputs: Tensors,
                                        opts: object = None) -> Work:
        """As torch.distributed.all_gather_into_tensor, for each of them."""
        what = "all_gather_into_tensor"
        check(what, *outputs, *inputs)
        for output, tensor in zip(outputs, inputs):
            _is_times(what, output, tensor, self._size)

        def run() -> Tensors:
            for output, tensor in zip(outputs, inputs):
                with writable(output) as (plain,):
                    self._all_gather(readable(tensor), _split(plain, self._size))
            return outputs

        return self._submit(what, run)

    def gather(self, output_tensors: Sequence[Tensors],  # type: ignore[override]
               input_tensors: OneTensor, opts: dist.GatherOptions | None = None) -> Work:
        """As torch.distributed.gather: every worker's tensor, by rank, in the only list of
        `output_tensors` on worker opts.rootRank. The others pass no list."""
        tensor = _one("gather", input_tensors)
        root = opts.rootRank if opts else 0
        outputs = (_one_list("gather", output_tensors, self._size) if self._rank == root else [])

        def run() -> Tensors:
            with writable(*outputs) as plain:
                self._exchange(self._only(root, readable(tensor)), plain or self._nothing())
            return outputs

        return self._submit("gather", run)

    def scatter(self, output_tensors: OneTensor,  # type: ignore[override]
                input_tensors: Sequence[Tensors], opts: dist.ScatterOptions | None = None) -> Work:
        """As torch.distributed.scatter: worker p gets tensor p of the only list of `input_tensors`
        on worker opts.rootRank. The others pass no list."""
        tensor = _one("scatter", output_tensors)
        root = opts.rootRank if opts else 0
        inputs = (_one_list("scatter", input_tensors, self._size) if self._rank == root else
                  self._nothing())

        def run() -> Tensors:
            with writable(tensor) as (plain,):
                self._exchange([t if t is None else readable(t) for t in inputs],
                               self._only(root, plain))
            return [tensor]

        return self._submit("scatter", run)

    def reduce_scatter(self, output_tensors: OneTensor,  # type: ignore[override]
                       input_tensors: Sequence[Tensors],
                       opts: dist.ReduceScatterOptions | ReduceOp | None = None) -> Work:
        """As torch.distributed.reduce_scatter: worker p gets the combination of the workers'
        tensors p in the only list of `input_tensors`."""
        output = _one("reduce_scatter", output_tensors)
        inputs = _one_list("reduce_scatter", input_tensors, self._size)
        reduction = Reduction("reduce_scatter", output, _op(opts), self._size)
        for tensor in inputs:
            _is_times("reduce_scatter", tensor, output, 1)

        def run() -> Tensors:
            with writable(output) as (plain,):
                whole = torch.cat([readable(tensor).reshape(-1) for tensor in inputs])
                self._reduce_scatter(whole, plain, plain.numel(), None, reduction)
            return [output]

        return self._submit("reduce_scatter", run)

    def _reduce_scatter_base(self, output: torch.Tensor, input: torch.Tensor,
                             opts: dist.ReduceScatterOptions | ReduceOp | None = None) -> Work:
        """As torch.distributed.reduce_scatter_tensor: worker p gets part p of the combination."""
        return self.reduce_scatter_tensor_coalesced([output], [input], opts)

    def reduce_scatter_tensor_coalesced(
            self, outputs: Tensors, inputs: Tensors,
            opts: dist.ReduceScatterOptions | ReduceOp | None = None) -> Work:
        """As torch.distributed.reduce_scatter_tensor, for each of them."""
        what = "reduce_scatter_tensor"
        check(what, *outputs, *inputs)
        reductions = [Reduction(what, output, _op(opts), self._size) for output in outputs]
        for output, tensor in zip(outputs, inputs):
            _is_times(what, tensor, output, self._size)

        def run() -> Tensors:
            for output, tensor, reduction in zip(outputs, inputs, reductions):
                with writable(output) as (plain,):
                    self._reduce_scatter(readable(tensor), plain, plain.numel(), None, reduction)
            return outputs

        return self._submit(what, run)

    def alltoall(self, output_tensors: Tensors, input_tensors: Tensors,
                 opts: object = None) -> Work:
        """As torch.distributed.all_to_all: input_tensors[p] goes to worker p, output_tensors[p]
        comes from it."""
        outputs = _one_list("all_to_all", [output_tensors], self._size)
        inputs = _one_list("all_to_all", [input_tensors], self._size)

        def run() -> Tensors:
            with writable(*outputs) as plain:
                self._exchange([readable(tensor) for tensor in inputs], plain)
            return outputs

        return self._submit("all_to_all", run)

    def alltoall_base(self, output: torch.Tensor, input: torch.Tensor,
                      output_split_sizes: Sequence[int], input_split_sizes: Sequence[int],
                      opts: object = None) -> Work:
        """As torch.distributed.all_to_all_single: consecutive rows go to the workers,
        input_split_sizes[p] to worker p; output_split_sizes[p] come from it. Without sizes every
        worker gets equally many. A UsageError if the sizes do not add up to the rows."""
        what = "all_to_all_single"
        check(what, output, input)
        output_rows = self._rows(what, output, output_split_sizes)
        input_rows = self._rows(what, input, input_split_sizes)

        def run() -> Tensors:
            with writable(output) as (plain,):
                self._exchange(readable(input).split(input_rows), plain.split(output_rows))
            return [output]

        return self._submit(what, run)

    def send(self, tensors: OneTensor, dst: int, tag: int = 0) -> Work:
        """As torch.distributed.isend: ends once worker `dst` has received the tensor."""
        return self._channel("send", self._rank, dst).send(_one("send", tensors), tag)

    def recv(self, tensors: OneTensor, src: int, tag: int = 0) -> Work:
        """As torch.distributed.irecv: the next tensor with this tag from worker `src`. Its size
        must be that of this one; otherwise a UsageError."""
        return self._channel("recv", src, self._rank).receive(_one("recv", tensors), tag)

    def recv_anysource(self, tensors: OneTensor, tag: int = 0) -> Work:
        """Always a UsageError: the sender has to be named."""
        raise UsageError("recv: backend renzan receives from a worker that is named: recv(t, src)")

    # PyTorch 2's names.
    all_gather_single = _allgather_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    reduce_scatter_single = _reduce_scatter_base
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
    all_to_all_single = alltoall_base

    def _submit(self, name: str, body: Callable[[], Any]) -> Work:
        if self._worker is None:
            raise UsageError(f"{name}: this process group has been destroyed")
        return self._worker.submit(Work(name, body))

    def _all_reduce(self, what: str, tensors: Tensors, opts: object) -> Work:
        reductions = [Reduction(what, tensor, _op(opts), self._size) for tensor in tensors]

        def run() -> Tensors:
            for tensor, reduction in zip(tensors, reductions):
                with writable(tensor) as (plain,):
                    library.renzan_all_reduce(self._comm, plain.data_ptr(), plain.data_ptr(),
                                              plain.numel() * reduction.parts, reduction.code,
                                              reduction.op)
                    reduction.finish(plain)
            return list(tensors)

        return self._submit(what, run)

    def _reduce_scatter(self, tensor: torch.Tensor, output: torch.Tensor | None, count: int,
                        root: int | None, reduction: Reduction) -> None:
        """`count` elements for each worker, or for worker `root` only."""
        counts = (c_size_t * self._size)(*[count * reduction.parts if root in (None, p) else 0
                                           for p in range(self._size)])
        library.renzan_reduce_scatter(self._comm, tensor.data_ptr(),
                                      None if output is None else output.data_ptr(), counts,
                                      reduction.code, reduction.op)
        if output is not None:
            reduction.finish(output)

    def _all_gather(self, tensor: torch.Tensor, outputs: Tensors) -> None:
        library.renzan_all_gather(self._comm, tensor.data_ptr(), num_bytes(tensor),
                                  *pointers(outputs))

    def _exchange(self, inputs: Sequence[torch.Tensor | None],
                  outputs: Sequence[torch.Tensor | None]) -> None:
        library.renzan_all_to_all(self._comm, *pointers(inputs), *pointers(outputs))

    def _only(self, rank: int, tensor: torch.Tensor) -> list[torch.Tensor | None]:
        return [tensor if p == rank else None for p in range(self._size)]

    def _nothing(self) -> Sequence[torch.Tensor | None]:
        return [None] * self._size

    def _rows(self, what: str, tensor: torch.Tensor, sizes: Sequence[int]) -> list[int]:
        rows = len(tensor) if tensor.dim() > 0 else 1
        if not sizes:
            sizes = [rows // self._size] * self._size
        if len(sizes) != self._size or sum(sizes) != rows:
            raise UsageError(f"{what}: {rows} rows cannot be split as {list(sizes)} among "
                             f"{self._size} workers")
        return list(sizes)

    def _channel(self, what: str, source: int, target: int) -> Channel:
        peer = target if source == self._rank else source
        if source == target or not 0 <= peer < self._size:
            raise UsageError(f"{what}: worker {self._rank} of {self._size} cannot exchange messages "
                             f"with worker {peer}")
        if self._worker is None:
            raise UsageError(f"{what}: this process group has been destroyed")
        if (source, target) not in self._channels:
            self._channels[source, target] = Channel(self._store, source, target, self._rank,
                                                     self._timeout)
        return self._channels[source, target]


_alive: weakref.WeakSet[ProcessGroup] = weakref.WeakSet()


def _one(what: str, tensors: OneTensor) -> torch.Tensor:
    tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
    check(what, *tensors)
    if len(tensors) != 1:
        raise UsageError(f"{what}: takes one tensor, not {len(tensors)}")
    return tensors[0]


def _one_list(what: str, lists: Sequence[Tensors], size: int) -> Tensors:
    if len(lists) != 1 or len(lists[0]) != size:
        raise UsageError(f"{what}: takes one list with a tensor for each of the {size} workers")
    check(what, *lists[0])
    return lists[0]


def _op(opts: Any) -> Any:
    """The ReduceOp in the options, which may themselves be one."""
    return ReduceOp.SUM if opts is None else getattr(opts, "reduceOp", opts)


def _is_times(what: str, large: torch.Tensor, small: torch.Tensor, times: int) -> None:
    if large.numel() != times * small.numel() or large.dtype != small.dtype:
        raise UsageError(f"{what}: tensors of {large.numel()} {large.dtype} and of {small.numel()} "
                         f"{small.dtype}; they need one type, and {times} times as many elements")


def _split(tensor: torch.Tensor, parts: int) -> Tensors:
    flat, each = tensor.reshape(-1), tensor.numel() // parts
    return [flat[p * each:(p + 1) * each] for p in range(parts)]


def _register() -> None:
    register = dist.Backend.register_backend
    devices = {"devices": ["cpu"]} if "devices" in inspect.signature(register).parameters else {}
    register("renzan", ProcessGroup, **devices)


@atexit.register
def _leave_at_exit() -> None:
    # After an error others may wait for this worker: they must notice, so do not leave in order.
    if not hasattr(sys, "last_type"):
        for group in list(_alive):
            group.shutdown()


_register()
