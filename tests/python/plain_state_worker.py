"""Trains without a VirtualStep, on the same samples on all workers, and prints the digest.

plain_state_worker.py DIRECTORY WORKER_TO_STOP
"""

import os
import signal
import sys
import time

import torch

import renzan
import renzan.torch


def main():
    torch.manual_seed(1)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    state = renzan.torch.State(model, optimizer, directory=sys.argv[1])
    while state.step < 8:
        if state.step == 3 and int(sys.argv[2]) % renzan.init().world_size == renzan.init().rank:
            if int(sys.argv[2]) >= 0:
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(0.3)
        optimizer.zero_grad()
        model(torch.full((4, 3), float(state.step))).square().mean().backward()
        optimizer.step()
        state.commit()
    print(state.step, state.sha256())


renzan.torch.run(main)
