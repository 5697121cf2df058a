"""An ordinary script with DistributedDataParallel, and nothing of Renzan but the backend's name.

ddp_worker.py MODE,BACKEND... Modes: plain, unused (parameters that some steps do not use), bf16 (a
communication hook), die (the last worker, in a backward pass). Prints for each a digest of the
parameters, and their norm.
"""

import hashlib
import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

import renzan
import renzan.torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(4))
        self.sometimes = torch.nn.Linear(32, 32)
        self.head = torch.nn.Linear(32, 1)

    def forward(self, x, use):
        for layer in self.layers:
            x = torch.relu(layer(x)) + x
        return self.head(self.sometimes(x) if use else x)


def bf16_hook(state, bucket):
    # PyTorch asks for CUDA if it sees the hook itself.
    return default_hooks.bf16_compress_hook(state, bucket)


def train(mode, group):
    """Trains a few steps and returns the parameters."""
    torch.manual_seed(rank)  # DistributedDataParallel gives all of them those of worker 0
    model = DistributedDataParallel(Model(), bucket_cap_mb=0.01, process_group=group,
                                    find_unused_parameters=mode == "unused")
    if mode == "bf16":
        model.register_comm_hook(None, bf16_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    data = torch.Generator().manual_seed(7)
    for step in range(12):
        if mode == "die" and step == 3 and rank == world - 1:
            model.module.layers[2].weight.register_hook(
                lambda grad: os.kill(os.getpid(), signal.SIGKILL))
        batch = torch.randn(12, 32, generator=data)[rank::world]
        use = mode != "unused" or (step + rank) % 3 == 0
        optimizer.zero_grad()
        (model(batch, use) - batch.sum(1, keepdim=True)).square().mean().backward()
        optimizer.step()
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


if "OMPI_COMM_WORLD_RANK" in os.environ:
    for name in ("RANK", "WORLD_SIZE"):
        os.environ[name] = os.environ["OMPI_COMM_WORLD_" + name.replace("WORLD_", "")]
dist.init_process_group("renzan")
rank, world = dist.get_rank(), dist.get_world_size()
try:
    for task in sys.argv[1:]:
        mode, backend = task.split(",")
        group = None if backend == "renzan" else dist.new_group(backend=backend)
        parameters = train(mode, group)
        print(hashlib.sha256(parameters.numpy().tobytes()).hexdigest(),
              parameters.double().norm().item())
except renzan.Error as error:
    print(f"{error.exit_status} {type(error).__name__}: {error}", flush=True)
    os._exit(error.exit_status)
dist.destroy_process_group()
