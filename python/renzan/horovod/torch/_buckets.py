"""Reduces gradients in buckets during backward, on every worker in the same order.

The order is fixed: from the last parameter to the first, roughly the order in which backward
produces gradients. A bucket is submitted once its gradients and those of all buckets before it are
complete.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Callable, Sequence

import torch

from renzan.errors import ConfigError, UsageError

_DEFAULT_BYTES = 64 << 20


def fusion_threshold() -> int:
    """Bytes of gradients that are reduced together (HOROVOD_FUSION_THRESHOLD)."""
    given = os.environ.get("HOROVOD_FUSION_THRESHOLD")
    if given is None:
        return _DEFAULT_BYTES
    if not given.isdigit():
        raise ConfigError(f"HOROVOD_FUSION_THRESHOLD={given} is not a number of bytes")
    return int(given)


def by_size(parameters: Sequence[torch.Tensor], limit: int) -> list[list[torch.Tensor]]:
    """Consecutive parameters of one type, together at most `limit` bytes (or one parameter)."""
    buckets: list[list[torch.Tensor]] = []
    room = 0
    for parameter in parameters:
        needed = parameter.numel() * parameter.element_size()
        if not buckets or needed > room or buckets[-1][0].dtype != parameter.dtype:
            buckets.append([])
            room = limit
        buckets[-1].append(parameter)
        room -= needed
    return buckets


def by_number(parameters: Sequence[torch.Tensor], number: int) -> list[list[torch.Tensor]]:
    """Consecutive parameters in `number` buckets of about equally many."""
    number = min(number, len(parameters))
    bounds = [len(parameters) * i // number for i in range(number + 1)]
    return [list(parameters[a:b]) for a, b in zip(bounds, bounds[1:])]


def by_groups(parameters: Sequence[torch.Tensor],
              groups: Sequence[Sequence[torch.Tensor]]) -> list[list[torch.Tensor]]:
    """The caller's groups, in the order of their first parameters; other parameters are alone."""
    group_of: dict[int, int] = {}
    for i, group in enumerate(groups):
        for parameter in group:
            if group_of.setdefault(id(parameter), i) != i:
                raise ValueError("groups: a parameter is in more than one group")
    buckets: dict[object, list[torch.Tensor]] = {}
    for parameter in parameters:
        key = group_of.get(id(parameter))
        buckets.setdefault(id(parameter) if key is None else (key,), []).append(parameter)
    return list(buckets.values())


class Buckets:
    """Submits buckets of gradients as backward produces them."""

    def __init__(self, buckets: list[list[torch.Tensor]], passes: int,
                 submit: Callable[[list[torch.Tensor]], list[Callable[[], Any]]]):
        """`passes`: backward passes until gradients are complete. `submit` takes parameters, and
        returns functions that wait for what it has submitted."""
        self._buckets, self._submit, self.passes = buckets, submit, passes
        self._bucket_of = {p: i for i, bucket in enumerate(buckets) for p in bucket}
        self._lock = threading.Lock()  # backward has a thread for each kind of device
        self._waits: list[Callable[[], Any]] = []
        self.reset()
        # A parameter's hooks run before its gradient is accumulated, those of its accumulator
        # afterwards. An accumulator lives only as long as it is referenced.
        self._accumulators = [p.view_as(p).grad_fn.next_functions[0][0]
                              for bucket in buckets for p in bucket]
        for parameter, accumulator in zip(self._bucket_of, self._accumulators):
            accumulator.register_hook(self._hook(parameter))

    def reset(self) -> None:
        """Expects all gradients anew."""
        self._next = 0
        self._missing = [len(bucket) for bucket in self._buckets]
        self._passes_left = dict.fromkeys(self._bucket_of, self.passes)

    @property
    def under_way(self) -> bool:
        """Whether gradients have been submitted, but not waited for."""
        return bool(self._waits)

    def _hook(self, parameter: torch.Tensor) -> Callable[..., None]:
        # self holds the accumulator, which would keep self alive forever.
        weak = weakref.ref(self)

        def accumulated(*_: object) -> None:
            buckets = weak()
            if buckets is not None:
                buckets._accumulated(parameter)
        return accumulated

    def _accumulated(self, parameter: torch.Tensor) -> None:
        with self._lock:
            if self._passes_left[parameter] == 0:
                raise UsageError(
                    f"gradients were computed more than backward_passes_per_step={self.passes} "
                    "times before step() or synchronize(): raise it, or call step() more often")
            self._passes_left[parameter] -= 1
            if self._passes_left[parameter] == 0:
                self._missing[self._bucket_of[parameter]] -= 1
                while self._next < len(self._buckets) and self._missing[self._next] == 0:
                    self._submit_next()

    def _submit_next(self) -> None:
        bucket = self._buckets[self._next]
        self._next += 1
        self._waits.extend(self._submit(bucket))

    def finish(self) -> None:
        """Submits the rest, with zeros for parameters without a gradient, and waits for
        everything."""
        with self._lock:
            while self._next < len(self._buckets):
                self._submit_next()
            waits, self._waits = self._waits, []
            self.reset()
        for wait in waits:
            wait()
