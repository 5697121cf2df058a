"""What VirtualStep holds with K virtual workers a worker, as JSON: arrays of the size of all
gradients that it says it holds, parameter.grad included, and by how many of them the memory of the
process grew at most. With 0, DistributedDataParallel's growth. Started by bench/pytorch on every
worker."""
import argparse
import json
import os

import renzan
import renzan.torch
import torch
import torch.distributed
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("virtual_workers", type=int, help="of a worker; 0: DistributedDataParallel")
args = parser.parse_args()
torch.set_num_threads(1)
comm = renzan.init()


def kib(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name))


# 25M parameters, and hardly any activations.
model = nn.Sequential(*(nn.Linear(1250, 1250) for _ in range(16)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(max(1, args.virtual_workers), 1250)
if args.virtual_workers == 0:
    torch.distributed.init_process_group(
        "gloo", init_method=f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['BENCH_TORCH_PORT']}",
        rank=comm.rank, world_size=comm.world_size)
gradient_bytes = 4 * sum(p.numel() for p in model.parameters())
model(batch).sum()  # what PyTorch itself allocates once
before = kib("VmRSS")
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak begins anew
arrays = None
if args.virtual_workers == 0:
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    for _ in range(3):
        optimizer.zero_grad()
        parallel(batch).square().mean().backward()
        optimizer.step()
else:
    step = renzan.torch.VirtualStep(model, optimizer, args.virtual_workers * comm.world_size)
    for _ in range(3):
        step(batch, lambda model, rows: model(rows).square().mean())
    arrays = step.gradient_arrays + 1
grown = (kib("VmHWM") - before) * 1024 / gradient_bytes
if comm.rank == 0:
    print(json.dumps({"arrays": arrays, "grown": grown}))
if args.virtual_workers == 0:
    torch.distributed.destroy_process_group()
renzan.finalize()
