#!/usr/bin/env python3
"""SASRec and HSTU as one writes them in PyTorch, for bench/sequences: reads the request that it
wrote, trains, ranks all items for each row of the test, and prints JSON.

  sequences_pytorch.py REQUEST.json
"""
import json
import os
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional


def load(directory, positions):
    """Items to predict [rows], and the ones before [rows, positions], the newest last; 0: none."""
    items, histories = [], []
    for shard in sorted(name for name in os.listdir(directory) if name.startswith("shard-")):
        read = lambda name: np.load(os.path.join(directory, shard, name))
        values, offsets = read("seen.values.npy"), read("seen.offsets.npy")
        history = np.zeros((len(offsets) - 1, positions), dtype=np.int64)
        for row, (begin, end) in enumerate(zip(offsets, offsets[1:])):
            history[row, positions - (end - begin):] = values[begin:end]
        items.append(read("ids.npy")[:, 0].astype(np.int64))
        histories.append(history)
    return torch.from_numpy(np.concatenate(items)), torch.from_numpy(np.concatenate(histories))


class Layer(nn.Module):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.heads = heads
        self.attention_norm, self.forward_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim)
        self.feed_forward = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Dropout(dropout),
                                          nn.Linear(dim, dim))

    def forward(self, x, mask):
        n, positions, dim = x.shape
        q, k, v = (part.view(n, positions, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.attention_norm(x)).chunk(3, dim=2))
        heads = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(heads.transpose(1, 2).reshape(n, positions, dim))
        return x + self.feed_forward(self.forward_norm(x))


class NextItem(nn.Module):
    """Takes `history` [n, positions], whose newest item is the last, 0 where there is none."""

    def __init__(self, items, r):
        super().__init__()
        self.items = nn.Embedding(items, r["dim"])
        nn.init.normal_(self.items.weight, std=r["deviation"])

    def loss(self, history, item, negatives):
        query = self.query(history)
        scores = (query.unsqueeze(1) * self.items(negatives)).sum(2)
        scores = scores.masked_fill(negatives == item.unsqueeze(1), -float("inf"))
        own = (query * self.items(item)).sum(1, keepdim=True)
        return functional.cross_entropy(torch.cat([own, scores], 1),
                                        torch.zeros(len(item), dtype=torch.int64))


class SasRec(NextItem):
    def __init__(self, items, r):
        super().__init__(items, r)
        self.positions = nn.Parameter(torch.zeros(r["positions"], r["dim"]))
        self.layers = nn.ModuleList(Layer(r["dim"], r["heads"], r["dropout"])
                                    for _ in range(r["layers"]))
        self.norm = nn.LayerNorm(r["dim"])

    def query(self, history):
        """[n, dim]: of what comes after the newest item."""
        used, places = history > 0, torch.arange(history.shape[1])
        # What is masked must leave one: unused positions see themselves.
        mask = (places.view(-1, 1) >= places) & used.unsqueeze(1) | torch.eye(
            len(places), dtype=torch.bool)
        x = self.items(history) + self.positions
        for layer in self.layers:
            x = layer(x, mask.unsqueeze(1))
        return self.norm(x[:, -1])


class HstuLayer(nn.Module):
    """Without a bias for distances in time."""

    def __init__(self, dim, heads, positions):
        super().__init__()
        self.heads = heads
        self.uvqk, self.out = nn.Linear(dim, 4 * dim, bias=False), nn.Linear(dim, dim)
        self.distance = nn.Parameter(torch.zeros(positions))

    def forward(self, x, mask, distances):
        n, positions, dim = x.shape
        u, v, q, k = functional.silu(self.uvqk(x)).chunk(4, dim=2)
        q, k, v = (part.view(n, positions, self.heads, -1).transpose(1, 2) for part in (q, k, v))
        scores = functional.silu(q @ k.transpose(2, 3) + self.distance[distances]) / positions
        heads = (scores * mask) @ v
        heads = heads.transpose(1, 2).reshape(n, positions, dim)
        return x + self.out(functional.layer_norm(heads, (dim,), eps=1e-6) * u)


class Hstu(NextItem):
    def __init__(self, items, r):
        super().__init__(items, r)
        self.layers = nn.ModuleList(HstuLayer(r["dim"], r["heads"], r["positions"])
                                    for _ in range(r["layers"]))
        self.norms = nn.ModuleList(nn.LayerNorm(r["dim"]) for _ in range(r["layers"] - 1))

    def query(self, history):
        """[n, dim]: of what comes after the newest item."""
        used, places = history > 0, torch.arange(history.shape[1])
        distances = places.view(-1, 1) - places
        mask = ((distances >= 0) & used.unsqueeze(1)).unsqueeze(1)
        x = self.items(history)
        for layer, norm in zip(self.layers, (nn.Identity(), *self.norms)):
            x = layer(norm(x), mask, distances.clamp(min=0))
        return x[:, -1]


MODELS = {"sasrec": SasRec, "hstu": Hstu}


def train(model, items, histories, r):
    """Samples per second after the first epoch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=r["learning_rate"])
    batches, seconds = len(items) // r["batch"], []
    for _ in range(r["epochs"]):
        begun = time.monotonic()
        order = torch.randperm(len(items))
        for batch in order[:batches * r["batch"]].view(batches, -1):
            negatives = torch.randint(2, model.items.num_embeddings, (len(batch), r["negatives"]))
            optimizer.zero_grad()
            model.loss(histories[batch], items[batch], negatives).backward()
            optimizer.step()
        seconds.append(time.monotonic() - begun)
    measured = seconds[1:] or seconds
    return batches * r["batch"] * len(measured) / sum(measured)


@torch.no_grad()
def ranks(model, items, histories, candidates):
    """1, and one for each other candidate whose score is not less."""
    model.eval()
    vectors, found = model.items.weight[candidates], []
    for item, history in zip(items.split(256), histories.split(256)):
        query = model.query(history)
        own = (query * model.items(item)).sum(1, keepdim=True)
        others = candidates.unsqueeze(0) != item.unsqueeze(1)
        found.append(1 + ((query @ vectors.T >= own) & others).sum(1))
    return torch.cat(found).double()


def main():
    with open(sys.argv[1]) as file:
        r = json.load(file)
    torch.set_num_threads(r["threads"])
    torch.manual_seed(r["seed"])
    items, histories = load(r["train"], r["positions"])
    test = load(r["test"], r["positions"])
    candidates = torch.unique(torch.cat([items, test[0]]))
    model = MODELS[r["model"]](1 + max(int(histories.max()), int(candidates.max())), r)
    rate = train(model, items, histories, r)
    rank = ranks(model, *test, candidates)
    print(json.dumps({
        "hr": (rank <= 10).double().mean().item(),
        "ndcg": torch.where(rank <= 10, 1 / torch.log2(1 + rank), 0.0).mean().item(),
        "samples_per_second": rate, "torch": torch.__version__.split("+")[0]}))


main()
