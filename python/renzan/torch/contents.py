"""What a checkpoint of a PyTorch program holds: model, optimizer, scheduler and extra, by names.

    model.fc.weight                 a parameter or buffer, as in model.state_dict()
    optimizer.fc.weight/exp_avg     a state of the optimizer for that parameter
    scheduler. , extra.             tensors in the scheduler's state and in `extra`

Everything else (hyperparameters, counters, the structure of these) is JSON in the run map.
"""

from __future__ import annotations

import json
import math
from typing import Any, Callable, Mapping

import torch

from renzan.checkpoint import Array
from renzan.errors import ConfigError
from renzan.torch.tree import DTYPES, Tensors, add_tensor, describe, flatten, restore, unflatten


class Contents:
    """A model and what is trained with it."""

    def __init__(self, model: torch.nn.Module, optimizer: Any, scheduler: Any,
                 extra: dict[str, Any]):
        """`optimizer` and `scheduler` are None if there is none."""
        # A wrapper of the model for a group of workers is not part of it.
        self._model = (model.module if isinstance(
            model, (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)) else model)
        self._optimizer, self._scheduler, self._extra = optimizer, scheduler, extra

    def check_complete(self) -> None:
        """Raises a ConfigError for anything that could not be saved, and for a parameter of the
        optimizer that is saved nowhere."""
        for name, value in [*self._model.named_parameters(), *self._model.named_buffers()]:
            if torch.nn.parameter.is_lazy(value):
                raise ConfigError(f"'{name}' of the model has no shape yet: run the model on one "
                                  "batch before")
        tensors, _ = self.collect()
        saved = {t.data_ptr() for t in tensors.values()}
        if self._optimizer is None:
            return
        for name, parameter in self._parameter_names().values():
            # A model's state_dict may return copies of its parameters: these have the parameters'
            # names.
            if (f"model.{name}" not in tensors and parameter.numel() > 0
                    and parameter.data_ptr() not in saved):
                raise ConfigError(f"the optimizer has a parameter {list(parameter.shape)} that is "
                                  "neither in the model nor in `extra`: it would not be saved")

    def collect(self) -> tuple[Tensors, dict[str, str]]:
        """The tensors, which are those in use and not copies, and the run map."""
        tensors: Tensors = {}
        trees: dict[str, Any] = {"model": {}}
        for name, value in self._model.state_dict().items():
            if isinstance(value, torch.Tensor):
                add_tensor(f"model.{name}", value, tensors)
            else:
                trees["model"][name] = flatten(f"model.{name}", value, tensors)
        if self._optimizer is not None:
            trees["optimizer"] = self._collect_optimizer(tensors)
        if self._scheduler is not None:
            trees["scheduler"] = flatten("scheduler", self._scheduler.state_dict(), tensors)
        trees["extra"] = flatten("extra", self._extra, tensors)
        run = {name: json.dumps(tree) for name, tree in trees.items()}
        if self._scheduler is not None:
            run["scheduler.class"] = type(self._scheduler).__name__
        return tensors, run

    def check(self, saved: Mapping[str, torch.Tensor], run: Mapping[str, str]) -> None:
        """A ConfigError that names the first difference unless the checkpoint is of this program's
        model and optimizer."""
        there = {key.removeprefix("model."): value for key, value in saved.items()
                 if key.startswith("model.")}
        here = {name: value for name, value in self._model.state_dict().items()
                if isinstance(value, torch.Tensor)}
        for name, value in here.items():
            if name not in there:
                raise ConfigError(f"parameter '{name}' of the model, {describe(value)}, is not in it")
            if describe(value) != describe(there[name]):
                raise ConfigError(f"parameter '{name}' is {describe(there[name])} there and "
                                  f"{describe(value)} here")
        for name, value in there.items():
            if name not in here:
                raise ConfigError(f"its parameter '{name}', {describe(value)}, is not in the model")
        for what, mine in (("optimizer", self._optimizer), ("scheduler", self._scheduler)):
            if (mine is not None) != (what in run):
                raise ConfigError(f"it was written {'with' if what in run else 'without'} "
                                  f"{'an' if what == 'optimizer' else 'a'} {what}")
        its = run.get("scheduler.class", "")
        mine = "" if self._scheduler is None else type(self._scheduler).__name__
        if its not in ("", mine):
            raise ConfigError(f"its scheduler is {its}, and {mine} here")
        if self._optimizer is not None:
            self._check_optimizer(json.loads(run["optimizer"]))

    def restore(self, saved: Callable[[str], torch.Tensor], run: Mapping[str, str]) -> None:
        """Gives everything the values of a checkpoint that check() has accepted."""
        trees = {name: json.loads(run[name]) for name in ("model", "optimizer", "scheduler", "extra")
                 if name in run}
        state = self._model.state_dict()  # including its versions, in _metadata
        for name, value in state.items():
            state[name] = (saved(f"model.{name}") if isinstance(value, torch.Tensor)
                           else unflatten(trees["model"][name], saved))
        self._model.load_state_dict(state)
        if self._optimizer is not None:
            self._restore_optimizer(trees["optimizer"], saved)
        if self._scheduler is not None:
            self._scheduler.load_state_dict(unflatten(trees["scheduler"], saved))
        restore(self._extra, unflatten(trees["extra"], saved), "extra")

    def hyperparameters(self) -> list[dict[str, Any]]:
        """For each parameter group of the optimizer: numbers, and tuples of them as lists, by name.
        `lr` is the initial one, if there is a scheduler."""
        if self._optimizer is None:
            return []
        groups = [{**group, "lr": group.get("initial_lr", group.get("lr")), "initial_lr": None}
                  for group in self._optimizer.param_groups]
        return [{name: list(value) if isinstance(value, tuple) else value
                 for name, value in group.items() if _is_simple(value)} for group in groups]

    def _parameter_names(self) -> dict[int, tuple[str, torch.Tensor]]:
        """The optimizer's parameters as its state_dict numbers them: number -> (name, parameter)."""
        names = {id(p): name for name, p in self._model.named_parameters()}
        parameters: dict[int, torch.Tensor] = {}
        for group in self._optimizer.param_groups:
            for p in group["params"]:
                parameters.setdefault(id(p), p)
        return {number: (names.get(identity, f"unnamed.{number}"), p)
                for number, (identity, p) in enumerate(parameters.items())}

    def _collect_optimizer(self, tensors: Tensors) -> dict[str, Any]:
        names = self._parameter_names()
        state = self._optimizer.state_dict()
        groups = []
        for i, group in enumerate(state["param_groups"]):
            hyper = {k: v for k, v in group.items() if k != "params"}
            groups.append({"params": [names[number][0] for number in group["params"]],
                           "hyper": flatten(f"optimizer.groups/{i}", hyper, tensors)})
        states = {}
        for number, values in state["state"].items():
            name = names[number][0]
            # A state's name follows a slash, as in every checkpoint of Renzan.
            states[name] = {k: flatten(f"optimizer.{name}/{k}", v, tensors)
                            for k, v in values.items()}
        return {"class": type(self._optimizer).__name__, "groups": groups, "state": states}

    def _check_optimizer(self, tree: dict[str, Any]) -> None:
        mine = type(self._optimizer).__name__
        if tree["class"] != mine:
            raise ConfigError(f"its optimizer is {tree['class']}, and {mine} here")
        names = {id(p): name for name, p in self._parameter_names().values()}
        here = [[names[id(p)] for p in group["params"]] for group in self._optimizer.param_groups]
        there = [group["params"] for group in tree["groups"]]
        if len(here) != len(there):
            raise ConfigError(f"its optimizer has {len(there)} parameter groups, and {len(here)} here")
        for i, (a, b) in enumerate(zip(there, here)):
            if a != b:
                first = next((n for n in a + b if n not in a or n not in b), a[0])
                raise ConfigError(f"parameter group {i} of the optimizer has other parameters (or in "
                                  f"another order): '{first}' is the first that differs")

    def _restore_optimizer(self, tree: dict[str, Any],
                           saved: Callable[[str], torch.Tensor]) -> None:
        names = self._parameter_names()
        numbers = {name: number for number, (name, _) in names.items()}
        state = {numbers[name]: {k: unflatten(v, saved) for k, v in values.items()}
                 for name, values in tree["state"].items()}
        groups = [{**unflatten(group["hyper"], saved),
                   "params": [numbers[name] for name in group["params"]]}
                  for group in tree["groups"]]
        self._optimizer.load_state_dict({"state": state, "param_groups": groups})
        # PyTorch converts states to their parameter's type, and does not keep their strides.
        for number, values in state.items():
            parameter = names[number][1].detach()
            loaded = self._optimizer.state[names[number][1]]
            for k, value in values.items():
                if isinstance(value, torch.Tensor):
                    loaded[k] = _like(parameter, value).to(loaded[k].device)


