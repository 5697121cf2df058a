"""The state of a training program: saved while it trains, resumed at the exact step."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

import numpy as np
import torch

import renzan
from renzan._requests import requests
from renzan.checkpoint import Checkpoint, CheckpointWriter, list_checkpoints, model_sha256
from renzan.communicator import Communicator
from renzan.errors import ConfigError, DataError, Error, Stopped, UsageError
from renzan.torch.activity import activity
from renzan.torch.contents import Contents, arrays, on_cpu
from renzan.torch.environment import describe_environment
from renzan.torch.random_state import get_random_state, set_random_state
from renzan.torch.status import status
from renzan.torch.tree import TORCH_DTYPES, Tensors, flatten, unflatten
from renzan.torch.worker0 import agree, on_worker_0

_PROGRAM = "renzan.torch"
# Not part of the model's digest.
_RANDOM = "progress.random"
# In a checkpoint's run map: the hyperparameters that the optimizer was created with.
_BEGAN_WITH = "optimizer.began_with"


class State:
    """What a training program has to keep: saved in the background, resumed at the exact step.

        state = renzan.torch.State(model, optimizer, scheduler, step=step, sampler=sampler)
        for inputs, targets in loader:
            loss = step(...)
            scheduler.step()
            state.commit()
        state.finish()

    Making it resumes from the newest valid checkpoint in `directory`, whatever the number of workers
    that wrote it: worker 0 reads, the others get it from there, so that hosts need no shared disk.
    A damaged checkpoint is skipped with a warning and moved aside. One of another run (another
    model, optimizer, scheduler, seed, number of virtual workers, batch size or order of samples) is
    a ConfigError that names the first difference. Hyperparameters of the optimizer are those of the
    checkpoint; a program that makes it with others than when the run began is warned. What it needs
    comes before: model, optimizer, VirtualStep and sampler; what begins with the data (an iterator
    of a DataLoader) after.

    Saved are, by their names, the tensors in the state dicts of model, optimizer and scheduler and in
    `extra`, in the safetensors format, without pickle: renzan.load_checkpoint or any other reader
    opens them. A program that runs alone without a VirtualStep gets its random state (of PyTorch,
    NumPy and Python) back, too; on several workers without one, it does not. Worker 0's copies of
    them are written by a thread while training goes on. A checkpoint appears whole or not at all.
    """

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer | None = None,
                 scheduler: Any = None, step: Any = None, sampler: Any = None,
                 extra: dict[str, Any] | None = None, *,
                 directory: str | os.PathLike[str] | None = None, every_steps: int | None = None,
                 every_seconds: float | None = 600.0, keep: int = 3, steps: int | None = None,
                 communicator: Communicator | None = None):
        """`step`: a VirtualStep, whose step_count is set. `sampler`: anything whose attribute `step`
        is to be the number of the next step.
        `extra`: what else is to be kept, by name: objects with state_dict and load_state_dict (a
        GradScaler), tensors, and numbers, texts, lists and dicts, which are found in the attribute
        `extra` after resuming.
        `directory`: by default RENZAN_CHECKPOINT_DIR; with neither, or with "", nothing is saved.
        `every_steps`, `every_seconds`: when to save, besides when asked to and at the end; None:
        never for that reason. `keep`: so many checkpoints.
        `steps`: in total, for status.json; by default those of the sampler.
        `communicator`: by default that of the step, or of renzan.init()."""
        if keep < 1 or (every_steps is not None and every_steps < 1):
            raise ConfigError(f"keep={keep}, every_steps={every_steps}: at least 1 is needed")
        self.extra = {} if extra is None else extra
        """The given `extra`, with the checkpoint's values after resuming."""
        self.step = 0
        """Steps done, including those before resuming."""
        self.resumed_from: str | None = None
        """The checkpoint that it has resumed from."""
        self.commits = 0
        """How often commit() has been called."""
        self._virtual_step, self._sampler = step, sampler
        self._contents = Contents(model, optimizer, scheduler, self.extra)
        self._communicator = communicator or getattr(step, "communicator", None) or renzan.init()
        self._every_steps, self._every_seconds, self._keep = every_steps, every_seconds, keep
        self._steps = steps if steps is not None else getattr(sampler, "num_steps", 0)
        default = os.environ.get("RENZAN_CHECKPOINT_DIR", "")
        self._directory = os.fspath(default if directory is None else directory)
        # The optimizer's hyperparameters when the run began.
        self._began_with = self._contents.hyperparameters()
        # On worker 0:
        self._writer: CheckpointWriter | None = None
        self._flight: _Flight | None = None
        self._saved_step, self._begun_step = -1, 0
        self._checkpoints_seen = 0
        self._told_unsaved: set[str] = set()
        self._last_save = time.monotonic()
        activity.prepared = True
        if self._directory:
            self._contents.check_complete()
            try:
                self._resume()
            except BaseException:
                self.close()  # a State made in its place may write there
                raise
        elif self._is_worker_0:
            _say("no checkpoint directory (directory=, or RENZAN_CHECKPOINT_DIR): nothing is saved")
        activity.states.append(self)

    def commit(self) -> None:
        """After each step (or after every few): saves when that is due. When this or another worker
        was asked to stop, saves and raises Stopped on all workers, after the same step."""
        self.commits += 1
        self._count_step()
        stops, checkpoints = self._agreed_requests()
        if stops > 0:
            self._stop()
        if self._directory and self._is_worker_0:
            self._reap()
            if self._flight is None and self._is_due(checkpoints):
                self._checkpoints_seen = checkpoints
                self._begin_saving(hashed=False)
        status.running(self.step, self._steps, getattr(self._sampler, "batch_size", 0))

    def finish(self) -> None:
        """At the end of the training: saves the last step unless it is saved already, and waits
        until it is on disk. All workers call it; renzan.torch.run does if the program does not."""
        if self._directory:
            on_worker_0(self._communicator, lambda: self._save_now(hashed=True))

    def close(self) -> None:
        """Waits for a checkpoint that is being written, and lets other processes write there."""
        if self._flight is not None:
            self._flight.wait()
            self._reap()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def sha256(self) -> str:
        """The digest of the step and of all tensors that are saved, which does not depend on where
        they were computed: the model_sha256 of a checkpoint."""
        tensors = on_cpu(self._contents.collect()[0], copy=False)
        return model_sha256(self.step, arrays(tensors))

    @property
    def _is_worker_0(self) -> bool:
        return self._communicator.rank == 0

    @property
    def _keeps_random_state(self) -> bool:
        return self._virtual_step is None and self._communicator.world_size == 1

    def _count_step(self) -> None:
        if self._virtual_step is None:
            self.step += 1
        elif self._virtual_step.step_count <= self.step:
            raise UsageError(f"commit() without a step: {self.step} steps are done, as at the last "
                             "commit()")
        else:
            self.step = self._virtual_step.step_count
        if self._sampler is not None:
            self._sampler.step = self.step

    def _agreed_requests(self) -> tuple[int, int]:
        if self._virtual_step is not None:
            return self._virtual_step.agreed or (0, 0)
        if self._communicator.world_size == 1:
            return requests.counts()
        every = self._communicator.all_gather(np.array(requests.counts(), np.int64))
        stops, checkpoints = np.sum(every, axis=0).tolist()
        return stops, checkpoints

    def _is_due(self, checkpoints: int) -> bool:
        if checkpoints > self._checkpoints_seen:
            return True
        if (self._every_steps is not None
                and self.step // self._every_steps > self._begun_step // self._every_steps):
            return True
        return (self._every_seconds is not None
                and time.monotonic() - self._last_save >= self._every_seconds)

    def _stop(self) -> None:
        status.change("stopping")
        if not self._directory:
            raise Stopped(f"stopped after step {self.step}; nothing was saved")
        on_worker_0(self._communicator, self._save_now)
        raise Stopped(f"stopped after step {self.step}, which is saved in {self._directory}: run the "
                      "same command again to go on")

    # ---- Saving, on worker 0 ----

    def _begin_saving(self, hashed: bool) -> None:
        self._begun_step, self._last_save = self.step, time.monotonic()
        tensors, run = self._contents.collect()
        self._tell_unsaved(tensors)
        run[_BEGAN_WITH] = json.dumps(self._began_with)
        if self._keeps_random_state:
            run["random"] = json.dumps(flatten(_RANDOM, get_random_state(), tensors))
        copies = on_cpu(tensors, copy=True)
        assert self._writer is not None
        self._flight = _Flight(self._writer, self.step, copies, {**run, **self._describe()},
                               self._keep, hashed)

    def _tell_unsaved(self, tensors: Tensors) -> None:
        """Warns about each buffer that will not be saved, once."""
        changed: set[str] = getattr(self._virtual_step, "unsaved_buffers", set())
        unsaved = changed - self._told_unsaved
        if not unsaved:
            return
        saved = {t.data_ptr() for t in tensors.values()}  # in `extra`, or under another name
        buffers = dict(self._virtual_step.model.named_buffers())
        for name in sorted(unsaved):
            if name in buffers and buffers[name].data_ptr() not in saved:
                _say(f"warning: buffer {name} is changed by steps and is registered with "
                     "persistent=False: it is not saved, and a resumed run begins with a new one: "
                     "make it persistent")
        self._told_unsaved |= unsaved

    def _reap(self) -> None:
        """Handles the outcome of a checkpoint that was being written."""
        if self._flight is None or not self._flight.finished():
            return
        flight, self._flight = self._flight, None
        if flight.failure is None:
            self._saved_step = flight.step
            status.saved(flight.step, flight.end)
        else:
            _say(f"warning: the checkpoint of step {flight.step} could not be written: "
                 f"{flight.failure}")

    def _save_now(self, hashed: bool = False) -> None:
        if self._flight is not None:
            self._flight.wait()
            self._reap()
        if self._saved_step == self.step:
            return
        self._begin_saving(hashed)
        assert self._flight is not None
        self._flight.wait()
        flight, self._flight = self._flight, None
        if flight.failure is not None:
            raise flight.failure
        self._saved_step = flight.step
        status.saved(flight.step, flight.end)

    # ---- Resuming ----

    def _resume(self) -> None:
        saved: Tensors = {}
        found = on_worker_0(self._communicator, lambda: self._read_newest(saved))
        if found is None:
            return
        self._broadcast(found["infos"], saved)
        name = found["path"]
        # Otherwise workers that disagree (on the model, say) would wait for each other.
        agree(self._communicator, lambda: self._check(name, found["run"], saved))
        agree(self._communicator, lambda: self._contents.restore(saved.__getitem__, found["run"]))
        if self._keeps_random_state and "random" in found["run"]:
            set_random_state(unflatten(json.loads(found["run"]["random"]), saved.__getitem__))
        if self._is_worker_0:
            for step in found["damaged"]:
                self._move_aside(step)
            self._warn_of_changes(name, found["run"])
        if _BEGAN_WITH in found["run"]:
            self._began_with = json.loads(found["run"][_BEGAN_WITH])
        self.step, self.resumed_from = found["step"], name
        self._saved_step = self._begun_step = self.step
        if self._virtual_step is not None:
            self._virtual_step.step_count = self.step
        if self._sampler is not None:
            self._sampler.step = self.step
        status.saved(found["step"], found["unix_seconds"])
        if self._is_worker_0:
            _say(f"resumed from {name}")

    def _read_newest(self, saved: Tensors) -> dict[str, Any] | None:
        """On worker 0: fills `saved` from the newest valid checkpoint, and describes it."""
        self._writer = CheckpointWriter(self._directory)
        damaged = []
        entries = list_checkpoints(self._directory)
        for entry in entries:
            try:
                if entry.problem is not None:
                    raise entry.problem
                checkpoint = _read(entry.path, saved)
            except DataError as problem:
                _say(f"warning: skipping {entry.path}: {problem}")
                damaged.append(entry.step)
                continue
            except Error as problem:
                raise type(problem)(
                    f"cannot resume from {entry.path}: {problem}; it may be valid, so try again once "
                    "it can be read, or move it away to resume from an older one",
                    problem.exit_status) from None
            return {"path": entry.path, "step": checkpoint.step, "run": checkpoint.run,
                    "unix_seconds": entry.unix_seconds, "damaged": damaged,
                    "infos": {k: [str(v.dtype), v.shape, v.nbytes]
                              for k, v in checkpoint.infos.items()}}
        if entries:
            raise DataError(f"no checkpoint in {self._directory} is valid: restore one, or choose "
                            "another directory to start a new run")
        return None

    def _broadcast(self, infos: dict[str, list[Any]], saved: Tensors) -> None:
        if self._communicator.world_size == 1:
            return
        for key, (dtype, shape, nbytes) in infos.items():
            data = (saved[key].reshape(-1).view(torch.uint8).numpy() if self._is_worker_0
                    else np.empty(nbytes, np.uint8))
            saved[key] = _tensor(self._communicator.broadcast(data), dtype, shape)

    def _check(self, name: str, run: dict[str, str], saved: Tensors) -> None:
        mine = self._describe()
        try:
            if run.get("program") != _PROGRAM:
                raise ConfigError("it was not written by renzan.torch.State")
            for key in ("virtual_workers", "seed", "batch_size", "sampler.seed", "samples",
                        "shuffle", "shards"):
                # Older checkpoints do not record the last two.
                is_said = key in run or key not in ("shuffle", "shards")
                if is_said and run.get(key) != mine.get(key):
                    raise ConfigError(f"{key} is {run.get(key, 'not given')} there and "
                                      f"{mine.get(key, 'not given')} here")
            self._contents.check(saved, run)
        except ConfigError as difference:
            raise ConfigError(f"{name} is another run's checkpoint: {difference}; choose another "
                              "directory to start a new run") from None

    def _describe(self) -> dict[str, str]:
        """What identifies the run, and what may change the last bits."""
        about = {"program": _PROGRAM, **describe_environment(), **self._arithmetic()}
        for key, owner, attribute in (("virtual_workers", self._virtual_step, "virtual_workers"),
                                      ("seed", self._virtual_step, "seed"),
                                      ("batch_size", self._sampler, "batch_size"),
                                      ("sampler.seed", self._sampler, "seed"),
                                      ("samples", self._sampler, "num_samples"),
                                      ("shuffle", self._sampler, "shuffle"),
                                      ("shards", self._sampler, "num_shards")):
            if hasattr(owner, attribute):
                about[key] = str(getattr(owner, attribute))
        return about

    def _arithmetic(self) -> dict[str, str]:
        """Settings that a program may change when it resumes, by their names in checkpoints."""
        arithmetic = getattr(self._virtual_step, "arithmetic", {})
        return {f"step.{key}": value for key, value in arithmetic.items()}

    def _warn_of_changes(self, name: str, run: dict[str, str]) -> None:
        for changeable, effect in (
                (describe_environment(), "the model may differ in its last bits"),
                (self._arithmetic(), "this run goes on as if it had been changed after that step")):
            for key, value in changeable.items():
                if run.get(key, value) != value:
                    _say(f"warning: {key} is {value} now and was {run[key]} when {name} was "
                         f"written: {effect}")
        began_with = json.loads(run.get(_BEGAN_WITH, "[]"))
        for i, (now, then) in enumerate(zip(self._began_with, began_with)):
            for key, value in now.items():
                if then.get(key, value) != value:
                    _say(f"warning: {key} of the optimizer's group {i} is {value} now and was "
                         f"{then[key]} when the run began: the checkpoint's is used")

    def _move_aside(self, step: int) -> None:
        assert self._writer is not None
        try:
            self._writer.move_aside(step)
        except Error as problem:
            _say(f"warning: {problem}")


class _Flight:
    """A checkpoint being written by its own thread."""

    def __init__(self, writer: CheckpointWriter, step: int, tensors: Tensors, run: dict[str, str],
                 keep: int, hashed: bool):
        self.step = step
        self.failure: Error | None = None
        self.end = 0.0
        self._thread = threading.Thread(target=self._write, name="renzan checkpoint",
                                        args=(writer, tensors, run, keep, hashed))
        self._thread.start()

    def finished(self) -> bool:
        return not self._thread.is_alive()

    def wait(self) -> None:
        self._thread.join()

    def _write(self, writer: CheckpointWriter, tensors: Tensors, run: dict[str, str], keep: int,
               hashed: bool) -> None:
        try:
            writer.write(self.step, arrays(tensors), run, hashed=hashed)
            self.end = time.time()
            writer.remove_old(keep)
        except Error as problem:
            self.failure = problem
        except Exception as problem:  # pylint: disable=broad-except
            self.failure = Error(f"{type(problem).__name__}: {problem}")


def _read(path: str, saved: Tensors) -> Checkpoint:
    checkpoint = Checkpoint(path)
    checkpoint.verify()
    saved.clear()
    for key, info in checkpoint.infos.items():
        saved[key] = _tensor(checkpoint.read(key), info.dtype, info.shape)
    return checkpoint


def _tensor(data: np.ndarray, dtype: str, shape: Any) -> torch.Tensor:
    return torch.from_numpy(data).view(TORCH_DTYPES[dtype]).reshape(tuple(shape))


def _say(text: str) -> None:
    print(f"renzan: {text}", file=sys.stderr, flush=True)
