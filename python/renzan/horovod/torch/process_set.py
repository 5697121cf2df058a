"""A group of workers with operations of its own."""

from __future__ import annotations

from typing import Sequence

from renzan.errors import UsageError
from renzan.horovod.torch import _workers
from renzan.horovod.torch._engine import Group


class ProcessSet:
    """Some of the workers. Operations on different sets run concurrently; those of one set run in
    the order in which its workers submit them."""

    process_set_id: int | None = None

    def __init__(self, ranks: Sequence[int]):
        """`ranks`: its workers, by their numbers among all. add_process_set() makes it usable."""
        self._ranks = [int(rank) for rank in ranks]
        if not self._ranks or len(set(self._ranks)) != len(self._ranks):
            raise ValueError(f"a process set of workers {self._ranks}: name at least one, "
                             "each once")
        self._group: Group | None = None

    @property
    def ranks(self) -> list[int]:
        """Its workers."""
        return sorted(self._ranks)

    def included(self) -> bool:
        """Whether this worker belongs to it."""
        return _workers.rank() in self.ranks

    def rank(self) -> int:
        """This worker's number in it."""
        return self.group().rank

    def size(self) -> int:
        """The number of its workers."""
        return len(self.ranks)

    def root(self, root_rank: int) -> int:
        """The number within the set of a worker given by its number among all."""
        if root_rank not in self.ranks:
            raise UsageError(f"worker {root_rank} is not one of {self.ranks}")
        return self.ranks.index(root_rank)

    def group(self) -> Group:
        """Its operations."""
        if self.process_set_id is None:
            raise UsageError(f"{self} has not been added: call hvd.add_process_set() on "
                             "all workers")
        if self._group is None:
            raise UsageError(f"worker {_workers.rank()} does not belong to {self}")
        return self._group

    def __repr__(self) -> str:
        return f"ProcessSet({self.ranks})"


class _GlobalProcessSet(ProcessSet):
    """All workers."""

    process_set_id = 0

    def __init__(self) -> None:  # pylint: disable=super-init-not-called
        pass

    @property
    def ranks(self) -> list[int]:
        return list(range(_workers.size()))

    def group(self) -> Group:
        return _workers.world_group()

    def __repr__(self) -> str:
        # Also before init(): help() shows it as the default of arguments.
        return super().__repr__() if _workers.is_initialized() else "ProcessSet(all workers)"


global_process_set = _GlobalProcessSet()
_added: dict[int, ProcessSet] = {}


def keep(process_set: ProcessSet, group: Group | None) -> None:
    """Makes it usable: `group` is this worker's part of it."""
    process_set._group = group
    process_set.process_set_id = max(_added, default=0) + 1
    _added[process_set.process_set_id] = process_set


def close(process_set: ProcessSet) -> None:
    """Ends it."""
    assert process_set.process_set_id is not None
    del _added[process_set.process_set_id]
    process_set.process_set_id = None
    group, process_set._group = process_set._group, None
    if group is not None:
        group.close()
        group.comm.close()


def close_all() -> None:
    """Ends all process sets except that of all workers."""
    for process_set in list(_added.values()):
        close(process_set)
