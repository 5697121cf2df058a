"""Gradients of one virtual worker after another, reduced in buckets while backward runs."""

from __future__ import annotations

from typing import Iterable

import torch

from renzan.communicator import Communicator
from renzan.errors import UsageError
from renzan.reduction import Parts, Reduction

_SUMS = {torch.float32: "float32", torch.float16: "float32", torch.bfloat16: "float32",
         torch.float64: "float64"}
# The first gradients that backward produces should be sent early.
_FIRST_BUCKET_BYTES = 1 << 20


def dtype_name(dtype: torch.dtype) -> str:
    """ "float32"."""
    return str(dtype).rsplit(".", maxsplit=1)[-1]


class _Bucket:
    def __init__(self, dtype: str):
        self.dtype = dtype
        self.parameters: list[tuple[str, torch.nn.Parameter]] = []
        self.missing = 0  # gradients that backward has not produced yet
        self.parts: Parts
        self.reduction: Reduction


class Buckets:
    """The gradients of a model's parameters, in buckets in the order in which backward produces
    them.

    Call begin_backward() before each backward; after it add(), for all virtual workers but the
    last; after the last backward finish(). During the last backward a bucket is exchanged as soon
    as its gradients are there and the bucket before it has been sent, so that all workers exchange
    them in one order.
    """

    def __init__(self, communicator: Communicator,
                 named_parameters: Iterable[tuple[str, torch.nn.Parameter]], virtual_workers: int,
                 bucket_bytes: int, wire: str | None):
        """`wire`: as for a Reduction; float64 gradients are sent as they are."""
        self._buckets: list[_Bucket] = []
        self._bucket_of: dict[torch.nn.Parameter, _Bucket] = {}
        self._deal(list(named_parameters), bucket_bytes)
        for number, bucket in enumerate(self._buckets):
            names = [name for name, _ in bucket.parameters]
            bucket.parts = Parts([(p.numel(), dtype_name(p.dtype)) for _, p in bucket.parameters])
            bucket.reduction = Reduction(
                communicator, virtual_workers, sum(p.numel() for _, p in bucket.parameters),
                bucket.dtype, wire if bucket.dtype == "float32" else None,
                f"gradient bucket {number} ({names[0]} to {names[-1]})")
        self._waits_for_last = False
        self._next_to_start = 0
        self._came: set[torch.nn.Parameter] = set()  # those with a gradient in this backward
        # Reentrant checkpointing produces the gradient of a shared parameter in pieces. The first
        # step exchanges nothing before its end, which shows whether there is one.
        self._has_come_in_pieces = False
        self._is_first_step = True
        self._accumulators = []  # kept alive, and so are their hooks
        if communicator.world_size > 1:
            for parameter in self._bucket_of:
                accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
                accumulator.register_hook(lambda *_, p=parameter: self._is_ready(p))
                self._accumulators.append(accumulator)

    def _deal(self, named_parameters: list[tuple[str, torch.nn.Parameter]],
              bucket_bytes: int) -> None:
        open_ones: dict[str, tuple[_Bucket, int]] = {}
        for name, parameter in reversed(named_parameters):
            if parameter.dtype not in _SUMS:
                raise UsageError(f"parameter {name} is {dtype_name(parameter.dtype)}: gradients are "
                                 "float16, bfloat16, float32 or float64")
            if parameter.device.type != "cpu":
                raise UsageError(f"parameter {name} is on {parameter.device}: VirtualStep trains on "
                                 "CPUs")
            dtype = _SUMS[parameter.dtype]
            size = parameter.numel() * parameter.element_size()
            bucket, filled = open_ones.get(dtype, (None, 0))
            limit = bucket_bytes if len(self._buckets) > 1 else min(bucket_bytes,
                                                                    _FIRST_BUCKET_BYTES)
            if bucket is None or (filled > 0 and filled + size > limit):
                bucket, filled = _Bucket(dtype), 0
                self._buckets.append(bucket)
            bucket.parameters.append((name, parameter))
            self._bucket_of[parameter] = bucket
            open_ones[dtype] = (bucket, filled + size)

    @property
    def num_arrays(self) -> int:
        """Gradients of the whole model that are held in addition to the parameters' own."""
        return max((bucket.reduction.num_arrays for bucket in self._buckets), default=0)

    def reset(self) -> None:
        """Discards a step that has failed before its last virtual worker."""
        self._waits_for_last = False
        for bucket in self._buckets:
            bucket.reduction.reset()

    def add(self) -> None:
        """Adds the parameters' gradients: those of the next virtual worker, which is not the last."""
        for bucket in self._buckets:
            _add(bucket)

    def begin_backward(self, is_last: bool) -> None:
        """Called before each backward; `is_last`: that of the last virtual worker."""
        self._came.clear()
        self._next_to_start = 0
        self._waits_for_last = (is_last and not self._is_first_step
                                and not self._has_come_in_pieces)
        for bucket in self._buckets:
            bucket.missing = len(bucket.parameters)

    def start_rest(self) -> None:
        """Called after that backward: starts the remaining buckets, since not all gradients
        came."""
        self._waits_for_last = self._is_first_step = False
        for bucket in self._buckets[self._next_to_start:]:
            _add(bucket)
            bucket.reduction.start()

    def continue_(self) -> None:
        """Waits for the first half of all exchanges."""
        for bucket in self._buckets:
            bucket.reduction.continue_()

    def finish(self, scale: float, unused: set[str]) -> list[str]:
        """Writes the sums times `scale` to the parameters' gradients; `unused` ones get none.
        Returns the names of the parameters with a gradient that is not finite."""
        not_finite = []
        for bucket in self._buckets:
            results = [_writable_gradient(p) for _, p in bucket.parameters]
            for piece, result in zip(bucket.parts.pieces, results):
                piece.data = result.data_ptr()
            finite = bucket.reduction.finish(bucket.parts, scale)
            for (name, parameter), result in zip(bucket.parameters, results):
                assert parameter.grad is not None  # by _writable_gradient
                if parameter.grad is not result:
                    parameter.grad.copy_(result)
                if not finite and not torch.isfinite(result).all():
                    not_finite.append(name)
                if name in unused:
                    parameter.grad = None
        return not_finite

    def _is_ready(self, parameter: torch.nn.Parameter) -> None:
        bucket = self._bucket_of[parameter]
        if parameter in self._came:
            self._has_come_in_pieces = True
            if self._waits_for_last and bucket in self._buckets[:self._next_to_start]:
                name = next(n for n, p in bucket.parameters if p is parameter)
                raise UsageError(f"the gradient of {name} comes in several pieces, other than in "
                                 "the first step: use torch.utils.checkpoint with "
                                 "use_reentrant=False")
            self._waits_for_last = False  # the rest is exchanged at the end
            return
        self._came.add(parameter)
        if not self._waits_for_last:
            return
        bucket.missing -= 1
        while (self._next_to_start < len(self._buckets)
               and self._buckets[self._next_to_start].missing == 0):
            bucket = self._buckets[self._next_to_start]
            _add(bucket)
            bucket.reduction.start()
            self._next_to_start += 1


def _add(bucket: _Bucket) -> None:
    copies = []  # kept alive until they have been added
    for (name, parameter), piece in zip(bucket.parameters, bucket.parts.pieces):
        gradient = parameter.grad
        if gradient is None:
            piece.data = None
            continue
        if gradient.layout != torch.strided:
            raise UsageError(f"the gradient of {name} is sparse: use Embedding(..., sparse=False)")
        if not gradient.is_contiguous():
            gradient = gradient.contiguous()
            copies.append(gradient)
        piece.data = gradient.data_ptr()
    bucket.reduction.add(bucket.parts)


def _writable_gradient(parameter: torch.nn.Parameter) -> torch.Tensor:
    """Where a sum is written: the gradient itself unless it is not contiguous."""
    if parameter.grad is None:
        parameter.grad = torch.empty_like(parameter, memory_format=torch.contiguous_format)
    gradient = parameter.grad
    return gradient if gradient.is_contiguous() else torch.empty(gradient.shape,
                                                                 dtype=gradient.dtype)
