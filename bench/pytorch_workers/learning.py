"""Trains a model by plain PyTorch (one process) and by VirtualStep on all workers from the same
weights on the same samples, and prints what they have learned as JSON: {way: figure}.

Of the digits the accuracy on those left out; of the transformer the loss on text left out. Started
by bench/pytorch on every worker.
"""
import argparse
import gzip
import json
import math
import types

import renzan
import renzan.torch
import torch
from sklearn.datasets import load_digits
from tasks import TASKS

parser = argparse.ArgumentParser()
parser.add_argument("task", choices=["digits", "transformer"])
parser.add_argument("--seed", type=int, required=True)
parser.add_argument("--steps", type=int, required=True)
parser.add_argument("--text", help="of the transformer")
args = parser.parse_args()
torch.set_num_threads(1)
comm = renzan.init()
ALONE = types.SimpleNamespace(rank=0, world_size=1)
task = TASKS[args.task]


class Digits:
    def __init__(self):
        digits = load_digits()
        self.images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
        self.labels = torch.tensor(digits.target)
        self.num_samples = 1500

    def batch(self, indices):
        return self.images[indices], self.labels[indices]

    def figure(self, model):
        right = model(self.images[1500:]).argmax(1) == self.labels[1500:]
        return right.float().mean().item()


class Text:
    def __init__(self, length=64):
        with gzip.open(args.text, "rt") as file:
            text = file.read()
        codes = {character: code for code, character in enumerate(sorted(set(text)))}
        self.codes = torch.tensor([codes[character] for character in text])
        self.length, self.num_samples = length, int(0.9 * len(text))

    def batch(self, indices):
        rows = torch.stack([self.codes[i:i + self.length + 1] for i in indices])
        return rows[:, :-1], rows[:, 1:]

    def figure(self, model):
        begin = range(self.num_samples + self.length, len(self.codes) - self.length, 500)
        return task.loss(model, self.batch(list(begin))).item()


def train(data, virtual):
    torch.manual_seed(args.seed)
    model = task.make_model()
    optimizer = task.make_optimizer(model.parameters())
    sampler = renzan.torch.Sampler(
        data.num_samples, task.batch_size, seed=args.seed,
        epochs=math.ceil(args.steps / (data.num_samples // task.batch_size)),
        communicator=comm if virtual else ALONE)
    step = renzan.torch.VirtualStep(model, optimizer, seed=args.seed) if virtual else None
    for number in range(args.steps):
        batch = data.batch(sampler.indices(number))
        if virtual:
            step(batch, task.loss)
        else:
            optimizer.zero_grad()
            task.loss(model, batch).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        return data.figure(model)


data = Digits() if args.task == "digits" else Text()
plain = train(data, False) if comm.rank == 0 else None
learned = {"plain": plain, "virtual": train(data, True)}
if comm.rank == 0:
    print(json.dumps(learned))
renzan.finalize()
