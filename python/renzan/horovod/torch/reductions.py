"""allreduce and its variants.

Arrays are combined in the order of a fixed binary tree over the ranks: the same bits in every run
with the same number of workers. For the same bits on any number of workers:
renzan.torch.VirtualStep.
"""

from __future__ import annotations

import enum
from typing import Any, Sequence

import torch

from renzan.communicator import Communicator, Op
from renzan.errors import UsageError
from renzan.horovod.torch import _exchanges
from renzan.horovod.torch._engine import Handle, Operation
from renzan.horovod.torch.compression import Compression, Compressor
from renzan.horovod.torch.process_set import ProcessSet, global_process_set


class ReduceOp(enum.Enum):
    """How tensors are combined. Adasum is not offered."""

    Average = 0
    Sum = 1
    Adasum = 2
    Min = 3
    Max = 4
    Product = 5


Average, Sum, Adasum = ReduceOp.Average, ReduceOp.Sum, ReduceOp.Adasum
Min, Max, Product = ReduceOp.Min, ReduceOp.Max, ReduceOp.Product

_NATIVE = {Average: Op.SUM, Sum: Op.SUM, Min: Op.MIN, Max: Op.MAX, Product: Op.PRODUCT}


def resolve(op: ReduceOp | None, average: bool | None = None) -> ReduceOp:
    """The operation that the arguments `op` and `average` (deprecated by Horovod) select."""
    if op is not None and average is not None:
        raise ValueError("op and average are both given: give op only")
    if average is not None:
        op = Average if average else Sum
    op = Average if op is None else op
    if op not in _NATIVE:
        raise UsageError(f"{op} is not offered: use Average or Sum, with gradient_predivide_factor "
                         "to divide a part before the sum")
    return op


class Scaling:
    """How numbers are scaled before and after a reduction among `size` workers."""

    def __init__(self, op: ReduceOp, prescale_factor: float, postscale_factor: float, size: int):
        """Only an Average depends on `size`."""
        self.native = _NATIVE[op]
        self._prescale, self._postscale = prescale_factor, postscale_factor
        self._divisor = size if op is Average else 1
        self._text = op.name
        for word, factor in (("prescale", prescale_factor), ("postscale", postscale_factor)):
            if factor != 1.0:
                self._text += f", {word} {factor}"

    def __str__(self) -> str:
        return self._text

    def before(self, tensor: torch.Tensor) -> None:
        """In place."""
        _multiply(tensor, self._prescale)

    def after(self, tensor: torch.Tensor) -> None:
        """Scales in place. Averages of integers are rounded down."""
        if self._divisor != 1:
            if tensor.dtype.is_floating_point:
                tensor.div_(self._divisor)
            else:
                tensor.copy_(torch.div(tensor, self._divisor, rounding_mode="floor"))
        _multiply(tensor, self._postscale)


def _multiply(tensor: torch.Tensor, factor: float) -> None:
    if factor == 1.0:
        return
    if tensor.dtype.is_floating_point:
        tensor.mul_(factor)
    else:
        tensor.copy_(tensor.double() * factor)


class _Part:
    """A tensor of a reduction."""

    def __init__(self, tensor: torch.Tensor, in_place: bool, compression: type[Compressor]):
        self._tensor, self._in_place, self._compression = tensor, in_place, compression
        compressed, self._context = compression.compress(tensor.detach())
        self.sent = _exchanges.staged(compressed)
        self.is_copy = self.sent.data_ptr() != tensor.data_ptr()
        self._arrived: torch.Tensor | None = None

    @property
    def may_overwrite(self) -> bool:
        """Whether `sent` may be reduced in place."""
        return self._in_place or self.is_copy

    def arrive(self, flat: torch.Tensor) -> None:
        """Takes the result. Runs on the group's thread."""
        self._arrived = flat.view(self.sent.shape)
        if self._in_place and self._tensor.device.type == "cpu":
            self._deliver()

    def _deliver(self) -> None:
        assert self._arrived is not None
        value = self._compression.decompress(self._arrived, self._context)
        if not self._in_place:
            self._tensor = value.to(self._tensor.device)
        elif value.data_ptr() != self._tensor.data_ptr() or not self._tensor.is_contiguous():
            with torch.no_grad():
                self._tensor.copy_(value)
        self._arrived = None

    def result(self) -> torch.Tensor:
        """The tensor, or a new one."""
        if self._arrived is not None:
            self._deliver()
        return self._tensor


