"""Commits on disk: checkpoints in RENZAN_CHECKPOINT_DIR, written and read by worker 0."""

from __future__ import annotations

import sys

import torch

from renzan.checkpoint import Checkpoint, CheckpointWriter, list_checkpoints
from renzan.errors import ConfigError, DataError
from renzan.torch.contents import Contents, arrays, on_cpu
from renzan.torch.tree import TORCH_DTYPES, Tensors

_PROGRAM = "renzan.horovod.torch"
_KEEP = 3


class Commits:
    """The commits of a run. Made and used by worker 0 only."""

    def __init__(self, directory: str):
        """No other process may write there meanwhile."""
        self._directory = directory
        self._writer = CheckpointWriter(directory)
        self._number = 0

    def restore_newest(self, contents: Contents) -> bool:
        """Gives `contents` the values of the newest undamaged commit. Returns whether there
        is one."""
        entries = list_checkpoints(self._directory)
        self._number = max((entry.step for entry in entries), default=0)
        for entry in entries:
            try:
                if entry.problem is not None:
                    raise entry.problem
                tensors, run = _read(entry.path)
            except DataError as problem:
                say(f"warning: skipping {entry.path}: {problem}")
                continue
            try:
                if run.get("program") != _PROGRAM:
                    raise ConfigError("it was not written by hvd.elastic")
                contents.check(tensors, run)
            except ConfigError as problem:
                raise ConfigError(f"{entry.path} is another run's commit: {problem}; choose "
                                  "another directory to start a new run") from None
            contents.restore(tensors.__getitem__, run)
            say(f"resumed from {entry.path}")
            return True
        if entries:
            raise DataError(f"no checkpoint in {self._directory} is valid: restore one, or choose "
                            "another directory to start a new run")
        return False

    def write(self, contents: Contents) -> None:
        """Returns when it is on disk."""
        tensors, run = contents.collect()
        self._number += 1
        self._writer.write(self._number, arrays(on_cpu(tensors, copy=False)),
                           {**run, "program": _PROGRAM})
        self._writer.remove_old(_KEEP)


def say(text: str) -> None:
    """To stderr."""
    print(f"renzan: {text}", file=sys.stderr, flush=True)


def _read(path: str) -> tuple[Tensors, dict[str, str]]:
    with Checkpoint(path) as checkpoint:
        tensors = {key: torch.from_numpy(checkpoint.read(key)).view(TORCH_DTYPES[info.dtype])
                   .reshape(info.shape) for key, info in checkpoint.infos.items()}
        return tensors, checkpoint.run
