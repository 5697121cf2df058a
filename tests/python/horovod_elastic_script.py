"""An elastic Horovod script: a linear model, whose workers note which samples they have processed.

    horovod_elastic_script.py DIRECTORY [die RANK EPOCH BATCH]
"""

import hashlib
import os
import pathlib
import signal
import sys

import horovod.torch as hvd
import torch

directory = pathlib.Path(sys.argv[1])
dies = tuple(map(int, sys.argv[3:])) if len(sys.argv) > 2 else None
EPOCHS, BATCH, SAMPLES, BATCHES_PER_COMMIT = 4, 5, 60, 2


@hvd.elastic.run
def train(state):
    while state.epoch < EPOCHS:
        loader = torch.utils.data.DataLoader(dataset, batch_size=BATCH, sampler=state.sampler)
        done = []
        for i, (inputs, targets) in enumerate(loader):
            if (hvd.rank(), state.epoch, i) == dies:
                os.kill(os.getpid(), signal.SIGKILL)
            state.optimizer.zero_grad()
            torch.nn.functional.mse_loss(state.model(inputs), targets).backward()
            state.optimizer.step()
            done += state.sampler.get_indices(i, BATCH)
            state.sampler.record_batch(i, BATCH)
            state.batch += 1
            if state.batch % BATCHES_PER_COMMIT == 0:
                state.history[0] += 1
                state.commit()
                note(state.epoch, done)
                done = []
        state.epoch += 1
        state.sampler.set_epoch(state.epoch)
        state.commit()
        note(state.epoch - 1, done)


def note(epoch, samples):
    with open(directory / "processed", "a", encoding="ascii") as file:
        file.write("".join(f"{epoch} {sample}\n" for sample in samples))


def on_reset():
    print("reset", state.epoch, state.batch, hvd.size(), flush=True)


hvd.init()
torch.set_num_threads(1)
torch.manual_seed(hvd.rank())  # sync() makes them equal
inputs = torch.arange(float(SAMPLES)).reshape(-1, 1) / SAMPLES
dataset = torch.utils.data.TensorDataset(inputs, inputs * 3 - 1)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
state = hvd.elastic.TorchState(model, optimizer, epoch=0, batch=0, history=[0],
                               sampler=hvd.elastic.ElasticSampler(dataset, seed=3))
state.register_reset_callbacks([on_reset])
train(state)
weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
print("end", state.epoch, state.history[0], hashlib.sha256(weights).hexdigest(), flush=True)
