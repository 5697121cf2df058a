#!/usr/bin/env python3
"""PyTorch's losses for a model of several tasks, one of which is a number, from the initial weights
that Renzan wrote. Prints JSON: the losses of each output. See tests/golden/make_golden.

  pytorch_numbers.py CONFIG.yaml DATA INITIAL_MODEL STEPS
"""
import json
import os
import sys

import numpy as np
import torch
import yaml
from torch import nn

here = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(here, "../tasks"), os.path.join(here, ".."),
                os.path.join(here, "../../../bench")]
from pytorch_dlrm import load_safetensors
from pytorch_models import load_by_name
from pytorch_tasks import Mmoe

LOSSES = {"finished": (1, nn.functional.binary_cross_entropy_with_logits),
          "rating": (0, nn.functional.mse_loss)}


def main():
    config_path, data, initial, steps = sys.argv[1:5]
    with open(config_path) as file:
        config = yaml.safe_load(file)
    m = config["model"]
    load = lambda name: torch.from_numpy(np.load(os.path.join(data, "shard-00000", name)))
    dense, ids, weights = load("dense.npy"), load("ids.npy").long(), load("weight.npy")
    labels = torch.cat([load("label.npy").unsqueeze(1), load("further_labels.npy")], 1)
    tables = [nn.Parameter(load_safetensors(os.path.join(initial, f"table.{name}.safetensors"))
                           [f"embedding.{name}.weight"].clone()) for name in ("user", "video")]
    model = Mmoe(2 * m["embedding_dim"] + dense.shape[1], m, tuple(LOSSES))
    load_by_name(model, load_safetensors(os.path.join(initial, "dense.safetensors")))
    torch.set_num_threads(1)
    rates = {name: config["optimizer"][name]["learning_rate"] for name in ("dense", "sparse")}
    optimizer = torch.optim.SGD([{"params": tables, "lr": rates["sparse"]},
                                 {"params": model.parameters(), "lr": rates["dense"]}])
    batch, losses = config["training"]["batch_size"], {task: [] for task in LOSSES}
    for step in range(int(steps)):
        part = slice(step * batch, (step + 1) * batch)
        rows = [table[ids[part, t]] for t, table in enumerate(tables)]
        outputs, total = model(torch.cat([*rows, dense[part]], 1)), 0
        for task, (column, loss) in LOSSES.items():
            label = labels[part, column]
            known = ~label.isnan()
            each = loss(outputs[task].squeeze(1)[known], label[known], reduction="none")
            total = total + m["outputs"][task].get("weight", 1) * (
                weights[part][known] * each).sum() / batch
            losses[task].append(each.mean().item())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    print(json.dumps({"losses": losses}))


if __name__ == "__main__":
    main()
