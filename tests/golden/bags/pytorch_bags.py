#!/usr/bin/env python3
"""PyTorch's losses for a model of bags with weights, from the initial weights that Renzan wrote:
EmbeddingBag with per_sample_weights. Prints JSON. See tests/golden/make_golden.

  pytorch_bags.py CONFIG.yaml DATA INITIAL_MODEL STEPS
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
from pytorch_models import MODELS, load_by_name

TABLES = {"user": "user", "tags": "tags", "topics": "topics", "likes": "tags"}


def main():
    config_path, data, initial, steps = sys.argv[1:5]
    with open(config_path) as file:
        config = yaml.safe_load(file)
    m = config["model"]
    load = lambda name: torch.from_numpy(np.load(os.path.join(data, "shard-00000", name)))
    dense, users, label = load("dense.npy"), load("ids.npy").long()[:, 0], load("label.npy")
    tables = {name: nn.Parameter(load_safetensors(os.path.join(
        initial, f"table.{name}.safetensors"))[f"embedding.{name}.weight"].clone())
        for name in ("user", "tags", "topics")}
    bags = {name: (load(f"{name}.values.npy").long(), load(f"{name}.offsets.npy"))
            for name in ("tags", "topics", "likes")}
    weights = {name: load(f"{name}.weights.npy") for name in ("tags", "topics")}
    model = MODELS[m["type"]](dense.shape[1], [m["embedding_dim"]] * len(TABLES), m)
    load_by_name(model, load_safetensors(os.path.join(initial, "dense.safetensors")))
    torch.set_num_threads(1)

    def pooled(name, part):
        values, offsets = bags[name]
        owned = slice(int(offsets[part.start]), int(offsets[part.stop]))
        begin = offsets[part.start:part.stop] - offsets[part.start]
        each = weights[name][owned] if name in weights else torch.ones(owned.stop - owned.start)
        if m["tables"].get(name, {}).get("pooling") == "mean":
            bag = torch.repeat_interleave(torch.arange(len(begin)),
                                          offsets[part.start:part.stop + 1].diff())
            sums = torch.zeros(len(begin)).index_add(0, bag, each)[bag]
            each = torch.where(sums == 0, sums, each / sums)
        return nn.functional.embedding_bag(values[owned], tables[TABLES[name]], begin, mode="sum",
                                           per_sample_weights=each)

    rates = {name: config["optimizer"][name]["learning_rate"] for name in ("dense", "sparse")}
    optimizer = torch.optim.SGD([{"params": list(tables.values()), "lr": rates["sparse"]},
                                 {"params": model.parameters(), "lr": rates["dense"]}])
    batch, losses = config["training"]["batch_size"], []
    for step in range(int(steps)):
        part = slice(step * batch, (step + 1) * batch)
        rows = [tables["user"][users[part]], *(pooled(name, part) for name in bags)]
        loss = nn.functional.binary_cross_entropy_with_logits(
            model(dense[part], torch.cat(rows, 1)), label[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(json.dumps({"losses": losses}))


if __name__ == "__main__":
    main()
