"""Groups of workers with operations of their own."""

from __future__ import annotations

import socket
from typing import Sequence

from renzan._native import Place
from renzan.communicator import Communicator
from renzan.errors import ConfigError, UsageError
from renzan.horovod.torch import _basics
from renzan.horovod.torch._engine import Group


class ProcessSet:
    """Some of the workers. Operations on different sets run beside each other; those of one set in
    the order in which its workers submit them."""

    process_set_id: int | None = None

    def __init__(self, ranks: Sequence[int]):
        """Its workers, by their numbers among all. add_process_set() makes it usable."""
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
        return _basics.rank() in self.ranks

    def rank(self) -> int:
        """This worker's number in it."""
        return self.group().rank

    def size(self) -> int:
        """The number of its workers."""
        return len(self.ranks)

    def root(self, root_rank: int) -> int:
        """The number in it of a worker that is given by its number among all."""
        if root_rank not in self.ranks:
            raise UsageError(f"worker {root_rank} is none of {self.ranks}")
        return self.ranks.index(root_rank)

    def group(self) -> Group:
        """Its operations."""
        if self.process_set_id is None:
            raise UsageError(f"{self} has not been added: call hvd.add_process_set() on "
                             "all workers")
        if self._group is None:
            raise UsageError(f"worker {_basics.rank()} does not belong to {self}")
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
        return list(range(_basics.size()))

    def group(self) -> Group:
        return _basics.world_group()

    def __repr__(self) -> str:
        # Also before init(): help() shows it as the default of arguments.
        return super().__repr__() if _basics.is_initialized() else "ProcessSet(all workers)"


global_process_set = _GlobalProcessSet()
_added: dict[int, ProcessSet] = {}


def add_process_set(process_set: ProcessSet | Sequence[int]) -> ProcessSet:
    """Makes a process set usable. All workers call it, with the same workers; those of the set
    connect over TCP."""
    from renzan.horovod.torch.functions import broadcast_object
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    ranks, world = process_set.ranks, _basics.world_group()
    if process_set.process_set_id is not None:
        raise UsageError(f"{process_set} has been added already")
    if ranks[-1] >= world.size or ranks[0] < 0:
        raise UsageError(f"{process_set}: there are only {world.size} workers")
    if len(ranks) > 1 and not world.comm.place.master_addr:
        raise ConfigError("process sets need the address of worker 0, which mpirun does not tell: "
                          "set MASTER_ADDR")
    address = _address(world.comm) if world.rank == ranks[0] and len(ranks) > 1 else None
    address = broadcast_object(address, ranks[0], name=f"add_process_set({ranks})")
    if process_set.included():
        host, port = address or ("", 0)
        place = Place(ranks.index(world.rank), len(ranks), world.comm.local_rank, 0, port,
                      host.encode())
        process_set._group = Group(Communicator(place=place))
    process_set.process_set_id = max(_added, default=0) + 1
    _added[process_set.process_set_id] = process_set
    return process_set


def remove_process_set(process_set: ProcessSet) -> bool:
    """Ends a process set; all workers call it. Returns whether there was one."""
    from renzan.horovod.torch.collectives import barrier
    if process_set.process_set_id is None or process_set is global_process_set:
        return False
    barrier()
    _close(process_set)
    return True


def close_all() -> None:
    """Ends all process sets but that of all workers."""
    for process_set in list(_added.values()):
        _close(process_set)


def _close(process_set: ProcessSet) -> None:
    assert process_set.process_set_id is not None
    del _added[process_set.process_set_id]
    process_set.process_set_id = None
    group, process_set._group = process_set._group, None
    if group is not None:
        group.close()
        group.comm.close()


def _address(comm: Communicator) -> tuple[str, int]:
    """Where other workers reach this one, and a free port of it."""
    master = comm.place.master_addr.decode()
    family = socket.getaddrinfo(master, None, type=socket.SOCK_DGRAM)[0][0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((master, comm.place.master_port or 9))  # sends nothing
        host = probe.getsockname()[0]
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.bind((host, 0))
        return host, listener.getsockname()[1]
