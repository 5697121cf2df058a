"""One training step whose arithmetic does not depend on the number of workers."""

from __future__ import annotations

import contextlib
import json
import math
import warnings
from typing import Any, Callable, ContextManager

import numpy as np
import torch

import renzan
from renzan._requests import requests
from renzan.communicator import Communicator
from renzan.errors import ConfigError, DivergedError, UsageError
from renzan.reduction import Parts, Reduction, virtual_worker_range
from renzan.torch.activity import activity
from renzan.torch.buckets import Buckets, dtype_name
from renzan.torch.buffers import Buffers
from renzan.torch.micro_batches import rows_from, rows_of
from renzan.torch.randomness import seed_all

# The numbers that are summed over all virtual workers at each step, before those of buffers and
# parameters.
_LOSS, _ROWS, _SQUARED_ROWS, _STOPS, _CHECKPOINTS, _FIXED = range(6)


class VirtualStep:
    """One step of synchronous data-parallel training, with one result on any number of workers.

        step = renzan.torch.VirtualStep(model, optimizer, virtual_workers=8, seed=1)
        for inputs, targets in loader:  # this worker's part of the global batch, by a Sampler
            loss = step((inputs, targets),
                        lambda model, micro: cross_entropy(model(micro[0]), micro[1]))

    The global batch is dealt to `virtual_workers`, of which each worker carries a contiguous run.
    A virtual worker runs its micro-batch with random state keyed by (seed, step, virtual worker) and
    with the buffers that the step began with. The virtual workers' gradients are kept apart and
    summed in the order of one fixed binary tree; so are BatchNorm's running statistics, of which the
    step takes the mean. The bits of the model are then a function of the data, the seed and the
    number of virtual workers, as long as PyTorch's own are: the same version, instruction set and
    number of threads (torch.set_num_threads), and torch.use_deterministic_algorithms(True), which
    renzan.torch.run sets.

    Parameters and buffers of worker 0 are given to all at the first step. Frozen parameters
    (requires_grad=False), parameters without gradients, several parameter groups and parameters of
    float16, bfloat16, float32 and float64 are fine; sparse gradients, SyncBatchNorm, models wrapped
    in DistributedDataParallel, parameters that change between steps, and parameters of the
    optimizer that the model lacks are errors. A step that fails on one of several workers has to
    end it.

    Gradients are exchanged in buckets while the last virtual worker's backward goes on. Beside the
    gradients in `parameter.grad` a worker holds about log2 of its number of virtual workers of them.
    """

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer,
                 virtual_workers: int = 8, seed: int = 1, *, clip_norm: float | None = None,
                 accumulate: int = 1, loss_scale: float = 1.0,
                 autocast: torch.dtype | None = None, compression: str | None = None,
                 bucket_bytes: int = 25 << 20, communicator: Communicator | None = None):
        """`virtual_workers`: at least the number of workers; it changes the bits.
        `clip_norm`: the largest norm of the whole gradient.
        `accumulate`: micro-batches run in so many pieces, one after another, to save memory.
        `autocast`: torch.bfloat16 or torch.float16 for the forward pass; with float16 `loss_scale`
        multiplies the loss before backward, and divides the gradients after it.
        `compression`: "float16" or "bfloat16" rounds gradients and their partial sums to 16 bits,
        and sends these.
        `communicator`: by default that of renzan.init()."""
        if virtual_workers < 1 or accumulate < 1:
            raise ConfigError(f"virtual_workers {virtual_workers}, accumulate {accumulate}: at least "
                              "1 is needed")
        if compression not in (None, "float16", "bfloat16"):
            raise ConfigError(f"compression '{compression}' is neither float16 nor bfloat16")
        if not (loss_scale > 0 and math.isfinite(loss_scale)):
            raise ConfigError(f"a loss scale of {loss_scale}: it has to be positive")
        if clip_norm is not None and not clip_norm > 0:
            raise ConfigError(f"a largest norm of {clip_norm}: it has to be positive")
        if autocast is not None and not _autocasts(autocast):
            raise ConfigError(f"PyTorch {torch.__version__} has no autocast to {autocast} on CPUs: use "
                              "torch.bfloat16")
        self.model, self.optimizer = model, optimizer
        self.virtual_workers, self.seed = virtual_workers, seed
        self.communicator = communicator or renzan.init()
        self.step_count = 0
        """Steps done, including those before resuming."""
        self.agreed: tuple[int, int] | None = None
        """How often a stop and a checkpoint had been requested as of the last step, summed over
        each virtual worker's worker; the same on all workers. None before the first step."""
        activity.prepared = True
        self._clip_norm, self._accumulate, self._loss_scale = clip_norm, accumulate, loss_scale
        self._autocast, self._compression, self._bucket_bytes = autocast, compression, bucket_bytes
        self._own = virtual_worker_range(virtual_workers, self.communicator.world_size,
                                         self.communicator.rank)
        if not isinstance(getattr(optimizer, "param_groups", None), list):
            raise UsageError(f"the optimizer is a {type(optimizer).__name__}: it has to be one of "
                             "PyTorch's kind, with param_groups")
        self._failed = False  # a step has begun but not ended
        self._described: list[dict[str, Any]] = []
        self._parameters: list[tuple[str, torch.nn.Parameter]] = []  # the trained ones
        self._layout: list[tuple[str, int, torch.Size, torch.dtype]] = []
        self._buckets: Buckets
        self._buffers: Buffers
        self._numbers: Reduction
        self._values: np.ndarray  # of numbers
        self._values_parts: Parts

    def __call__(self, batch: Any, loss_function: Callable[[torch.nn.Module, Any], torch.Tensor]
                 ) -> float:
        """Trains on one global batch, of which `batch` is this worker's part: tensors, NumPy arrays
        and lists of texts or numbers, or tuples, lists and dicts of them, whose first dimension is
        that of samples.
        loss_function(model, micro_batch) returns the mean loss of a micro-batch. Returns the mean
        loss of the global batch, the same on all workers."""
        loss = self.backward(batch, loss_function)
        self.update()
        return loss

    def backward(self, batch: Any,
                 loss_function: Callable[[torch.nn.Module, Any], torch.Tensor]) -> float:
        """The first half of a step: the gradients of the global batch in `parameter.grad`. update()
        is the other half."""
        if self._failed and self.communicator.world_size > 1:
            raise UsageError(f"step {self.step_count} has failed, and cannot be left out: the "
                             "other workers go on with it; let its error end this worker")
        self._prepare()
        self._failed = True
        rows = self._micro_batch_rows(batch)
        self.communicator.begin_step(self.step_count)
        self._buffers.begin_step()
        self._buckets.reset()
        self._numbers.reset()
        for v in self._own:
            first = (v - self._own.start) * rows
            micro = rows_from(batch, first, first + rows)
            self._run_virtual_worker(v, micro, rows, loss_function)
        sums = self._exchange()
        self._check_rows(sums, rows)
        loss = sums[_LOSS] / self.virtual_workers
        self.agreed = int(sums[_STOPS]), int(sums[_CHECKPOINTS])
        buffers_end = _FIXED + self._buffers.num_numbers
        self._buffers.finish(sums[_FIXED:buffers_end])
        unused = {name for (name, _), used in zip(self._parameters, sums[buffers_end:])
                  if used == 0}
        not_finite = self._buckets.finish(1.0 / (self.virtual_workers * self._loss_scale), unused)
        self._failed = False  # from here on all workers raise the same
        if not math.isfinite(loss):
            raise DivergedError(f"the loss of step {self.step_count} is {loss}: lower the learning "
                                "rate, or look for bad samples")
        if not_finite:
            raise DivergedError(f"the gradient of {not_finite[0]}"
                                + (f" and {len(not_finite) - 1} more" if not_finite[1:] else "")
                                + f" is not finite at step {self.step_count}: lower the learning "
                                "rate" + (" or the loss scale" if self._loss_scale != 1 else ""))
        # Draws between two steps are also a function of the step.
        seed_all(self.seed, "between steps", self.step_count)
        return loss

    def update(self) -> None:
        """Clips the gradients and applies the optimizer."""
        if self._clip_norm is not None:
            torch.nn.utils.clip_grad_norm_([p for _, p in self._parameters], self._clip_norm)
        self.optimizer.step()
        self.step_count += 1
        activity.steps += 1

    @property
    def gradient_arrays(self) -> int:
        """Gradients of the model's size that a worker holds in addition to those in
        `parameter.grad`."""
        return self._buckets.num_arrays if self._described else 0

    @property
    def unsaved_buffers(self) -> set[str]:
        """Names of buffers that steps have changed and that are registered with
        persistent=False."""
        return self._buffers.changed_unsaved if self._described else set()

    @property
    def arithmetic(self) -> dict[str, str]:
        """Settings that may change between steps, and that change the bits of later steps."""
        return {"accumulate": str(self._accumulate), "autocast": str(self._autocast),
                "clip_norm": str(self._clip_norm), "compression": str(self._compression),
                "loss_scale": str(self._loss_scale)}

    def _run_virtual_worker(self, v: int, micro: Any, rows: int,
                            loss_function: Callable[[torch.nn.Module, Any], torch.Tensor]
                            ) -> None:
        is_last = v == self._own.stop - 1
        seed_all(self.seed, "virtual worker", self.step_count * self.virtual_workers + v)
        if v != self._own.start:
            self._buffers.restore()
        for _, parameter in self._parameters:
            parameter.grad = None
        total = 0.0
        piece_rows = rows // self._accumulate
        for piece in range(self._accumulate):
            begin = piece * piece_rows
            with self._forward_context():
                loss = loss_function(self.model, micro if self._accumulate == 1 else
                                     rows_from(micro, begin, begin + piece_rows))
            if not isinstance(loss, torch.Tensor) or loss.numel() != 1 or not loss.requires_grad:
                raise UsageError("the loss function has to return one number that depends on the "
                                 f"model's parameters, a tensor; it returned {_describe(loss)}")
            total += loss.item()
            self._buckets.begin_backward(is_last and piece == self._accumulate - 1)
            factor = self._loss_scale / self._accumulate
            (loss if factor == 1 else loss * factor).backward()
        numbers = [total / self._accumulate, rows, rows * rows, *map(float, requests.counts())]
        numbers += self._buffers.end_virtual_worker()
        numbers += [0.0 if p.grad is None else 1.0 for _, p in self._parameters]
        self._values[:] = numbers
        self._numbers.add(self._values_parts)
        if not is_last:
            self._buckets.add()

    def _exchange(self) -> list[float]:
        self._buckets.start_rest()
        self._buffers.start()
        self._numbers.start()
        self._buckets.continue_()
        self._buffers.continue_()
        self._numbers.continue_()
        self._numbers.finish(self._values_parts)
        return self._values.tolist()

    def _forward_context(self) -> ContextManager:
        if self._autocast is None:
            return contextlib.nullcontext()
        return torch.autocast("cpu", dtype=self._autocast)

    def _micro_batch_rows(self, batch: Any) -> int:
        rows, own = rows_of(batch), len(self._own)
        if rows == 0 or rows % (own * self._accumulate) != 0:
            pieces = f", in {self._accumulate} pieces each" if self._accumulate > 1 else ""
            raise UsageError(f"worker {self.communicator.rank}: a batch of {rows} samples cannot be "
                             f"split among its {own} virtual workers (of {self.virtual_workers})"
                             f"{pieces}: use renzan.torch.Sampler with the same virtual_workers")
        return rows // own

    def _check_rows(self, sums: list[float], rows: int) -> None:
        # By Cauchy-Schwarz, with equality only if all are equal; exact in float64.
        if sums[_ROWS] ** 2 == sums[_SQUARED_ROWS] * self.virtual_workers:
            return
        every = self.communicator.all_gather(np.array([rows]))
        raise UsageError("the workers' micro-batches differ: "
                         + ", ".join(f"worker {r} has {int(n[0])} samples"
                                     for r, n in enumerate(every)))

    def _prepare(self) -> None:
        """At the first step: agrees with the others and creates what is needed. Later: checks that
        the model has not changed."""
        parameters = [(n, p) for n, p in self.model.named_parameters() if p.requires_grad]
        if not self._described:
            self._check_model(parameters)
        layout = [(n, id(p), p.shape, p.dtype) for n, p in parameters]
        if self._described:
            if layout != self._layout:
                self._fail_changed(parameters)
            return
        described = _described(parameters)
        self._agree(described)
        for tensor in [*self.model.parameters(), *self.model.buffers()]:
            self._broadcast(tensor)
        self._buckets = Buckets(self.communicator, parameters, self.virtual_workers,
                                self._bucket_bytes, self._compression)
        self._buffers = Buffers(self.communicator, self.model, self.virtual_workers)
        self._values = np.empty(_FIXED + self._buffers.num_numbers + len(parameters), np.float64)
        self._values_parts = Parts([(len(self._values), "float64")], [self._values.ctypes.data])
        self._numbers = Reduction(self.communicator, self.virtual_workers, len(self._values),
                                  "float64", name="the step's numbers")
        self._described, self._parameters = described, parameters
        self._layout = layout

    def _fail_changed(self, parameters: list[tuple[str, torch.nn.Parameter]]) -> None:
        described = _described(parameters)
        if described != self._described:
            raise UsageError("the model has changed since the first step: "
                             + _difference(self._described, described, "it was", "it is"))
        replaced = next(n for (n, now), (_, then) in zip(parameters, self._parameters)
                        if now is not then)
        raise UsageError(f"parameter {replaced} is another object than at the first step: change "
                         "its values in place, as load_state_dict does")

    def _check_model(self, parameters: list[tuple[str, torch.nn.Parameter]]) -> None:
        if not parameters:
            raise UsageError("the model has no parameters to train")
        for name, value in [*self.model.named_parameters(), *self.model.named_buffers()]:
            if torch.nn.parameter.is_lazy(value):
                raise UsageError(f"'{name}' of the model has no shape yet: run the model on one "
                                 "batch before")
        if isinstance(self.model, torch.nn.parallel.DistributedDataParallel):
            raise UsageError("the model is wrapped in DistributedDataParallel, which would reduce its "
                             "gradients a second time: pass model.module")
        known = {id(p) for p in self.model.parameters()}
        for group in self.optimizer.param_groups:
            for parameter in group["params"]:
                if id(parameter) not in known:
                    raise UsageError(f"the optimizer has a parameter {list(parameter.shape)} that "
                                     "is not one of the model's, so that its gradient would not be "
                                     "exchanged: make it, or the module it belongs to, an "
                                     "attribute of the model")
        for name, module in self.model.named_modules():
            if isinstance(module, torch.nn.SyncBatchNorm):
                raise UsageError(f"module {name} is a SyncBatchNorm: use an ordinary BatchNorm, whose "
                                 "statistics are those of a virtual worker on any number of workers")

    def _agree(self, described: list[dict[str, Any]]) -> None:
        about = {"virtual workers": self.virtual_workers, "seed": self.seed,
                 "steps done": self.step_count, "torch": str(torch.__version__),
                 "threads of torch": torch.get_num_threads(), **self.arithmetic,
                 "bucket bytes": self._bucket_bytes,
                 "buffers": [[n, list(b.shape), str(b.dtype)]
                             for n, b in self.model.named_buffers()]}
        every = self.communicator.gather_bytes(json.dumps([about, described]).encode())
        there, parameters_there = json.loads(every[0])
        # Every worker compares all, so that all of them fail.
        for rank, text in enumerate(every):
            here, parameters_here = json.loads(text)
            for what, value in there.items():
                if here[what] != value:
                    raise UsageError(f"workers disagree on {what}: worker 0 has {value}, worker "
                                     f"{rank} {here[what]}")
            if parameters_here != parameters_there:
                raise UsageError("workers disagree on the model: " + _difference(
                    parameters_there, parameters_here, "worker 0 has", f"worker {rank}"))

    def _broadcast(self, tensor: torch.Tensor) -> None:
        if self.communicator.world_size == 1 or tensor.numel() == 0:
            return
        values = tensor.detach().contiguous()
        as_bytes = values.reshape(-1).view(torch.uint8).numpy()
        received = self.communicator.broadcast(as_bytes)
        if self.communicator.rank != 0:
            as_bytes[:] = received
            tensor.detach().copy_(values)


def _described(parameters: list[tuple[str, torch.nn.Parameter]]) -> list[dict[str, Any]]:
    return [{"name": name, "shape": list(p.shape), "dtype": dtype_name(p.dtype)}
            for name, p in parameters]


def _autocasts(dtype: torch.dtype) -> bool:
    """Whether this PyTorch does: some versions only warn, and continue in float32."""
    one = torch.ones(1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with torch.autocast("cpu", dtype=dtype):
                return (one @ one).dtype == dtype
        except RuntimeError:
            return False


def _describe(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor {list(value.shape)}" + ("" if value.requires_grad else
                                                  " without a gradient")
    return f"{value!r}" if value is None else f"a {type(value).__name__}"


def _difference(a: list[dict[str, Any]], b: list[dict[str, Any]], at_a: str, at_b: str) -> str:
    """Describes the first parameter in which they differ."""
    def say(one: dict[str, Any]) -> str:
        return f"{one['name']} {one['shape']} {one['dtype']}" if one else "no more parameters"

    size = max(len(a), len(b))
    for x, y in zip(a + [{}] * (size - len(a)), b + [{}] * (size - len(b))):
        if x != y:
            return f"{at_a} {say(x)}, {at_b} {say(y)}"
    return "in nothing"