def _is_simple(value: Any) -> bool:
    """Whether it is a finite number (a bool is one), or a tuple of them."""
    if isinstance(value, tuple):
        return all(map(_is_simple, value))
    return isinstance(value, (int, float)) and math.isfinite(value)


def _like(parameter: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """A copy of `value`, with the parameter's memory layout if it has its shape."""
    if value.shape != parameter.shape:
        return value.clone()
    return torch.empty_like(parameter, dtype=value.dtype, device="cpu",
                            memory_format=torch.preserve_format).copy_(value)


def arrays(tensors: Tensors) -> list[Array]:
    """The tensors, which are on the CPU and contiguous, as the C interface takes them."""
    return [Array(key, DTYPES[t.dtype], tuple(t.shape), t.data_ptr(), t.numel() * t.element_size())
            for key, t in tensors.items()]


def on_cpu(tensors: Tensors, copy: bool) -> Tensors:
    """The tensors, contiguous and on the CPU, as copies or as they are where possible."""
    # .contiguous() does not copy a tensor that is contiguous already.
    moved = {key: t.to("cpu").contiguous() for key, t in tensors.items()}
    if not copy:
        return moved
    return {key: t.clone() if t.data_ptr() == tensors[key].data_ptr() else t
            for key, t in moved.items()}
