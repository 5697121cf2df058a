"""The group of all workers, from init() to shutdown(), and where each one runs."""

from __future__ import annotations

import socket

from renzan.communicator import Communicator
from renzan.errors import UsageError
from renzan.horovod.torch._engine import Group

_group: Group | None = None
_hosts: list[tuple[str, int]] = []  # by rank: host, local rank


def join(world: Communicator) -> None:
    """Makes the workers of `world` the group of all workers."""
    global _group
    place = f"{world.local_rank} {socket.gethostname()}".encode()
    _hosts[:] = [(name, int(local)) for local, name in
                 (said.decode().split(" ", 1) for said in world.gather_bytes(place))]
    _group = Group(world)


def leave() -> None:
    """Waits for submitted operations. Afterwards there are no workers."""
    global _group
    world_group().close()
    _group = None


def is_initialized() -> bool:
    """Whether init() has been called."""
    return _group is not None


def world_group() -> Group:
    """All workers."""
    if _group is None:
        raise UsageError("call hvd.init() first")
    return _group


def rank() -> int:
    """This worker's number, from 0."""
    return world_group().rank


def size() -> int:
    """The number of workers."""
    return world_group().size


def local_rank() -> int:
    """This worker's number among those of its host."""
    return _place()[1]


def local_size() -> int:
    """The number of workers of this host."""
    host = _place()[0]
    return sum(name == host for name, _ in _hosts)


def cross_rank() -> int:
    """This host's number among those that have a worker of this local rank."""
    return _hosts_alike().index(_place()[0])


def cross_size() -> int:
    """The number of hosts that have a worker of this local rank."""
    return len(_hosts_alike())


def is_homogeneous() -> bool:
    """Whether every host has the same number of workers."""
    world_group()
    names = [name for name, _ in _hosts]
    return len({names.count(name) for name in names}) == 1


def _place() -> tuple[str, int]:
    return _hosts[world_group().rank]


def _hosts_alike() -> list[str]:
    return list(dict.fromkeys(name for name, local in _hosts if local == local_rank()))
