#!/usr/bin/env python3
"""PyTorch's losses for a model of several tasks, from the initial weights that Renzan wrote. Prints
JSON: the losses of each output that has a label. See tests/golden/make_golden.

  pytorch_tasks.py CONFIG.yaml DATA INITIAL_MODEL STEPS
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


class Gate(nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(experts, width))

    def forward(self, x, experts):
        shares = torch.softmax(x @ self.weight.T, 1)
        return (torch.stack(experts, 1) * shares.unsqueeze(2)).sum(1)


class Mmoe(nn.Module):
    def __init__(self, width, m, tasks=("click", "buy")):
        super().__init__()
        self.tasks = tasks
        self.experts, self.out = range(m["experts"]), m["expert_mlp"][-1]
        for e in self.experts:
            self.add_module(f"expert_{e}", Mlp([width, *m["expert_mlp"]], last_relu=True))
        for task in tasks:
            self.add_module(f"gate_{task}", Gate(width, m["experts"]))
            self.add_module(f"output_{task}", Mlp([self.out, *m["top_mlp"], 1]))

    def forward(self, x):
        experts = [getattr(self, f"expert_{e}")(x) for e in self.experts]
        return {task: getattr(self, f"output_{task}")(getattr(self, f"gate_{task}")(x, experts))
                for task in self.tasks}


class Ple(nn.Module):
    def __init__(self, width, m):
        super().__init__()
        self.m, out = m, m["expert_mlp"][-1]
        for level in range(m["expert_levels"]):
            for owner, count in ((f"shared_{level}", m["experts"]),
                                 *((f"task_{level}_{task}", m["task_experts"])
                                   for task in ("click", "buy"))):
                for e in range(count):
                    self.add_module(f"{owner}_expert_{e}",
                                    Mlp([width, *m["expert_mlp"]], last_relu=True))
            for task in "click", "buy":
                self.add_module(f"task_{level}_{task}_gate",
                                Gate(width, m["experts"] + m["task_experts"]))
            if level + 1 < m["expert_levels"]:
                self.add_module(f"shared_{level}_gate",
                                Gate(width, m["experts"] + 2 * m["task_experts"]))
            width = out
        for task in "click", "buy":
            self.add_module(f"output_{task}", Mlp([out, *m["top_mlp"], 1]))

    def experts(self, owner, count, x):
        return [getattr(self, f"{owner}_expert_{e}")(x) for e in range(count)]

    def forward(self, x):
        shared, own = x, {"buy": x, "click": x}  # in the order of Renzan's outputs
        for level in range(self.m["expert_levels"]):
            of_shared = self.experts(f"shared_{level}", self.m["experts"], shared)
            every = list(of_shared)
            for task in own:
                prefix = f"task_{level}_{task}"
                of_task = self.experts(prefix, self.m["task_experts"], own[task])
                every += of_task
                own[task] = getattr(self, prefix + "_gate")(own[task], of_task + of_shared)
            if level + 1 < self.m["expert_levels"]:
                shared = getattr(self, f"shared_{level}_gate")(shared, every)
        return {task: getattr(self, f"output_{task}")(x) for task, x in own.items()}


class Esmm(nn.Module):
    def __init__(self, width, m):
        super().__init__()
        self.output_ctr = Mlp([width, *m["top_mlp"], 1])
        self.output_cvr = Mlp([width, *m["top_mlp"], 1])

    def forward(self, x):
        click = self.output_ctr(x)
        both = torch.sigmoid(click.double()) * torch.sigmoid(self.output_cvr(x).double())
        return {"ctr": click, "ctcvr": torch.logit(both).float()}


MODELS = {"mmoe": (Mmoe, {"click": 0, "buy": 1}), "ple": (Ple, {"click": 0, "buy": 1}),
          "esmm": (Esmm, {"ctr": 0, "ctcvr": 1})}


def main():
    config_path, data, initial, steps = sys.argv[1:5]
    with open(config_path) as file:
        config = yaml.safe_load(file)
    m = config["model"]
    load = lambda name: torch.from_numpy(np.load(os.path.join(data, "shard-00000", name)))
    dense, ids = load("dense.npy"), load("ids.npy").long()
    labels = torch.cat([load("label.npy").unsqueeze(1), load("further_labels.npy")], 1)
    tables = [nn.Parameter(load_safetensors(os.path.join(initial, f"table.{name}.safetensors"))
                           [f"embedding.{name}.weight"].clone()) for name in ("user", "item")]
    build, tasks = MODELS[m["type"]]
    model = build(2 * m["embedding_dim"] + dense.shape[1], m)
    load_by_name(model, load_safetensors(os.path.join(initial, "dense.safetensors")))
    torch.set_num_threads(1)
    rates = {name: config["optimizer"][name]["learning_rate"] for name in ("dense", "sparse")}
    optimizer = torch.optim.SGD([{"params": tables, "lr": rates["sparse"]},
                                 {"params": model.parameters(), "lr": rates["dense"]}])
    batch, losses = config["training"]["batch_size"], {task: [] for task in tasks}
    for step in range(int(steps)):
        part = slice(step * batch, (step + 1) * batch)
        rows = [table[ids[part, t]] for t, table in enumerate(tables)]
        logits, total = model(torch.cat([*rows, dense[part]], 1)), 0
        for task, column in tasks.items():
            label = labels[part, column]
            known = ~label.isnan()
            each = nn.functional.binary_cross_entropy_with_logits(
                logits[task].squeeze(1)[known], label[known], reduction="none")
            weight = (m.get("outputs", {}).get(task) or {}).get("weight", 1)
            total = total + weight * each.sum() / batch
            losses[task].append(each.mean().item())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    print(json.dumps({"losses": losses}))


if __name__ == "__main__":
    main()
