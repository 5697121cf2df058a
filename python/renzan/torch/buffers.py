"""A model's buffers (BatchNorm's running statistics) over the virtual workers of a step.

Every virtual worker begins with the buffers of the step's beginning. At its end a floating-point
buffer is the mean of the virtual workers' results, in tree order. Counts (integers) change by what
they change in every virtual worker.
"""

from __future__ import annotations

import torch

from renzan.communicator import Communicator
from renzan.errors import UsageError
from renzan.reduction import Parts, Reduction
from renzan.torch.buckets import dtype_name

# Counts are sent with the step's numbers, whose sums are exact below this.
_MOST_COUNTS = 65536
_LARGEST_SUM = 2.0**53


class Buffers:
    """The buffers that a step may change."""

    def __init__(self, communicator: Communicator, model: torch.nn.Module, virtual_workers: int):
        """A UsageError if a buffer is complex, or not on a CPU."""
        self._virtual_workers = virtual_workers
        self.changed_unsaved: set[str] = set()
        """Names of buffers that steps have changed and that no state_dict contains."""
        kept = _buffers_of(model)
        self._floats = [b for b in kept if b.now.is_floating_point()]
        self._counts = [b for b in kept if not b.now.is_floating_point()]
        # Large integer buffers are masks and tables, which steps do not change.
        self._sent_counts = [b for b in self._counts if b.now.numel() <= _MOST_COUNTS]
        self._sums = [_Sum(communicator, virtual_workers, dtype, mine)
                      for dtype in ("float32", "float64")
                      if (mine := [b for b in self._floats if _sum_type(b.now) == dtype])]

    @property
    def num_numbers(self) -> int:
        """How many numbers end_virtual_worker() returns."""
        return len(self._floats) + sum(b.now.numel() for b in self._sent_counts)

    def begin_step(self) -> None:
        """Remembers the buffers, and discards a step that has failed."""
        for buffer in self._floats + self._counts:
            buffer.begin.copy_(buffer.now)
        for each in self._sums:
            each.reduction.reset()

    def restore(self) -> None:
        """Between two virtual workers: restores what the step began with."""
        for buffer in self._floats + self._counts:
            buffer.now.copy_(buffer.begin)

    def end_virtual_worker(self) -> list[float]:
        """Adds a virtual worker's results. Returns numbers whose sums over all virtual workers
        finish() needs."""
        for buffer in self._floats + self._counts:
            buffer.adopt()
        for each in self._sums:
            each.add()
        numbers = [0.0 if torch.equal(b.now, b.begin) else 1.0 for b in self._floats]
        for buffer in self._counts:
            if buffer.now.numel() == 1:
                numbers.append(float(buffer.now.item() - buffer.begin.item()))
            elif buffer.now.numel() <= _MOST_COUNTS:
                change = buffer.now.to(torch.int64) - buffer.begin.to(torch.int64)
                numbers += change.flatten().to(torch.float64).tolist()
            elif not torch.equal(buffer.now, buffer.begin):
                raise UsageError(f"buffer {buffer.name} of {buffer.now.numel()} "
                                 f"{dtype_name(buffer.now.dtype)} has changed during a step: "
                                 f"VirtualStep keeps counts of at most {_MOST_COUNTS} elements")
        return numbers

    def start(self) -> None:
        """Posts the exchange."""
        for each in self._sums:
            each.reduction.start()

    def continue_(self) -> None:
        """Waits for the first half of it."""
        for each in self._sums:
            each.reduction.continue_()

    def finish(self, sums: list[float]) -> None:
        """Sets the buffers. `sums`: those of the numbers."""
        for each in self._sums:
            each.finish(1.0 / self._virtual_workers)
        for buffer, changed in zip(self._floats, sums):
            # The mean of equal numbers need not equal that number.
            if changed == 0:
                buffer.now.copy_(buffer.begin)
            else:
                self._note_change(buffer)
        at = len(self._floats)
        for buffer in self._sent_counts:
            size = buffer.now.numel()
            if buffer.add_change(sums[at:at + size], self._virtual_workers):
                self._note_change(buffer)
            at += size

    def _note_change(self, buffer: _Buffer) -> None:
        if not buffer.is_persistent:
            self.changed_unsaved.add(buffer.name)


