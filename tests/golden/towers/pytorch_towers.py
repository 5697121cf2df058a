#!/usr/bin/env python3
"""PyTorch's losses for two towers, the cross entropy of a softmax over the samples of each virtual
worker, from the initial weights that Renzan wrote. Prints JSON. See tests/golden/make_golden.

  pytorch_towers.py CONFIG.yaml DATA INITIAL_MODEL STEPS
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
from pytorch_dlrm import load_safetensors
from pytorch_models import Mlp, load_by_name

NAMES = ["user", "item", "genre"]


class TwoTower(nn.Module):
    def __init__(self, num_dense, m):
        super().__init__()
        dim = m["embedding_dim"]
        self.query_tower = Mlp([dim + num_dense, *m["tower_mlp"]])
        self.item_tower = Mlp([2 * dim, *m["tower_mlp"]])

    def forward(self, user, item, genre, dense):
        query = self.query_tower(torch.cat([user, dense], 1))
        item = self.item_tower(torch.cat([item, genre], 1))
        return nn.functional.normalize(query), nn.functional.normalize(item)


def main():
    config_path, data, initial, steps = sys.argv[1:5]
    with open(config_path) as file:
        config = yaml.safe_load(file)
    m = config["model"]
    load = lambda name: torch.from_numpy(np.load(os.path.join(data, "shard-00000", name)))
    dense, ids = load("dense.npy"), load("ids.npy").long()
    tables = [nn.Parameter(load_safetensors(os.path.join(initial, f"table.{name}.safetensors"))
                           [f"embedding.{name}.weight"].clone()) for name in NAMES]
    item = ids[:, NAMES.index("item")]
    log_share = torch.log(torch.bincount(item) / len(item))
    model = TwoTower(dense.shape[1], m)
    load_by_name(model, load_safetensors(os.path.join(initial, "dense.safetensors")))
    torch.set_num_threads(1)
    rates = {name: config["optimizer"][name]["learning_rate"] for name in ("dense", "sparse")}
    optimizer = torch.optim.SGD([{"params": tables, "lr": rates["sparse"]},
                                 {"params": model.parameters(), "lr": rates["dense"]}])
    batch, losses = config["training"]["batch_size"], []
    samples = batch // config["numerics"]["virtual_workers"]
    for step in range(int(steps)):
        total = 0
        for first in range(step * batch, (step + 1) * batch, samples):
            part = slice(first, first + samples)
            queries, items = model(*(table[ids[part, t]] for t, table in enumerate(tables)),
                                   dense[part])
            scores = queries @ items.T / m["temperature"] - log_share[item[part]]
            same = (item[part].unsqueeze(1) == item[part]) & ~torch.eye(samples, dtype=bool)
            scores = scores.masked_fill(same, -torch.inf)
            total = total + nn.functional.cross_entropy(scores, torch.arange(samples),
                                                        reduction="sum") / batch
        losses.append(total.item())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    print(json.dumps({"losses": losses}))


if __name__ == "__main__":
    main()
