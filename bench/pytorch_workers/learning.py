"""Trains a model by plain PyTorch (one process) and by VirtualStep on all workers from the same
weights on the same samples, and prints what they have learned as JSON: {way: {figure: value}}, on
samples that were left out. Started by bench/pytorch on every worker.
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
from sklearn.metrics import roc_auc_score
from tasks import TASKS
from torch.nn import functional

parser = argparse.ArgumentParser()
parser.add_argument("task", choices=["digits", "ranking", "transformer"])
parser.add_argument("--seed", type=int, required=True)
parser.add_argument("--steps", type=int, required=True)
parser.add_argument("--data", help="the text of the transformer; the dataset of the ranking model")
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
        scores, labels = model(self.images[1500:]), self.labels[1500:]
        return {"accuracy": (scores.argmax(1) == labels).float().mean().item(),
                "loss": functional.cross_entropy(scores, labels).item()}


class Clicks:
    def __init__(self):
        dense, ids, label = renzan.torch.Dataset(args.data)[slice(None)]
        self.dense, self.label = dense, label
        self.ids = torch.stack(list(ids.values()), 1)
        self.num_samples = int(0.8 * len(label))

    def batch(self, indices):
        return self.dense[indices], self.ids[indices], self.label[indices]

    def figure(self, model):
        dense, ids, label = self.batch(slice(self.num_samples, None))
        scores = model(dense, ids)
        return {"AUC": roc_auc_score(label, scores),
                "loss": functional.binary_cross_entropy_with_logits(scores, label).item()}


class Text:
    def __init__(self, length=64):
        with gzip.open(args.data, "rt") as file:
            text = file.read()
        codes = {character: code for code, character in enumerate(sorted(set(text)))}
        self.codes = torch.tensor([codes[character] for character in text])
        self.length, self.num_samples = length, int(0.9 * len(text))

    def batch(self, indices):
        rows = torch.stack([self.codes[i:i + self.length + 1] for i in indices])
        return rows[:, :-1], rows[:, 1:]

    def figure(self, model):
        begin = range(self.num_samples + self.length, len(self.codes) - self.length, 500)
        return {"loss": task.loss(model, self.batch(list(begin))).item()}


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


data = {"digits": Digits, "ranking": Clicks, "transformer": Text}[args.task]()
plain = train(data, False) if comm.rank == 0 else None
learned = {"plain": plain, "virtual": train(data, True)}
if comm.rank == 0:
    print(json.dumps(learned))
renzan.finalize()
