"""The state that elastic training keeps: committed to disk, and equal on all workers."""

from __future__ import annotations

import abc
import copy
import os
from typing import Any, Callable, Iterable

import numpy as np
import torch

from renzan._requests import requests
from renzan.communicator import Communicator
from renzan.horovod.exceptions import HostsUpdatedInterrupt
from renzan.horovod.torch import _workers
from renzan.horovod.torch.collectives import exchange_bytes
from renzan.horovod.torch.elastic._commits import Commits, say
from renzan.horovod.torch.elastic.sampler import ElasticSampler
from renzan.horovod.torch.functions import (broadcast_object, broadcast_optimizer_state,
                                            broadcast_parameters)
from renzan.horovod.torch.process_set import global_process_set
from renzan.horovod.torch.reductions import Max, allreduce
from renzan.torch.contents import Contents
from renzan.torch.worker0 import on_worker_0


class State(abc.ABC):
    """The interface; a script may have its own."""

    def __init__(self) -> None:
        self._reset_callbacks: list[Callable[[], None]] = []

    def register_reset_callbacks(self, callbacks: Iterable[Callable[[], None]]) -> None:
        """Functions to call after a restart that resumes from a commit, once the state is equal on
        all workers: to adapt the learning rate to their number, say."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """Called by elastic.run after such a restart."""
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def commit(self) -> None:
        """Keeps the state, then check_host_updates(). All workers call it at the same point."""
        self.save()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Raises HostsUpdatedInterrupt on all workers if one was asked to stop (SIGTERM). All
        workers call it."""
        def stops(comm: Communicator) -> int:
            return int(np.sum(comm.all_gather(np.array([requests.stops]))))
        if exchange_bytes("check_host_updates", stops, global_process_set) > 0:
            raise HostsUpdatedInterrupt()

    def load(self) -> bool:
        """Worker 0 takes the last commit of an earlier attempt. Returns whether there is one."""
        return False

    def reset(self) -> None:
        """Adapts to another number of workers."""

    @abc.abstractmethod
    def save(self) -> None:
        """Copies the state in memory."""

    @abc.abstractmethod
    def restore(self) -> None:
        """Goes back to save()."""

    @abc.abstractmethod
    def sync(self) -> None:
        """Gives all workers the state of worker 0."""


