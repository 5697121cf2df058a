"""DistributedOptimizer: an optimizer that applies the average of the workers' gradients."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any, Callable, Iterable, Iterator, Sequence

import torch

from renzan.errors import UsageError
from renzan.horovod.torch._buckets import Buckets, by_groups, by_number, by_size, fusion_threshold
from renzan.horovod.torch.compression import Compression, Compressor
from renzan.horovod.torch.process_set import ProcessSet, global_process_set
from renzan.horovod.torch.reductions import Average, ReduceOp, resolve, submit
from renzan.horovod.torch.sparse import sparse_allreduce_async


class _DistributedOptimizer:
    """Mixed into the class of the optimizer."""

    def _distribute(self, buckets: list[list[torch.Tensor]], names: dict[torch.Tensor, str],
                    passes: int, compression: type[Compressor], sparse_as_dense: bool,
                    options: dict[str, Any]) -> None:
        self._names, self._compression, self._options = names, compression, options
        self._sparse_as_dense = sparse_as_dense
        self._is_synchronized = False
        self._should_synchronize = True
        self._buckets = Buckets(buckets, passes, self._submit)

    def _submit(self, bucket: list[torch.Tensor]) -> list[Callable[[], Any]]:
        dense: list[torch.Tensor] = []
        waits: list[Callable[[], Any]] = []
        for parameter in bucket:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            elif parameter.grad.is_sparse and self._sparse_as_dense:
                parameter.grad = parameter.grad.to_dense()
            if parameter.grad.is_sparse:
                waits.append(self._submit_sparse(parameter))
            else:
                dense.append(parameter)
        if dense:
            name = f"gradient of {self._names[dense[0]]}"
            if len(dense) > 1:
                name = f"gradients of {self._names[dense[0]]} to {self._names[dense[-1]]}"
            gradients = [p.grad for p in dense if p.grad is not None]
            waits.append(submit(gradients, in_place=True, name=name,
                                compression=self._compression, **self._options).wait)
        return waits

    def _submit_sparse(self, parameter: torch.Tensor) -> Callable[[], None]:
        assert parameter.grad is not None
        wait = sparse_allreduce_async(parameter.grad, f"gradient of {self._names[parameter]}",
                                      self._options["op"], self._options["process_set"])

        def finish() -> None:
            parameter.grad = wait()
        return finish

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Applies from the next step on."""
        if self._buckets.under_way:
            raise UsageError("set_backward_passes_per_step() between backward() and step()")
        self._buckets.passes = passes
        self._buckets.reset()

    def synchronize(self) -> None:
        """Waits until the gradients are those of all workers. A parameter without a gradient on
        this worker takes part with zeros."""
        self._buckets.finish()
        self._is_synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Within it, step() uses gradients as they are: after synchronize() and clipping, say."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """The optimizer's step with the gradients of all workers. A closure is evaluated once."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self._should_synchronize:
            if self._is_synchronized:
                warnings.warn("step() after synchronize(), without skip_synchronize(), reduces the "
                              "gradients once more")
            self.synchronize()
        self._is_synchronized = False
        super().step()  # type: ignore[misc]  # of the optimizer's class
        return loss

    def zero_grad(self, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's."""
        if self._buckets.under_way:
            raise UsageError("zero_grad() between backward() and step() or synchronize(): "
                             "gradients are being reduced; call it before backward()")
        return super().zero_grad(*args, **kwargs)  # type: ignore[misc]


def DistributedOptimizer(optimizer: torch.optim.Optimizer,  # pylint: disable=invalid-name
                         named_parameters: Iterable[tuple[str, torch.Tensor]] | None = None,
                         compression: type[Compressor] = Compression.none,
                         backward_passes_per_step: int = 1, op: ReduceOp = Average,
                         gradient_predivide_factor: float = 1.0, num_groups: int = 0,
                         groups: int | Sequence[Sequence[torch.Tensor]] | None = None,
                         sparse_as_dense: bool = False,
                         process_set: ProcessSet = global_process_set) -> torch.optim.Optimizer:
    """An optimizer like `optimizer` (with its parameters and its state) whose step() applies the
    average of the workers' gradients; all workers make it for the same parameters.

    Gradients are reduced during backward, in buckets of HOROVOD_FUSION_THRESHOLD bytes (64 MiB by
    default), or of `groups`: a list of lists of parameters or a number, as `num_groups` (deprecated
    by Horovod). The order of the buckets is fixed; between backward() and step() another operation
    is in its place on all workers only if every parameter has got a gradient on all of them.

    named_parameters: model.named_parameters(), for errors. compression: Compression.none, .fp16 or
    a class like them. backward_passes_per_step: gradients of so many backward passes are added
    before they are reduced. op: Average or Sum. gradient_predivide_factor: f divides gradients by f
    before their sum and by W/f after. sparse_as_dense: sparse gradients become dense; otherwise the
    workers' entries are gathered.
    """
    op = resolve(op)
    if isinstance(optimizer, _DistributedOptimizer):
        raise ValueError("this is a DistributedOptimizer already")
    if gradient_predivide_factor != 1.0 and op is not Average:
        raise ValueError("gradient_predivide_factor is for op=Average")
    if backward_passes_per_step < 1:
        raise ValueError(f"backward_passes_per_step={backward_passes_per_step}: at least 1")
    if num_groups and groups is not None:
        raise ValueError("num_groups and groups are both given: give groups only")
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    names = _names(parameters, named_parameters)
    trained = [p for p in reversed(parameters) if p.requires_grad]
    groups = groups or num_groups
    if not groups:
        buckets = by_size(trained, fusion_threshold())
    elif isinstance(groups, int):
        buckets = by_number(trained, groups)
    else:
        buckets = by_groups(trained, groups)
    base = type(optimizer)
    distributed: Any = object.__new__(type(base.__name__, (_DistributedOptimizer, base), {}))
    # A scheduler may have wrapped the other optimizer's step.
    distributed.__dict__.update({k: v for k, v in vars(optimizer).items() if k != "step"})
    distributed._distribute(
        buckets, names, backward_passes_per_step, compression, sparse_as_dense,
        dict(op=op, prescale_factor=1.0 / gradient_predivide_factor,
             postscale_factor=gradient_predivide_factor, process_set=process_set))
    return distributed


def _names(parameters: list[torch.Tensor],
           named_parameters: Iterable[tuple[str, torch.Tensor]] | None) -> dict[torch.Tensor, str]:
    if named_parameters is None:
        return {p: f"parameter {i}" for i, p in enumerate(parameters)}
    named = list(named_parameters)
    if not all(isinstance(entry, tuple) and len(entry) == 2 for entry in named):
        raise ValueError("named_parameters: give model.named_parameters()")
    if len({name for name, _ in named}) != len(named):
        raise ValueError("named_parameters: a name appears twice")
    names = {p: name for name, p in named}
    missing = sum(p not in names for p in parameters)
    if missing:
        raise ValueError(f"named_parameters: {missing} of the optimizer's {len(parameters)} "
                         "parameters have no name")
    return names
