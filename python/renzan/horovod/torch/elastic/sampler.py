"""ElasticSampler: redistributes the rest of an epoch when the number of workers changes."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Sized

import numpy as np
from torch.utils.data import Sampler

from renzan.horovod.torch import _workers
from renzan.random import sample_order


class ElasticSampler(Sampler):
    """Deals the samples of a dataset to the workers, and remembers which have been processed.

    Give it to a TorchState and call record_batch() after every batch: after a restart, on any
    number of workers, an epoch continues with the samples that no worker had processed at the last
    commit. Every worker gets equally many: up to W - 1 samples are dealt twice.
    """

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int = 0):
        """`seed` and the epoch determine the order, the same on all workers."""
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = 0
        self._processed = np.zeros(len(dataset), bool)
        self.reset()

    @property
    def processed_indices(self) -> set[int]:
        """What this worker has recorded in this epoch, plus what all workers had at the last
        sync()."""
        return set(np.flatnonzero(self._processed).tolist())

    def set_epoch(self, epoch: int) -> None:
        """Begins an epoch: nothing has been processed. Call it at the end of the previous
        epoch: at the beginning it would discard what a resumed run had processed."""
        self.epoch = epoch
        self._processed[:] = False
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Batch number `batch_idx` since the iteration began has been processed."""
        self.record_indices(self.get_indices(batch_idx, batch_size))

    def record_indices(self, indices: Iterable[int]) -> None:
        """These samples have been processed."""
        self._processed[np.array(list(indices), np.int64)] = True

    def get_indices(self, batch_idx: int, batch_size: int) -> list[int]:
        """The samples of this worker's batch number `batch_idx`."""
        begin = batch_idx * batch_size
        return self.indices[begin:min(begin + batch_size, len(self.indices))]

    def reset(self) -> None:
        """Deals the unprocessed samples among the current workers."""
        self.rank, self.num_replicas = _workers.rank(), _workers.size()
        remaining = np.flatnonzero(~self._processed)
        self.num_samples = -(-len(remaining) // self.num_replicas)
        if self.shuffle and len(remaining) > 0:
            remaining = remaining[sample_order(self.seed, self.epoch, len(remaining))]
        if len(remaining) > 0:
            dealt = np.resize(remaining, self.num_samples * self.num_replicas)
            remaining = dealt[self.rank::self.num_replicas]
        self.indices = remaining.tolist()

    def state_dict(self) -> dict[str, Any]:
        """The epoch, and which samples have been processed: bool [samples]."""
        return {"epoch": self.epoch, "processed": self._processed.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues from the state_dict() of any worker, or of all of them merged (TorchState does
        that)."""
        if len(state["processed"]) != len(self._processed):
            raise ValueError(f"ElasticSampler of {len(self._processed)} samples: the state is "
                             f"one of {len(state['processed'])}")
        self.epoch = int(state["epoch"])
        self._processed = np.array(state["processed"], bool)
        self.reset()

    def __iter__(self) -> Iterator[int]:
        return iter(list(self.indices))

    def __len__(self) -> int:
        return len(self.indices)
