"""Times training steps of plain DistributedDataParallel over Gloo and of VirtualStep, in turn, and
prints the seconds of a step as JSON: {way: one for each round}. A way is

    ddp           DistributedDataParallel
    ddp:K         the same with gradients accumulated over K micro-batches (no_sync)
    virtual:V     VirtualStep with V virtual workers; then /bfloat16 compresses its exchange, and
                  /one has one bucket, which is exchanged once backward has ended

Started by bench/pytorch on every worker.
"""
import argparse
import contextlib
import json
import os
import time

import numpy as np
import renzan
import renzan.torch
import torch
import torch.distributed
from tasks import TASKS

parser = argparse.ArgumentParser()
parser.add_argument("task", choices=TASKS)
parser.add_argument("ways", nargs="+")
parser.add_argument("--rounds", type=int, required=True)
parser.add_argument("--seconds", type=float, required=True, help="of one way in a round, at least")
parser.add_argument("--rows", type=int, help="of a worker, instead of the task's")
args = parser.parse_args()
torch.set_num_threads(1)
comm = renzan.init()
place = f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['BENCH_TORCH_PORT']}"
torch.distributed.init_process_group("gloo", init_method=place, rank=comm.rank,
                                     world_size=comm.world_size)
task = TASKS[args.task]
ROWS = args.rows or task.batch_size // comm.world_size
torch.manual_seed(comm.rank)
BATCHES = [task.make_batch(ROWS) for _ in range(8)]


def ddp(micro_batches):
    model = torch.nn.parallel.DistributedDataParallel(task.make_model())
    optimizer = task.make_optimizer(model.parameters())
    rows = ROWS // micro_batches

    def step(batch):
        optimizer.zero_grad()
        for i in range(micro_batches):
            micro = batch if micro_batches == 1 else [part[i * rows:(i + 1) * rows]
                                                      for part in batch]
            is_last = i == micro_batches - 1
            with contextlib.nullcontext() if is_last else model.no_sync():
                loss = task.loss(model, micro)
                (loss if micro_batches == 1 else loss / micro_batches).backward()
        optimizer.step()
    return step


def virtual(virtual_workers, *options):
    model = task.make_model()
    settings = {"bfloat16": {"compression": "bfloat16"}, "one": {"bucket_bytes": 1 << 40}}
    chosen = {k: v for option in options for k, v in settings[option].items()}
    step = renzan.torch.VirtualStep(model, task.make_optimizer(model.parameters()),
                                    virtual_workers, **chosen)
    return lambda batch: step(batch, task.loss)


def make(way):
    name, _, options = way.partition(":")
    if name == "ddp":
        return ddp(int(options or 1))
    count, *rest = options.split("/")
    return virtual(int(count), *rest)


def seconds_of(step, steps):
    comm.barrier()
    start = time.monotonic()
    for i in range(steps):
        step(BATCHES[i % len(BATCHES)])
    comm.barrier()
    return (time.monotonic() - start) / steps


torch.manual_seed(1)
ways = {way: make(way) for way in args.ways}
steps_of = {}
for way, step in ways.items():
    seconds_of(step, 2)
    wanted = max(1, round(args.seconds / seconds_of(step, 1)))
    steps_of[way] = int(comm.broadcast(np.array([wanted]))[0])
measured = {way: [] for way in ways}
for _ in range(args.rounds):
    for way, step in ways.items():
        measured[way].append(seconds_of(step, steps_of[way]))
if comm.rank == 0:
    print(json.dumps({"seconds": measured, "torch": torch.__version__,
                      "isa": torch.backends.cpu.get_cpu_capability()}))
torch.distributed.destroy_process_group()
renzan.finalize()
