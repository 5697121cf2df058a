"""Horovod's interface for PyTorch, on Renzan's communicators.

    import renzan.horovod.torch as hvd      # was: import horovod.torch as hvd

The calls are those of Horovod 0.28.1. What differs:

- `renzan run --workers N -- python train.py` (or torchrun, mpirun, srun) starts the workers.
- Reductions are added in a fixed order: two runs on as many workers give the same bits. For the
  same bits on any number of workers use renzan.torch.VirtualStep.
- Every worker submits the same operations in the same order. Horovod pairs them by name, whatever
  their order; here a disagreement is a UsageError of all workers. DistributedOptimizer keeps to one
  order by itself.
- A worker that dies ends all others (HorovodInternalError, exit status 69), and the launcher starts
  them again; renzan.horovod.torch.elastic resumes at the last commit.
- Tensors of GPUs are copied to the host and back. Adasum and timelines are not offered.
"""

from renzan.horovod.exceptions import HorovodInternalError, HostsUpdatedInterrupt
from renzan.horovod.torch import elastic
from renzan.horovod.torch._basics import (ccl_built, cuda_built, ddl_built, gloo_built,
                                          gloo_enabled, init, mpi_built, mpi_enabled,
                                          mpi_threads_supported, nccl_built, rocm_built, shutdown)
from renzan.horovod.torch._workers import (cross_rank, cross_size, is_homogeneous, is_initialized,
                                           local_rank, local_size, rank, size)
from renzan.horovod.torch.collectives import (allgather, allgather_async, alltoall, alltoall_async,
                                              barrier, broadcast, broadcast_, broadcast_async,
                                              broadcast_async_, grouped_allgather,
                                              grouped_allgather_async, join, poll, synchronize)
from renzan.horovod.torch.compression import Compression
from renzan.horovod.torch.functions import (allgather_object, broadcast_object,
                                            broadcast_optimizer_state, broadcast_parameters)
from renzan.horovod.torch.optimizer import DistributedOptimizer
from renzan.horovod.torch.process_set import ProcessSet, global_process_set
from renzan.horovod.torch.process_sets import add_process_set, remove_process_set
from renzan.horovod.torch.reductions import (Adasum, Average, Max, Min, Product, Sum, allreduce,
                                             allreduce_, allreduce_async, allreduce_async_,
                                             grouped_allreduce, grouped_allreduce_,
                                             grouped_allreduce_async, grouped_allreduce_async_)
from renzan.horovod.torch.scatter import (grouped_reducescatter, grouped_reducescatter_async,
                                          reducescatter, reducescatter_async)
from renzan.horovod.torch.sparse import sparse_allreduce_async
from renzan.horovod.torch.sync_batch_norm import SyncBatchNorm

__all__ = ["Adasum", "Average", "Compression", "DistributedOptimizer", "HorovodInternalError",
           "HostsUpdatedInterrupt", "Max", "Min", "ProcessSet", "Product", "Sum", "SyncBatchNorm",
           "add_process_set", "allgather", "allgather_async", "allgather_object", "allreduce",
           "allreduce_", "allreduce_async", "allreduce_async_", "alltoall", "alltoall_async",
           "barrier", "broadcast", "broadcast_", "broadcast_async", "broadcast_async_",
           "broadcast_object", "broadcast_optimizer_state", "broadcast_parameters", "ccl_built",
           "cross_rank", "cross_size", "cuda_built", "ddl_built", "elastic", "global_process_set",
           "gloo_built", "gloo_enabled", "grouped_allgather", "grouped_allgather_async",
           "grouped_allreduce", "grouped_allreduce_", "grouped_allreduce_async",
           "grouped_allreduce_async_", "grouped_reducescatter", "grouped_reducescatter_async",
           "init", "is_homogeneous", "is_initialized", "join", "local_rank", "local_size",
           "mpi_built", "mpi_enabled", "mpi_threads_supported", "nccl_built", "poll", "rank",
           "reducescatter", "reducescatter_async", "remove_process_set", "rocm_built", "shutdown",
           "size", "sparse_allreduce_async", "synchronize"]
