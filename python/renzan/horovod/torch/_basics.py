"""init, shutdown, and who is where."""

from __future__ import annotations

import atexit
import socket
import sys
from typing import TYPE_CHECKING, Literal, Sequence

import renzan
from renzan._exit_status import end_by_exit_status
from renzan.errors import UsageError
from renzan.horovod.torch._engine import Group

if TYPE_CHECKING:
    from renzan.horovod.torch.process_sets import ProcessSet

_group: Group | None = None
_hosts: list[tuple[str, int]] = []  # by rank: host, local rank


def init(comm: object = None,
         process_sets: Sequence[ProcessSet | Sequence[int]] | Literal["dynamic"] | None = None
         ) -> None:
    """Joins the workers that a launcher started (`renzan run`, torchrun, mpirun or srun).

    Calls renzan.init(), unless the script has done so with a backend or a time limit of its own:
    a worker that lets the others wait for longer (300 s) is taken for dead. `comm` is not offered.
    `process_sets`: ProcessSets to add; all workers name the same ones in the same order. "dynamic"
    is none: they can be added later in any case.
    """
    global _group
    if comm is not None:
        raise UsageError("init(comm=...) is not offered: a worker's place is what its launcher "
                         "says; use process_sets for groups of workers")
    if _group is None:
        world = renzan.init()
        end_by_exit_status()
        place = f"{world.local_rank} {socket.gethostname()}".encode()
        _hosts[:] = [(name, int(local)) for local, name in
                     (said.decode().split(" ", 1) for said in world.gather_bytes(place))]
        _group = Group(world)
        atexit.register(_shutdown_at_exit)
    if process_sets and process_sets != "dynamic":
        from renzan.horovod.torch.process_sets import add_process_set
        for process_set in process_sets:
            add_process_set(process_set)


def shutdown() -> None:
    """Waits for what has been submitted, and leaves the workers."""
    global _group
    if _group is not None:
        from renzan.horovod.torch.process_sets import close_all
        close_all()
        _group.close()
        _group = None
        atexit.unregister(_shutdown_at_exit)
        renzan.finalize()


def _shutdown_at_exit() -> None:
    # After an error, what has been submitted may wait for workers that wait for this one.
    if not hasattr(sys, "last_type"):
        shutdown()


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
    """Whether every host has as many workers."""
    world_group()
    names = [name for name, _ in _hosts]
    return len({names.count(name) for name in names}) == 1


def _place() -> tuple[str, int]:
    return _hosts[world_group().rank]


def _hosts_alike() -> list[str]:
    return list(dict.fromkeys(name for name, local in _hosts if local == local_rank()))


def gloo_built() -> bool:
    """True: workers can talk over TCP."""
    return True


def gloo_enabled() -> bool:
    """Whether the workers talk over TCP (or there is one)."""
    return world_group().comm.backend != "mpi"


def mpi_built() -> bool:
    """True: workers of mpirun can talk over MPI, where the system has it."""
    return True


def mpi_enabled() -> bool:
    """Whether the workers talk over MPI."""
    return world_group().comm.backend == "mpi"


def mpi_threads_supported() -> bool:
    """False: mpi4py may not be used on other threads meanwhile."""
    world_group()
    return False


def nccl_built() -> int:
    """0: tensors of GPUs are copied to the host."""
    return 0


def ddl_built() -> bool:
    """False."""
    return False


def ccl_built() -> bool:
    """False."""
    return False


def cuda_built() -> bool:
    """False: tensors of GPUs are copied to the host."""
    return False


def rocm_built() -> bool:
    """False: tensors of GPUs are copied to the host."""
    return False
