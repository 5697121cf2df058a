"""Makes groups of workers with operations of their own, and ends them."""

from __future__ import annotations

import socket
from typing import Sequence

from renzan._native import Place
from renzan.communicator import Communicator
from renzan.errors import ConfigError, UsageError
from renzan.horovod.torch import _workers
from renzan.horovod.torch._engine import Group
from renzan.horovod.torch.collectives import barrier
from renzan.horovod.torch.functions import broadcast_object
from renzan.horovod.torch.process_set import ProcessSet, close, global_process_set, keep


def add_process_set(process_set: ProcessSet | Sequence[int]) -> ProcessSet:
    """Makes a process set usable. All workers call it, with the same workers; those of the set
    connect over TCP."""
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    ranks, world = process_set.ranks, _workers.world_group()
    if process_set.process_set_id is not None:
        raise UsageError(f"{process_set} has been added already")
    if ranks[-1] >= world.size or ranks[0] < 0:
        raise UsageError(f"{process_set}: there are only {world.size} workers")
    if len(ranks) > 1 and not world.comm.place.master_addr:
        raise ConfigError("process sets need the address of worker 0, which mpirun does not give: "
                          "set MASTER_ADDR")
    address = _address(world.comm) if world.rank == ranks[0] and len(ranks) > 1 else None
    address = broadcast_object(address, ranks[0], name=f"add_process_set({ranks})")
    group = None
    if process_set.included():
        host, port = address or ("", 0)
        place = Place(ranks.index(world.rank), len(ranks), world.comm.local_rank, 0, port,
                      host.encode())
        group = Group(Communicator(place=place))
    keep(process_set, group)
    return process_set


def remove_process_set(process_set: ProcessSet) -> bool:
    """Ends a process set; all workers call it. Returns whether there was one."""
    if process_set.process_set_id is None or process_set is global_process_set:
        return False
    barrier()
    close(process_set)
    return True


def _address(comm: Communicator) -> tuple[str, int]:
    """An address by which other workers reach this one, and a free port there."""
    master = comm.place.master_addr.decode()
    family = socket.getaddrinfo(master, None, type=socket.SOCK_DGRAM)[0][0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((master, comm.place.master_port or 9))  # sends nothing
        host = probe.getsockname()[0]
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.bind((host, 0))
        return host, listener.getsockname()[1]
