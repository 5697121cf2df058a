"""Renzan and torch.distributed over Gloo in one process, imported in the order of the arguments:
FIRST SECOND FILE, where FILE is for the rendezvous of torch.distributed."""

import importlib
import sys

for name in sys.argv[1:3]:
    importlib.import_module(name)
import numpy as np
import torch

import renzan

comm = renzan.init("gloo")
torch.distributed.init_process_group("gloo", init_method=f"file://{sys.argv[3]}", rank=comm.rank,
                                     world_size=comm.world_size)
array = np.full(100_000, 1.5 + comm.rank, np.float32)
for _ in range(3):
    tensor = torch.from_numpy(array.copy())
    torch.distributed.all_reduce(tensor)
    assert comm.all_reduce(array).tobytes() == tensor.numpy().tobytes()
    # Exceptions of both libraries pass through their own code.
    for kind, wrong in ((renzan.UsageError, lambda: comm.broadcast(array, 99)),
                        (RuntimeError, lambda: torch.zeros(3) + torch.zeros(4))):
        try:
            wrong()
        except kind:
            continue
        raise AssertionError(f"no {kind}")
torch.distributed.destroy_process_group()
renzan.finalize()
print(torch.__version__)