class _AllReduce(Operation):
    """An allreduce of tensors of one type, as one array."""

    def __init__(self, parts: list[_Part], name: str | None, op: ReduceOp, scaling: Scaling):
        dtype = parts[0].sent.dtype
        shapes = " ".join(str(list(part.sent.shape)) for part in parts)
        count = sum(part.sent.numel() for part in parts)
        zeros = (_exchanges.code(dtype), count) if op in (Sum, Average) else None
        super().__init__(f"allreduce{quoted(name)} of {short(dtype)} {shapes} ({scaling})",
                         zeros=zeros)
        self._parts, self._scaling = parts, scaling

    def carry_out(self, comm: Communicator, rows: list[int]) -> None:
        flats = [part.sent.view(-1) for part in self._parts]
        if len(flats) > 1:
            flat = torch.cat(flats)
        else:
            flat = flats[0] if self._parts[0].may_overwrite else flats[0].clone()
        self._scaling.before(flat)
        if flat.numel() > 0:
            _exchanges.all_reduce(comm, flat, self._scaling.native)
        self._scaling.after(flat)
        for part, piece in zip(self._parts, flat.split([part.numel() for part in flats])):
            part.arrive(piece)


class Reduction:
    """A handle: the tensors of one or several _AllReduce, one for each type."""

    def __init__(self, parts: list[_Part], operations: Sequence[Operation], grouped: bool):
        """`parts` are those of the operations."""
        self._parts, self._operations, self._grouped = parts, operations, grouped

    def poll(self) -> bool:
        """Whether it is done."""
        return all(operation.poll() for operation in self._operations)

    def wait(self) -> Any:
        """The tensor; for a grouped reduction a list of tensors."""
        for operation in self._operations:
            operation.wait()
        results = [part.result() for part in self._parts]
        return results if self._grouped else results[0]


def quoted(name: str | None) -> str:
    """The name as errors show it."""
    return "" if name is None else f" '{name}'"


def short(dtype: torch.dtype) -> str:
    """ "float32"."""
    return str(dtype).replace("torch.", "")


def submit(tensors: Sequence[torch.Tensor], *, in_place: bool, grouped: bool = True,
           name: str | None = None, op: ReduceOp = Average, prescale_factor: float = 1.0,
           postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
           compression: type[Compressor] = Compression.none) -> Reduction:
    """Reduces tensors; all of one type as one array."""
    group = process_set.group()
    scaling = Scaling(op, prescale_factor, postscale_factor, group.size)
    parts = [_Part(tensor, in_place, compression) for tensor in tensors]
    by_type: dict[torch.dtype, list[_Part]] = {}
    for part in parts:
        by_type.setdefault(part.sent.dtype, []).append(part)
    operations = [_AllReduce(alike, name, op, scaling) for alike in by_type.values()]
    return Reduction(parts, [group.submit(operation) for operation in operations], grouped)


class _AllReduceFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, name: str | None, op: ReduceOp,  # type: ignore[override]
                prescale_factor: float, postscale_factor: float, process_set: ProcessSet,
                *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.arguments = dict(op=op, prescale_factor=prescale_factor,
                             postscale_factor=postscale_factor, process_set=process_set)
        return tuple(submit(tensors, in_place=False, name=name, **ctx.arguments).wait())

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        if ctx.arguments["op"] not in (Sum, Average):
            raise UsageError(f"allreduce with {ctx.arguments['op']} has no gradient")
        gradients = submit(gradients, in_place=False, name="of gradients", **ctx.arguments).wait()
        return (None,) * 5 + tuple(gradients)


