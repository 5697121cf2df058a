#!/usr/bin/env python3
"""PyTorch's losses for din.yaml, from the initial weights that Renzan wrote. Prints JSON. See
tests/golden/make_golden.

  pytorch_din.py CONFIG.yaml DATA INITIAL_MODEL STEPS
"""
import json
import os
import sys

import numpy as np
import torch
import yaml
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../../bench"))
from pytorch_dlrm import load_safetensors


def stack(widths, activation):
    layers = []
    for i, (fan_in, fan_out) in enumerate(zip(widths, widths[1:])):
        layers += [nn.Linear(fan_in, fan_out)] + [activation()] * (i + 2 < len(widths))
    return nn.Sequential(*layers)


class Din(nn.Module):
    def __init__(self, users, items, m):
        super().__init__()
        dim = m["embedding_dim"]
        self.user, self.item = nn.Embedding(users, dim), nn.Embedding(items, dim)
        self.interest_0 = stack([4 * dim, *m["attention_mlp"], 1], nn.Sigmoid)
        self.deep = stack([3 * dim + 1, *m["top_mlp"], 1], nn.ReLU)

    def forward(self, price, user, item, clicked, used):
        candidate, keys = self.item(item), self.item(clicked)
        query = candidate.unsqueeze(1).expand_as(keys)
        scores = self.interest_0(torch.cat([query, keys, query - keys, query * keys], 2)).squeeze(2)
        interest = (torch.where(used, scores, 0.0).unsqueeze(2) * keys).sum(1)
        return self.deep(torch.cat([self.user(user), candidate, interest, price], 1)).squeeze(1)


def load_clicks(directory, length):
    shard = os.path.join(directory, "shard-00000")
    load = lambda name: np.load(os.path.join(shard, name))
    values, offsets = load("clicked.values.npy"), load("clicked.offsets.npy")
    clicked, used = np.zeros((2, len(offsets) - 1, length), dtype=np.int64)
    for row, (begin, end) in enumerate(zip(offsets, offsets[1:])):
        clicked[row, :end - begin], used[row, :end - begin] = values[begin:end], 1
    ids = torch.from_numpy(load("ids.npy")).long()
    return (torch.from_numpy(load("label.npy")), torch.from_numpy(load("dense.npy")), ids[:, 0],
            ids[:, 1], torch.from_numpy(clicked), torch.from_numpy(used).bool())


def main():
    config_path, data, initial, steps = sys.argv[1:5]
    with open(config_path) as file:
        config = yaml.safe_load(file)
    tables = {name: load_safetensors(os.path.join(initial, f"table.{name}.safetensors"))
              [f"embedding.{name}.weight"] for name in ("user", "item")}
    model = Din(len(tables["user"]), len(tables["item"]), config["model"])
    saved = load_safetensors(os.path.join(initial, "dense.safetensors"))
    with torch.no_grad():
        for name, table in tables.items():
            getattr(model, name).weight.copy_(table)
        for block in ("interest_0", "deep"):
            linears = [layer for layer in getattr(model, block) if isinstance(layer, nn.Linear)]
            for i, linear in enumerate(linears):
                linear.weight.copy_(saved[f"{block}.{i}.weight"])
                linear.bias.copy_(saved[f"{block}.{i}.bias"])
    torch.set_num_threads(1)
    rates = {name: config["optimizer"][name]["learning_rate"] for name in ("dense", "sparse")}
    embeddings = [model.user.weight, model.item.weight]
    rest = [*model.interest_0.parameters(), *model.deep.parameters()]
    optimizer = torch.optim.SGD([{"params": embeddings, "lr": rates["sparse"]},
                                 {"params": rest, "lr": rates["dense"]}])
    loss_function, batch, losses = nn.BCEWithLogitsLoss(), config["training"]["batch_size"], []
    columns = load_clicks(data, 5)
    for step in range(int(steps)):
        label, *inputs = (column[step * batch:(step + 1) * batch] for column in columns)
        optimizer.zero_grad()
        loss = loss_function(model(*inputs), label)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(json.dumps({"losses": losses}))


if __name__ == "__main__":
    main()
