#!/usr/bin/env python3
"""PyTorch's losses for a configuration in this folder, from the initial weights that Renzan wrote.
Prints JSON. See tests/golden/make_golden.

  pytorch_sequences.py CONFIG.yaml DATA INITIAL_MODEL STEPS
"""
import json
import os
import sys

import numpy as np
import torch
import yaml
from torch import nn

here = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(here, ".."), os.path.join(here, "../../../bench")]
from negatives import draw_negatives
from pytorch_blocks import BlockGraph, Value, positions_of
from pytorch_dlrm import load_safetensors
from pytorch_next_item import HstuModel, Sasrec


POSITIONS = 5  # max_length in schema.yaml


def stack(widths, activation):
    layers = []
    for i, (fan_in, fan_out) in enumerate(zip(widths, widths[1:])):
        layers += [nn.Linear(fan_in, fan_out)] + [activation()] * (i + 2 < len(widths))
    return nn.Sequential(*layers)


def of_stack(name, layers):
    """Renzan's names of its parameters."""
    linears = [layer for layer in layers if isinstance(layer, nn.Linear)]
    return {f"{name}.{i}.{part}": getattr(linear, part)
            for i, linear in enumerate(linears) for part in ("weight", "bias")}


class Din(nn.Module):
    def __init__(self, users, items, m, positions):
        super().__init__()
        dim = m["embedding_dim"]
        self.user, self.item = nn.Embedding(users, dim), nn.Embedding(items, dim)
        self.interest_0 = stack([4 * dim, *m["attention_mlp"], 1], nn.Sigmoid)
        self.deep = stack([3 * dim + 1, *m["top_mlp"], 1], nn.ReLU)

    def parts(self):
        return {**of_stack("interest_0", self.interest_0), **of_stack("deep", self.deep)}

    def forward(self, price, user, item, clicked, used):
        candidate, keys = self.item(item), self.item(clicked)
        query = candidate.unsqueeze(1).expand_as(keys)
        scores = self.interest_0(torch.cat([query, keys, query - keys, query * keys], 2)).squeeze(2)
        interest = (torch.where(used, scores, 0.0).unsqueeze(2) * keys).sum(1)
        return self.deep(torch.cat([self.user(user), candidate, interest, price], 1)).squeeze(1)


class Bst(nn.Module):
    def __init__(self, users, items, m, positions):
        super().__init__()
        dim, self.heads = m["embedding_dim"], m["attention_heads"]
        self.user, self.item = nn.Embedding(users, dim), nn.Embedding(items, dim)
        self.positions = nn.Parameter(torch.zeros((positions + 1) * dim))
        self.query, self.key, self.value = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.attention = nn.Sequential(nn.Linear(dim, dim))
        self.attended_norm, self.transformed_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.feed_forward = stack([dim, dim, dim], nn.ReLU)
        self.deep = stack([3 * dim + 1, *m["top_mlp"], 1], nn.ReLU)

    def parts(self):
        parts = {"positions_0.weight": self.positions, **of_stack("attention_0", self.attention),
                 **of_stack("forward_0", self.feed_forward), **of_stack("deep", self.deep)}
        for name in ("query", "key", "value"):
            parts[f"heads_0.{name}.weight"] = getattr(self, name).weight
        for name in ("attended_norm", "transformed_norm"):
            parts[f"{name}_0.gamma"] = getattr(self, name).weight
            parts[f"{name}_0.beta"] = getattr(self, name).bias
        return parts

    def forward(self, price, user, item, clicked, used):
        candidate, (n, positions) = self.item(item), clicked.shape
        lengths = used.sum(1)
        # The candidate comes after the newest item; positions count from the end.
        ids = torch.cat([clicked, torch.zeros(n, 1, dtype=torch.int64)], 1)
        ids[torch.arange(n), lengths] = item
        place = torch.arange(positions + 1).unsqueeze(0)
        used = place <= lengths.unsqueeze(1)
        from_end = (place + positions - lengths.unsqueeze(1)).clamp(max=positions)
        x = self.item(ids) + self.positions.view(positions + 1, -1)[from_end]
        split = lambda y: y.view(n, positions + 1, self.heads, -1).transpose(1, 2)
        query, key, value = (split(layer(x)) for layer in (self.query, self.key, self.value))
        scores = query @ key.transpose(2, 3) / query.shape[-1] ** 0.5
        scores = scores.masked_fill(~used.view(n, 1, 1, -1), -float("inf"))
        heads = (scores.softmax(3) @ value).transpose(1, 2).reshape(n, positions + 1, -1)
        x = self.attended_norm(x + self.attention(heads))
        x = self.transformed_norm(x + self.feed_forward(x))
        interest = (x * used.unsqueeze(2)).sum(1) / used.sum(1, keepdim=True)
        return self.deep(torch.cat([self.user(user), candidate, interest, price], 1)).squeeze(1)


class Blocks(BlockGraph):
    """A graph of blocks. Its parameters are made when they are loaded."""

    def __init__(self, users, items, m, positions, saved):
        super().__init__(m, saved)
        dim = m["embedding_dim"]
        self.user, self.item = nn.Embedding(users, dim), nn.Embedding(items, dim)
        self.named = {name: self.p(name) for name in saved}

    def parts(self):
        return self.named

    def forward(self, price, user, item, clicked, used):
        rows = {"user": self.user(user), "item": self.item(item)}
        return self.logit({
            "dense": Value({"dense": price}), "embeddings": Value(rows),
            **{f"embeddings.{name}": Value({name: row}) for name, row in rows.items()},
            "embeddings.clicked": positions_of(self.item(clicked) * used.unsqueeze(2), used)})


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
    kind = {"din": Din, "bst": Bst, "sasrec": Sasrec, "hstu": HstuModel,
            "blocks": Blocks}[config["model"]["type"]]
    saved = load_safetensors(os.path.join(initial, "dense.safetensors"))
    of_saved = [saved] if kind is Blocks else []
    model = kind(len(tables["user"]), len(tables["item"]), config["model"], POSITIONS, *of_saved)
    with torch.no_grad():
        for name, table in tables.items():
            getattr(model, name).weight.copy_(table)
        for name, parameter in model.parts().items():
            parameter.copy_(saved[name])
    assert len(saved) == len(model.parts()), sorted(saved)
    torch.set_num_threads(1)
    rates = {name: config["optimizer"][name]["learning_rate"] for name in ("dense", "sparse")}
    embeddings = [model.user.weight, model.item.weight]
    rest = list(model.parts().values())
    optimizer = torch.optim.SGD([{"params": embeddings, "lr": rates["sparse"]},
                                 {"params": rest, "lr": rates["dense"]}])
    loss_function, batch, losses = nn.BCEWithLogitsLoss(), config["training"]["batch_size"], []
    columns = load_clicks(data, POSITIONS)
    for step in range(int(steps)):
        label, *inputs = (column[step * batch:(step + 1) * batch] for column in columns)
        if "negatives" in config["model"]:  # id 0 is no item
            count, item = config["model"]["negatives"]["item"], inputs[2].tolist()
            inputs.append(torch.from_numpy(draw_negatives(
                config["seed"], "item", count, step, item, 1, len(tables["item"]))))
        optimizer.zero_grad()
        loss = loss_function(model(*inputs), label)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(json.dumps({"losses": losses}))


if __name__ == "__main__":
    main()
