"""init, shutdown, and what this build offers."""

from __future__ import annotations

import atexit
import sys
from typing import Literal, Sequence

import renzan
from renzan._exit_status import end_by_exit_status
from renzan.errors import UsageError
from renzan.horovod.torch import _workers
from renzan.horovod.torch._workers import world_group
from renzan.horovod.torch.process_set import ProcessSet, close_all
from renzan.horovod.torch.process_sets import add_process_set


def init(comm: object = None,
         process_sets: Sequence[ProcessSet | Sequence[int]] | Literal["dynamic"] | None = None
         ) -> None:
    """Joins the workers that a launcher started (`renzan run`, torchrun, mpirun or srun).

    Calls renzan.init(), unless the script has done so with its own backend or time limit: a worker
    that keeps the others waiting for longer (300 s) is presumed dead. `comm` is not offered.
    `process_sets`: ProcessSets to add; all workers name the same ones in the same order. "dynamic"
    adds none: they can be added later in any case.
    """
    if comm is not None:
        raise UsageError("init(comm=...) is not offered: a worker's place is what its launcher "
                         "says; use process_sets for groups of workers")
    if not _workers.is_initialized():
        world = renzan.init()
        end_by_exit_status()
        _workers.join(world)
        atexit.register(_shutdown_at_exit)
    if process_sets and process_sets != "dynamic":
        for process_set in process_sets:
            add_process_set(process_set)


def shutdown() -> None:
    """Waits for submitted operations, and leaves the workers."""
    if _workers.is_initialized():
        close_all()
        _workers.leave()
        atexit.unregister(_shutdown_at_exit)
        renzan.finalize()


def _shutdown_at_exit() -> None:
    # After an error, submitted operations may wait for workers that wait for this one.
    if not hasattr(sys, "last_type"):
        shutdown()


def gloo_built() -> bool:
    """True: workers can communicate over TCP."""
    return True


def gloo_enabled() -> bool:
    """Whether the workers communicate over TCP (or there is only one)."""
    return world_group().comm.backend != "mpi"


def mpi_built() -> bool:
    """True: workers of mpirun can communicate over MPI, if the system has it."""
    return True


def mpi_enabled() -> bool:
    """Whether the workers communicate over MPI."""
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