class _Buffer:
    def __init__(self, name: str, module: torch.nn.Module, key: str, buffer: torch.Tensor):
        self.name, self._module, self._key, self._buffer = name, module, key, buffer
        self.now = buffer.detach()  # shares its memory
        self.begin = self.now.clone()
        self.is_persistent = key not in module._non_persistent_buffers_set

    def adopt(self) -> None:
        """If a module has assigned another tensor, copies its values into the first one and
        restores that."""
        other = self._module._buffers.get(self._key)
        if other is self._buffer:
            return
        if other is None or other.shape != self.now.shape or other.dtype != self.now.dtype:
            raise UsageError(f"buffer {self.name} has become "
                             + (f"{list(other.shape)} {dtype_name(other.dtype)}"
                                if other is not None else "None")
                             + f" during a step: it was {list(self.now.shape)} "
                             f"{dtype_name(self.now.dtype)}")
        self.now.copy_(other.detach())
        self._module._buffers[self._key] = self._buffer

    def add_change(self, sums: list[float], virtual_workers: int) -> bool:
        """Sets counts to what the step began with plus what every virtual worker has added. `sums`:
        of the virtual workers' changes. Returns whether there are any."""
        self.now.copy_(self.begin)
        if not any(sums):
            return False
        if any(c % virtual_workers != 0 or abs(c) >= _LARGEST_SUM for c in sums):
            raise UsageError(f"buffer {self.name} has changed differently in the virtual workers of "
                             "a step, or by more than a count does: it has to change by the same "
                             "small number in each")
        change = torch.tensor([int(c) // virtual_workers for c in sums]).reshape(self.now.shape)
        self.now.copy_((self.begin.to(torch.int64) + change).to(self.now.dtype))
        return True


class _Sum:
    """The sum of all buffers that are summed in one type."""

    def __init__(self, communicator: Communicator, virtual_workers: int, dtype: str,
                 buffers: list[_Buffer]):
        self.buffers = buffers
        self.parts = Parts([(b.now.numel(), dtype_name(b.now.dtype)) for b in buffers])
        self.reduction = Reduction(communicator, virtual_workers,
                                   sum(b.now.numel() for b in buffers), dtype,
                                   name=f"buffers ({buffers[0].name} to {buffers[-1].name})")

    def add(self) -> None:
        values = [b.now.contiguous() for b in self.buffers]
        for piece, value in zip(self.parts.pieces, values):
            piece.data = value.data_ptr()
        self.reduction.add(self.parts)

    def finish(self, scale: float) -> None:
        values = [b.now.contiguous() for b in self.buffers]
        for piece, value in zip(self.parts.pieces, values):
            piece.data = value.data_ptr()
        self.reduction.finish(self.parts, scale)
        for buffer, value in zip(self.buffers, values):
            if value is not buffer.now:
                buffer.now.copy_(value)


def _buffers_of(model: torch.nn.Module) -> list[_Buffer]:
    found: dict[int, _Buffer] = {}  # by the tensor's id: modules may share one
    for prefix, module in model.named_modules():
        for key, buffer in module._buffers.items():
            if buffer is None or id(buffer) in found or buffer.numel() == 0:
                continue
            name = f"{prefix}.{key}" if prefix else key
            if buffer.device.type != "cpu" or buffer.is_complex():
                raise UsageError(f"buffer {name} is {dtype_name(buffer.dtype)} on {buffer.device}: "
                                 "VirtualStep keeps real buffers on CPUs")
            found[id(buffer)] = _Buffer(name, module, key, buffer)
    return list(found.values())


def _sum_type(buffer: torch.Tensor) -> str:
    return "float64" if buffer.dtype == torch.float64 else "float32"
