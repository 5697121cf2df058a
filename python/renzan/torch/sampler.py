"""Which samples a worker reads at which step: determined by the global order, for any number of
workers."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator, Sized

import torch.utils.data

import renzan
from renzan.communicator import Communicator
from renzan.errors import ConfigError, DataError
from renzan.random import key, sample_order
from renzan.reduction import virtual_worker_range


class Deal:
    """How a global batch is dealt: virtual worker v owns samples [v·B/V, (v + 1)·B/V)."""

    def __init__(self, batch_size: int, virtual_workers: int, communicator: Communicator | None):
        """`communicator`: None for that of renzan.init()."""
        if virtual_workers < 1 or batch_size < 1 or batch_size % virtual_workers != 0:
            raise ConfigError(f"a batch of {batch_size} cannot be dealt to {virtual_workers} virtual "
                              "workers: batch_size has to be a multiple of virtual_workers")
        communicator = communicator or renzan.init()
        self.micro_batch = batch_size // virtual_workers
        self.own = virtual_worker_range(virtual_workers, communicator.world_size, communicator.rank)


class Sampler(torch.utils.data.Sampler):
    """A batch sampler: for each step the indices of this worker's part of the global batch.

        DataLoader(dataset, batch_sampler=Sampler(dataset, batch_size=256, seed=1, epochs=3))

    An epoch is a keyed permutation of all samples, of which the last, incomplete batch is left out.
    The order has no state: it begins at `step` (0, or where a State has resumed), on any number of
    workers, and a DataLoader may read ahead.
    """

    def __init__(self, dataset: Sized | int, batch_size: int, seed: int = 1, *, epochs: int = 1,
                 steps: int | None = None, virtual_workers: int = 8, shuffle: bool = True,
                 communicator: Communicator | None = None):
        """`dataset`: anything with a length, or the length. `batch_size`: of all workers together, a
        multiple of `virtual_workers`, which the VirtualStep has, too. `steps`: instead of `epochs`,
        how many steps there are."""
        self.num_samples = dataset if isinstance(dataset, int) else len(dataset)
        self.batch_size, self.seed, self.shuffle = batch_size, seed, shuffle
        self.virtual_workers = virtual_workers
        self._deal = Deal(batch_size, virtual_workers, communicator)
        self.steps_per_epoch = self.num_samples // batch_size
        if self.steps_per_epoch == 0:
            raise ConfigError(f"a batch of {batch_size} is larger than the dataset of "
                              f"{self.num_samples} samples")
        self.num_steps = epochs * self.steps_per_epoch if steps is None else steps
        self.step = 0

    def __len__(self) -> int:
        """Steps left."""
        return max(0, self.num_steps - self.step)

    def __iter__(self) -> Iterator[list[int]]:
        for step in range(self.step, self.num_steps):
            yield self.indices(step)

    def indices(self, step: int) -> list[int]:
        """This worker's samples of one step."""
        epoch, batch = divmod(step, self.steps_per_epoch)
        first = batch * self.batch_size
        begin = first + self._deal.own.start * self._deal.micro_batch
        end = first + self._deal.own.stop * self._deal.micro_batch
        if not self.shuffle:
            return list(range(begin, end))
        return sample_order(self.seed, epoch, self.num_samples, begin, end).tolist()

    def epoch(self, step: int | None = None) -> int:
        """The epoch of a step, by default of the next one."""
        return (self.step if step is None else step) // self.steps_per_epoch


class ShardSampler(torch.utils.data.IterableDataset):
    """The same for data that can only be read from its beginning, in shards (files, say).

        DataLoader(ShardSampler(read, num_shards=64, batch_size=256, num_steps=1000), batch_size=None)

    read(i) iterates over the samples of shard i, always in the same order. Virtual worker v reads
    the shards v, v + V, v + 2·V, ... of the keyed order of all shards, and then begins again, in a
    new order. Each item is this worker's part of a global batch, collated. Where a State has
    resumed, `step` > 0, the samples that have been used are read again and skipped.
    """

    def __init__(self, read: Callable[[int], Iterable[Any]], num_shards: int, batch_size: int,
                 num_steps: int, seed: int = 1, *, virtual_workers: int = 8,
                 collate: Callable[[list[Any]], Any] = torch.utils.data.default_collate,
                 communicator: Communicator | None = None):
        """`batch_size`: of all workers together, a multiple of `virtual_workers`, which the
        VirtualStep has, too. `collate` makes a batch of a list of samples."""
        if num_shards < virtual_workers:
            raise ConfigError(f"{num_shards} shards cannot be dealt to {virtual_workers} virtual "
                              "workers: each needs one")
        self.read, self.num_shards, self.seed, self.collate = read, num_shards, seed, collate
        self.batch_size, self.num_steps, self.virtual_workers = batch_size, num_steps, virtual_workers
        self._deal = Deal(batch_size, virtual_workers, communicator)
        self.step = 0

    def __len__(self) -> int:
        """Steps left."""
        return max(0, self.num_steps - self.step)

    def __iter__(self) -> Iterator[Any]:
        worker = torch.utils.data.get_worker_info()
        if worker is not None and worker.num_workers > 1:
            raise ConfigError("a ShardSampler is read by at most one process of a DataLoader: "
                              "num_workers=0 or 1")
        streams = [self._stream(v) for v in self._deal.own]
        skipped = self.step * self._deal.micro_batch
        for stream in streams:
            for _ in range(skipped):
                next(stream)
        for _ in range(self.step, self.num_steps):
            yield self.collate([next(stream) for stream in streams
                                for _ in range(self._deal.micro_batch)])

    def _stream(self, virtual_worker: int) -> Iterator[Any]:
        epoch = 0
        while True:
            order = sample_order(key(self.seed, "shards"), epoch, self.num_shards)
            read_any = False
            for shard in order[virtual_worker::self.virtual_workers].tolist():
                for sample in self.read(shard):
                    read_any = True
                    yield sample
            if not read_any:
                raise DataError(f"the shards of virtual worker {virtual_worker} are empty "
                                f"(epoch {epoch})")
            epoch += 1
