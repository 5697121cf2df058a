"""Times sums of float32 arrays over all workers: Renzan's and the peer's own, in turn, both in
place. Prints {"seconds": {bytes: {"renzan": [...], "peer": [...]}}} with one figure for each round.

The peer of gloo is torch.distributed, that of mpi MPI_Allreduce. Started by bench/pytorch on every
worker.
"""
import argparse
import ctypes
import json
import os
import time

import numpy as np
import renzan
from renzan._native import library

parser = argparse.ArgumentParser()
parser.add_argument("backend", choices=["gloo", "mpi"])
parser.add_argument("bytes", type=int, nargs="+")
parser.add_argument("--rounds", type=int, required=True)
parser.add_argument("--seconds", type=float, required=True, help="of one side in a round, at least")
args = parser.parse_args()
comm = renzan.init(args.backend)


def torch_gloo():
    import torch
    import torch.distributed
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['BENCH_TORCH_PORT']}",
        rank=comm.rank, world_size=comm.world_size)
    return (lambda array: torch.distributed.all_reduce(torch.from_numpy(array)),
            f"torch {torch.__version__}")


def open_mpi():
    mpi = ctypes.CDLL("libmpi.so.40")
    version = ctypes.create_string_buffer(8192)
    mpi.MPI_Get_library_version(version, ctypes.byref(ctypes.c_int()))
    handle = lambda name: ctypes.byref(ctypes.c_char.in_dll(mpi, name))
    in_place = ctypes.c_void_p(1)  # MPI_IN_PLACE

    def all_reduce(array):
        status = mpi.MPI_Allreduce(in_place, ctypes.c_void_p(array.ctypes.data), array.size,
                                   handle("ompi_mpi_float"), handle("ompi_mpi_op_sum"),
                                   handle("ompi_mpi_comm_world"))
        assert status == 0
    return all_reduce, version.value.decode().split(",")[0]


def ours(array):
    library.renzan_all_reduce(comm.handle, array.ctypes.data, array.ctypes.data, array.size, 0, 0)


def seconds_of(call, array, calls):
    comm.barrier()
    start = time.monotonic()
    for _ in range(calls):
        call(array)
    comm.barrier()
    return (time.monotonic() - start) / calls


peer, version = torch_gloo() if args.backend == "gloo" else open_mpi()
sides = {"renzan": ours, "peer": peer}
measured = {}
for size in args.bytes:
    array = np.zeros(size // 4, np.float32)
    for call in sides.values():
        array[:] = comm.rank + 1
        call(array)
        assert (array == comm.world_size * (comm.world_size + 1) / 2).all(), call
    array[:] = 0
    slower = max(seconds_of(call, array, 2) for call in sides.values())
    calls = int(comm.broadcast(np.array([max(1, round(args.seconds / slower))]))[0])
    of_size = {side: [] for side in sides}
    for _ in range(args.rounds):
        for side, call in sides.items():
            of_size[side].append(seconds_of(call, array, calls))
    measured[size] = of_size
if comm.rank == 0:
    print(json.dumps({"seconds": measured, "peer": version}))
renzan.finalize()
