"""Trains a small network under renzan.torch.run and prints the digest of its state.

state_worker.py DIRECTORY STEPS [KEY=VALUE...]
"""

import os
import signal
import sys
import time

import torch
from torch import nn
from torch.nn import functional

import renzan
import renzan.torch

OPTIONS = {"kill_at": "-1", "kill_rank": "0", "stop_at": "-1", "usr1_at": "-1", "every": "4",
           "hidden": "16", "seed": "1", "batch": "24", "sleep": "0", "optimizer": "AdamW",
           "clip_norm": "0", "accumulate": "1", "loss_scale": "1", "autocast": "",
           "compression": "", "virtual_step": "1", "commit": "1", "raise_at": "-1",
           "error": "value", "loader": "0"}
OPTIONS.update(option.split("=") for option in sys.argv[3:])
NUMBER = {key: float(value) for key, value in OPTIONS.items() if value.lstrip("-").replace(
    ".", "", 1).isdigit()}


def main():
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(10, int(OPTIONS["hidden"])), nn.BatchNorm1d(int(
        OPTIONS["hidden"])), nn.ReLU(), nn.Dropout(0.2), nn.Linear(int(OPTIONS["hidden"]), 3))
    data, labels = torch.randn(240, 10), torch.randint(0, 3, (240,))
    optimizer = getattr(torch.optim, OPTIONS["optimizer"])(model.parameters(), lr=0.05)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [3, 7, 12], gamma=0.5)
    average = torch.optim.swa_utils.AveragedModel(model)
    extra = {"average": average, "best": float("inf"), "seen": torch.zeros(2, dtype=torch.int64)}
    sampler = renzan.torch.Sampler(240, int(OPTIONS["batch"]), seed=int(OPTIONS["seed"]),
                                   steps=int(sys.argv[2]))
    step = renzan.torch.VirtualStep(
        model, optimizer, seed=int(OPTIONS["seed"]), clip_norm=NUMBER["clip_norm"] or None,
        accumulate=int(OPTIONS["accumulate"]), loss_scale=NUMBER["loss_scale"],
        autocast=getattr(torch, OPTIONS["autocast"]) if OPTIONS["autocast"] else None,
        compression=OPTIONS["compression"] or None)
    state = renzan.torch.State(model, optimizer, scheduler, step, sampler, extra,
                               directory=sys.argv[1], every_steps=int(OPTIONS["every"]))
    if step.communicator.rank == 0:
        print("from", state.step, flush=True)
    rank = step.communicator.rank
    batches = ((data[indices], labels[indices]) for indices in sampler)
    if NUMBER["loader"]:
        dataset = torch.utils.data.TensorDataset(data, labels)
        batches = torch.utils.data.DataLoader(dataset, batch_sampler=sampler, num_workers=1)
    for batch in batches:
        def at(what):
            return state.step == NUMBER[what] and rank == NUMBER["kill_rank"]
        if at("kill_at"):
            os.kill(os.getpid(), signal.SIGKILL)
        if at("stop_at"):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.3)
        if at("usr1_at"):
            os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(0.3)
        if at("raise_at"):
            raise ValueError("a bug") if OPTIONS["error"] == "value" else renzan.DataError("bad row")
        time.sleep(NUMBER["sleep"])
        loss = step(batch,
                    lambda m, micro: functional.cross_entropy(m(micro[0]), micro[1]))
        scheduler.step()
        average.update_parameters(model)
        extra["best"] = min(extra["best"], loss)
        extra["seen"] += sampler.batch_size
        if NUMBER["commit"]:
            state.commit()
    if rank == 0:
        print("at", state.step, state.sha256(), extra["best"], scheduler.get_last_lr()[0])


renzan.torch.run(main)