def grouped_allreduce(tensors: Sequence[torch.Tensor], average: bool | None = None,
                      name: str | None = None, compression: type[Compressor] = Compression.none,
                      op: ReduceOp | None = None, prescale_factor: float = 1.0,
                      postscale_factor: float = 1.0,
                      process_set: ProcessSet = global_process_set) -> list[torch.Tensor]:
    """allreduce() of several tensors, together: a list of new ones."""
    op = resolve(op, average)
    compressed = [compression.compress(tensor) for tensor in tensors]
    results = _AllReduceFunction.apply(name, op, prescale_factor, postscale_factor, process_set,
                                       *[tensor for tensor, _ in compressed])
    return [compression.decompress(result, context)
            for result, (_, context) in zip(results, compressed)]


def grouped_allreduce_async(tensors: Sequence[torch.Tensor], average: bool | None = None,
                            name: str | None = None, op: ReduceOp | None = None,
                            prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                            process_set: ProcessSet = global_process_set) -> Handle:
    """grouped_allreduce() that returns a handle."""
    return submit(tensors, in_place=False, name=name, op=resolve(op, average),
                  prescale_factor=prescale_factor, postscale_factor=postscale_factor,
                  process_set=process_set)


def grouped_allreduce_async_(tensors: Sequence[torch.Tensor], average: bool | None = None,
                             name: str | None = None, op: ReduceOp | None = None,
                             prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                             process_set: ProcessSet = global_process_set) -> Handle:
    """grouped_allreduce_() that returns a handle."""
    return submit(tensors, in_place=True, name=name, op=resolve(op, average),
                  prescale_factor=prescale_factor, postscale_factor=postscale_factor,
                  process_set=process_set)


def grouped_allreduce_(tensors: Sequence[torch.Tensor], average: bool | None = None,
                       name: str | None = None, op: ReduceOp | None = None,
                       prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                       process_set: ProcessSet = global_process_set) -> list[torch.Tensor]:
    """allreduce_() of several tensors, together."""
    return grouped_allreduce_async_(tensors, average, name, op, prescale_factor, postscale_factor,
                                    process_set).wait()


def allreduce(tensor: torch.Tensor, average: bool | None = None, name: str | None = None,
              compression: type[Compressor] = Compression.none, op: ReduceOp | None = None,
              prescale_factor: float = 1.0, postscale_factor: float = 1.0,
              process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """The workers' tensors, of one shape and type, combined element by element: a new tensor.

    op: Average (the default), Sum, Min, Max or Product. The tensors are multiplied by
    `prescale_factor` before and by `postscale_factor` after. Gradients of Average and Sum are
    reduced in the same way. Tensors of GPUs are copied to the host and back.
    """
    return grouped_allreduce([tensor], average, name, compression, op, prescale_factor,
                             postscale_factor, process_set)[0]


def allreduce_async(tensor: torch.Tensor, average: bool | None = None, name: str | None = None,
                    op: ReduceOp | None = None, prescale_factor: float = 1.0,
                    postscale_factor: float = 1.0,
                    process_set: ProcessSet = global_process_set) -> Handle:
    """allreduce() that returns a handle for poll() and synchronize().

    Every worker submits the same operations in the same order (Horovod pairs them by name): where
    they do not, all of them get a UsageError. The tensor may not change until it is done.
    """
    return submit([tensor], in_place=False, grouped=False, name=name, op=resolve(op, average),
                  prescale_factor=prescale_factor, postscale_factor=postscale_factor,
                  process_set=process_set)


def allreduce_async_(tensor: torch.Tensor, average: bool | None = None, name: str | None = None,
                     op: ReduceOp | None = None, prescale_factor: float = 1.0,
                     postscale_factor: float = 1.0,
                     process_set: ProcessSet = global_process_set) -> Handle:
    """allreduce_() that returns a handle; the order is that of allreduce_async()."""
    return submit([tensor], in_place=True, grouped=False, name=name, op=resolve(op, average),
                  prescale_factor=prescale_factor, postscale_factor=postscale_factor,
                  process_set=process_set)


def allreduce_(tensor: torch.Tensor, average: bool | None = None, name: str | None = None,
               op: ReduceOp | None = None, prescale_factor: float = 1.0,
               postscale_factor: float = 1.0,
               process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """allreduce() in place, without gradients."""
    return allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor,
                            process_set).wait()
