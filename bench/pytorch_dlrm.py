#!/usr/bin/python3
"""The same DLRM in PyTorch, for comparisons: the peer of the speed bench and the source of the golden
losses. Reads a Renzan dataset with numpy and, for golden losses, a Renzan model's initial weights.

  pytorch_dlrm.py --data DIR --batch 2048 --steps 100 --threads 2     prints samples/s as JSON
  pytorch_dlrm.py --data DIR --model DIR --steps 10 --losses          prints the losses as JSON
"""
import argparse
import json
import os
import struct
import time

import numpy as np
import torch
from torch import nn


def load_dataset(directory, rows):
    """The first `rows` rows: label [n], dense [n, 13], ids [n, tables]."""
    shard = os.path.join(directory, sorted(d for d in os.listdir(directory)
                                           if d.startswith("shard-"))[0])
    def load(name):
        return torch.from_numpy(np.load(os.path.join(shard, name), mmap_mode="r")[:rows].copy())
    return load("label.npy"), load("dense.npy"), load("ids.npy").long()


def load_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    return {key: torch.from_numpy(
                np.frombuffer(data[slice(*entry["data_offsets"])], "<f4")
                .reshape(entry["shape"]).copy())
            for key, entry in header.items() if key != "__metadata__"}


def mlp(sizes, last_relu):
    layers = []
    for i, (n, m) in enumerate(zip(sizes, sizes[1:])):
        layers.append(nn.Linear(n, m))
        if last_relu or i + 2 < len(sizes):
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


class Dlrm(nn.Module):
    def __init__(self, num_dense, table_rows, dim, bottom, top):
        super().__init__()
        self.bottom = mlp([num_dense, *bottom, dim], True)
        self.tables = nn.ModuleList(
            [nn.EmbeddingBag(rows, dim, mode="sum", sparse=True) for rows in table_rows])
        vectors = 1 + len(table_rows)
        self.top = mlp([dim + vectors * (vectors - 1) // 2, *top, 1], False)
        self.i, self.j = torch.tril_indices(vectors, vectors, -1)

    def forward(self, dense, ids, offsets):
        x = self.bottom(dense)
        rows = [table(ids[:, t], offsets) for t, table in enumerate(self.tables)]
        vectors = torch.stack([x, *rows], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.i, self.j]
        return self.top(torch.cat([x, products], 1)).squeeze(1)

    def load(self, directory, features):
        """Takes over the weights of a Renzan model directory."""
        dense = load_safetensors(os.path.join(directory, "dense.safetensors"))
        with torch.no_grad():
            for name, stack in (("bottom", self.bottom), ("top", self.top)):
                linears = [layer for layer in stack if isinstance(layer, nn.Linear)]
                for i, linear in enumerate(linears):
                    linear.weight.copy_(dense[f"{name}.{i}.weight"])
                    linear.bias.copy_(dense[f"{name}.{i}.bias"])
            for table, feature in zip(self.tables, features):
                saved = load_safetensors(os.path.join(directory, f"table.{feature}.safetensors"))
                table.weight.copy_(saved[f"embedding.{feature}.weight"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--model", help="start from this model's weights")
    parser.add_argument("--features", nargs="*", help="the tables' names, in order")
    parser.add_argument("--rows", type=int, nargs="*", help="rows of each table, in order")
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--bottom", type=int, nargs="*", default=[512, 256, 64])
    parser.add_argument("--top", type=int, nargs="*", default=[512, 256])
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--losses", action="store_true")
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    label, dense, ids = load_dataset(args.data, args.batch * args.steps)
    rows = args.rows if len(args.rows) > 1 else args.rows * ids.shape[1]
    model = Dlrm(dense.shape[1], rows, args.dim, args.bottom, args.top)
    if args.model:
        model.load(args.model, args.features)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    loss_function = nn.BCEWithLogitsLoss()
    offsets = torch.arange(args.batch)
    batches = len(label) // args.batch

    losses = []
    def step(index):
        begin = index % batches * args.batch
        part = slice(begin, begin + args.batch)
        loss = loss_function(model(dense[part], ids[part], offsets), label[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    if args.losses:
        for index in range(args.steps):
            step(index)
        print(json.dumps({"losses": losses, "torch": torch.__version__}))
        return
    for index in range(5):
        step(index)
    start = time.perf_counter()
    for index in range(args.steps):
        step(index)
    seconds = time.perf_counter() - start
    print(json.dumps({"samples_per_second": args.batch * args.steps / seconds,
                      "torch": torch.__version__}))


if __name__ == "__main__":
    main()
