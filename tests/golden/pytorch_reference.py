#!/usr/bin/env python3
"""PyTorch's losses for one of the configurations in this directory, from the initial weights that
Renzan wrote, and some rows of its tables afterwards. Prints JSON. See make_golden.

  pytorch_reference.py CONFIG.yaml DATA INITIAL_MODEL STEPS
"""
import json
import os
import sys

import numpy as np
import torch
import yaml
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../bench"))
from pytorch_dlrm import Dlrm, load_dataset, load_safetensors, load_weights, mlp


class DlrmDcnV2(nn.Module):
    """DLRM with a low-rank cross network in place of the dot interaction (Wang et al., 2021)."""

    def __init__(self, num_dense, table_rows, dim, bottom, top, layers, rank):
        super().__init__()
        self.bottom = mlp([num_dense, *bottom, dim], True)
        self.tables = nn.ModuleList(
            [nn.EmbeddingBag(rows, dim, mode="sum", sparse=True) for rows in table_rows])
        width = (1 + len(table_rows)) * dim
        self.v = nn.ModuleList([nn.Linear(width, rank, bias=False) for _ in range(layers)])
        self.w = nn.ModuleList([nn.Linear(rank, width) for _ in range(layers)])
        self.top = mlp([width, *top, 1], False)

    def forward(self, dense, ids, offsets):
        rows = [table(ids[:, t], offsets) for t, table in enumerate(self.tables)]
        x0 = x = torch.cat([self.bottom(dense), *rows], 1)
        for v, w in zip(self.v, self.w):
            x = x0 * w(v(x)) + x
        return self.top(x).squeeze(1)

    def load_cross_network(self, directory):
        dense = load_safetensors(os.path.join(directory, "dense.safetensors"))
        with torch.no_grad():
            for l, (v, w) in enumerate(zip(self.v, self.w)):
                v.weight.copy_(dense[f"cross.{l}.v"])
                w.weight.copy_(dense[f"cross.{l}.w"])
                w.bias.copy_(dense[f"cross.{l}.bias"])


def make_optimizer(parameters, config):
    lr, epsilon = config["learning_rate"], config.get("epsilon", 1e-8)
    if config["type"] == "sgd":
        return torch.optim.SGD(parameters, lr=lr)
    if config["type"] == "adam":
        return torch.optim.Adam(parameters, lr=lr, eps=epsilon)
    assert config["type"] == "adagrad", config
    return torch.optim.Adagrad(parameters, lr=lr, eps=epsilon,
                               initial_accumulator_value=config.get("initial_accumulator", 0))


def main():
    config_path, data, initial, steps = sys.argv[1:5]
    with open(config_path) as file:
        config = yaml.safe_load(file)
    with open(os.path.join(initial, "manifest.json")) as file:
        tensors = [t for f in json.load(file)["files"] for t in f["tensors"]]
    shapes = {t["key"].split(".")[1]: t["shape"] for t in tensors
              if t["key"].startswith("embedding.") and t["key"].endswith(".weight")}
    features = sorted(shapes, key=lambda name: int(name[1:]))

    batch, steps, m = config["training"]["batch_size"], int(steps), config["model"]
    label, dense, ids = load_dataset(data, batch * steps)
    assert len(label) == batch * steps
    arguments = [dense.shape[1], [shapes[f][0] for f in features], m["embedding_dim"],
                 m["bottom_mlp"], m["top_mlp"]]
    if m.get("type") == "dlrm_dcnv2":
        model = both_mlps = DlrmDcnV2(*arguments, m["cross_layers"], m["cross_rank"])
        model.load_cross_network(initial)
    else:
        model = Dlrm(*arguments)
        both_mlps = model.dense
    load_weights(both_mlps.bottom, both_mlps.top, model.tables, initial, features)
    torch.set_num_threads(1)

    tables = [table.weight for table in model.tables]
    rest = [p for p in model.parameters() if all(p is not table for table in tables)]
    optimizers = [make_optimizer(rest, config["optimizer"]["dense"]),
                  make_optimizer(tables, config["optimizer"]["sparse"])]
    losses = []
    for step in range(steps):
        part = slice(step * batch, (step + 1) * batch)
        loss = nn.BCEWithLogitsLoss()(model(dense[part], ids[part], torch.arange(batch)),
                                      label[part])
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())

    # The row that was looked up most often in each table, and how often that was in one batch.
    rows = {}
    for t, feature in enumerate(features):
        values, counts = np.unique(ids[:, t].numpy(), return_counts=True)
        row = int(values[counts.argmax()])
        most = int((ids[:, t].reshape(steps, batch) == row).sum(1).max())
        rows[feature] = {"row": row, "most_in_a_batch": most,
                         "values": tables[t][row].tolist()}
    print(json.dumps({"losses": losses, "rows": rows, "torch": torch.__version__}))


main()
