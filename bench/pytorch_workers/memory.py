"""What VirtualStep holds with K virtual workers a worker, as JSON: arrays of the size of all
gradients that it says it holds, parameter.grad included, and by how many of them the memory of the
process grew at most. Started by bench/pytorch on every worker."""
import argparse
import json

import renzan
import renzan.torch
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("virtual_workers", type=int, help="of a worker")
args = parser.parse_args()
torch.set_num_threads(1)
comm = renzan.init()


def kib(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name))


# 25M parameters, and hardly any activations.
model = nn.Sequential(*(nn.Linear(1250, 1250) for _ in range(16)))
step = renzan.torch.VirtualStep(model, torch.optim.SGD(model.parameters(), lr=0.01),
                                args.virtual_workers * comm.world_size)
batch = torch.randn(args.virtual_workers, 1250)
gradient_bytes = 4 * sum(p.numel() for p in model.parameters())
model(batch).sum()  # what PyTorch itself allocates once
before = kib("VmRSS")
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak begins anew
for _ in range(3):
    step(batch, lambda model, rows: model(rows).square().mean())
grown = (kib("VmHWM") - before) * 1024 / gradient_bytes
if comm.rank == 0:
    print(json.dumps({"arrays": step.gradient_arrays + 1, "grown": grown}))
renzan.finalize()