class ObjectState(State):
    """Keeps keyword arguments, as attributes (state.epoch).

    They are numbers, texts, lists and dicts, NumPy arrays, tensors, and objects with state_dict and
    load_state_dict: modules, optimizers, schedulers, ElasticSamplers.

    commit() writes a checkpoint of them to RENZAN_CHECKPOINT_DIR (the format of
    renzan.load_checkpoint, without pickle) and returns when it is on disk; the newest three are
    kept. A commit takes that long: Horovod's is a copy in memory, which does not survive a restart.
    Without RENZAN_CHECKPOINT_DIR, a commit here is such a copy as well.
    """

    def __init__(self, bcast_object: object = None, get_rank: object = None, **kwargs: Any):
        """`bcast_object` and `get_rank` are ignored."""
        super().__init__()
        self._names = list(kwargs)
        self._model: torch.nn.Module = torch.nn.Module()
        self._optimizer: torch.optim.Optimizer | None = None
        self._commits: Commits | None = None  # of worker 0
        self._directory = os.environ.get("RENZAN_CHECKPOINT_DIR", "")
        for name, value in kwargs.items():
            if hasattr(self, name):
                raise ValueError(f"a state cannot have '{name}': it has something of that name")
            setattr(self, name, value)
        self.save()

    def commit(self) -> None:
        """Keeps the state on disk, then check_host_updates(). All workers call it at the same
        point."""
        for sampler in self._all(ElasticSampler):
            _merge(sampler)
        self.save()
        if self._directory:
            self._on_worker_0("commit", self._write)
        self.check_host_updates()

    def load(self) -> bool:
        """Worker 0 takes the last commit in RENZAN_CHECKPOINT_DIR. Returns whether there is one."""
        if not self._directory:
            if _workers.rank() == 0:
                say("RENZAN_CHECKPOINT_DIR is not set: no commit outlives this process")
            return False
        return self._on_worker_0("elastic.run", self._read)

    def save(self) -> None:
        """Copies what is kept in memory."""
        self._saved = {name: copy.deepcopy(_value(thing)) for name, thing in self._things().items()}

    def restore(self) -> None:
        """Goes back to the last save(), commit() or sync()."""
        for name, thing in self._things().items():
            saved = copy.deepcopy(self._saved[name])
            if _has_state(thing):
                thing.load_state_dict(saved)
            else:
                setattr(self, name, saved)

    def sync(self) -> None:
        """Gives all workers what worker 0 keeps; what any worker has processed counts for all."""
        plain: dict[str, Any] = {}
        for name, thing in self._things().items():
            if isinstance(thing, torch.nn.Module):
                broadcast_parameters(thing.state_dict(), 0)
            elif isinstance(thing, torch.optim.Optimizer):
                broadcast_optimizer_state(thing, 0)
            elif isinstance(thing, ElasticSampler):
                _merge(thing)
                thing.load_state_dict(broadcast_object(thing.state_dict(), name=name))
            elif _has_state(thing):
                thing.load_state_dict(broadcast_object(thing.state_dict(), name=name))
            else:
                plain[name] = thing
        for name, value in broadcast_object(plain, name="state").items():
            setattr(self, name, value)
        self.save()

    def reset(self) -> None:
        """Deals the rest of the epoch to the current workers."""
        for sampler in self._all(ElasticSampler):
            sampler.reset()

    def _things(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._names}

    def _all(self, kind: type) -> list[Any]:
        return [thing for thing in self._things().values() if isinstance(thing, kind)]

    def _contents(self, extra: dict[str, Any]) -> Contents:
        return Contents(self._model, self._optimizer, None, extra)

    def _extra(self) -> dict[str, Any]:
        return {name: thing for name, thing in self._things().items()
                if thing is not self._model and thing is not self._optimizer}

    def _write(self) -> None:
        if self._commits is None:
            self._commits = Commits(self._directory)
        self._commits.write(self._contents(self._extra()))

    def _read(self) -> bool:
        self._commits = Commits(self._directory)
        extra = self._extra()
        found = self._commits.restore_newest(self._contents(extra))
        for name, thing in extra.items():
            setattr(self, name, thing)
        return found

    @staticmethod
    def _on_worker_0(text: str, work: Callable[[], Any]) -> Any:
        return exchange_bytes(text, lambda comm: on_worker_0(comm, work), global_process_set)


class TorchState(ObjectState):
    """An ObjectState with a model and its optimizer.

        state = hvd.elastic.TorchState(model, optimizer, epoch=0, batch=0)
    """

    def __init__(self, model: torch.nn.Module | None = None,
                 optimizer: torch.optim.Optimizer | None = None, **kwargs: Any):
        """`model` and `optimizer` become attributes as well, unless they are None."""
        named = {name: thing for name, thing in (("model", model), ("optimizer", optimizer))
                 if thing is not None}
        super().__init__(**named, **kwargs)
        if model is not None:
            self._model = model
        self._optimizer = optimizer


def _has_state(thing: Any) -> bool:
    return hasattr(thing, "state_dict") and hasattr(thing, "load_state_dict")


def _value(thing: Any) -> Any:
    return thing.state_dict() if _has_state(thing) else thing


def _merge(sampler: ElasticSampler) -> None:
    """Marks as processed what any worker has processed."""
    state = sampler.state_dict()
    processed = torch.from_numpy(state["processed"].astype(np.uint8))
    sampler.record_indices(torch.nonzero(allreduce(processed, op=Max)).flatten().tolist())
