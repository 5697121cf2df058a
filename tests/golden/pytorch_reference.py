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
from pytorch_dlrm import (Dlrm, load_dataset, load_safetensors, load_tables, load_weights,
                          make_dense)
from pytorch_blocks import PooledBlocks
from pytorch_models import MODELS, load_by_name


def make_optimizer(parameters, config):
    lr, epsilon = config["learning_rate"], config.get("epsilon", 1e-8)
    if config["type"] == "sgd":
        return torch.optim.SGD(parameters, lr=lr)
    if config["type"] == "adam":
        if "weight_decay" in config:
            return torch.optim.AdamW(parameters, lr=lr, eps=epsilon,
                                     weight_decay=config["weight_decay"])
        return torch.optim.Adam(parameters, lr=lr, eps=epsilon)
    assert config["type"] == "adagrad", config
    return torch.optim.Adagrad(parameters, lr=lr, eps=epsilon,
                               initial_accumulator_value=config.get("initial_accumulator", 0))


class Ftrl(torch.optim.Optimizer):
    """FTRL-Proximal by its definition, of the rows with gradients: PyTorch has none."""

    def __init__(self, parameters, config):
        super().__init__(parameters, {})
        self.options = [float(config.get(key, default)) for key, default in
                        [("learning_rate", 0.1), ("beta", 1), ("l1", 0), ("l2", 0)]]

    @torch.no_grad()
    def step(self):
        alpha, beta, l1, l2 = self.options
        for p in (p for group in self.param_groups for p in group["params"]):
            state = self.state[p]
            if not state:
                state["z"], state["n"] = torch.zeros_like(p), torch.zeros_like(p)
            rows = p.grad.coalesce().indices()[0]
            g, w = p.grad.coalesce().values(), p[rows]
            z, n = state["z"][rows], state["n"][rows]
            z = z + g - ((n + g * g).sqrt() - n.sqrt()) / alpha * w
            n = n + g * g
            state["z"][rows], state["n"][rows] = z, n
            w = -(z - z.sign() * l1) / ((beta + n.sqrt()) / alpha + l2)
            p[rows] = torch.where(z.abs() <= l1, torch.zeros_like(w), w)


class SparseMomentum(torch.optim.Optimizer):
    """torch.optim.SGD with momentum, of the rows with gradients."""

    def __init__(self, parameters, config):
        super().__init__(parameters, {})
        self.lr, self.momentum = config["learning_rate"], config.get("momentum", 0.9)

    @torch.no_grad()
    def step(self):
        for p in (p for group in self.param_groups for p in group["params"]):
            state = self.state[p]
            if not state:
                state["buffer"] = torch.zeros_like(p)
            rows = p.grad.coalesce().indices()[0]
            state["buffer"][rows] = (
                state["buffer"][rows] * self.momentum + p.grad.coalesce().values())
            p[rows] -= self.lr * state["buffer"][rows]


def make_sparse_optimizer(tables, config):
    """Of the tables, whose gradients are sparse: only the rows of a batch move."""
    if config["type"] == "adam":
        betas = config.get("beta1", 0.9), config.get("beta2", 0.999)
        return torch.optim.SparseAdam(tables, lr=config["learning_rate"], betas=betas,
                                      eps=config.get("epsilon", 1e-8))
    if config["type"] == "ftrl":
        return Ftrl(tables, config)
    if config["type"] == "momentum":
        return SparseMomentum(tables, config)
    return make_optimizer(tables, config)


def make_optimizer_of_all_rows(tables, config):
    """Of the tables, whose gradients are dense: every row moves at every step."""
    lr, epsilon = config["learning_rate"], config.get("epsilon", 1e-8)
    decay, l2 = config.get("weight_decay", 0), config.get("weight_decay_mode") == "l2"
    if config["type"] == "adam":
        betas = config.get("beta1", 0.9), config.get("beta2", 0.999)
        adam = torch.optim.Adam if l2 else torch.optim.AdamW
        return adam(tables, lr=lr, betas=betas, eps=epsilon, weight_decay=decay)
    assert l2 or decay == 0, config
    if config["type"] == "adagrad":
        return torch.optim.Adagrad(tables, lr=lr, eps=epsilon, weight_decay=decay)
    momentum = config.get("momentum", 0.9) if config["type"] == "momentum" else 0
    return torch.optim.SGD(tables, lr=lr, momentum=momentum, weight_decay=decay)


def groups(parameters, config, lr):
    """Of (name, parameter): those that are trained, with learning rates; others are frozen."""
    trained = []
    for name, parameter in parameters:
        own = config.get(name.split(".")[0], {})
        parameter.requires_grad = not own.get("frozen", False)
        if parameter.requires_grad:
            trained.append({"params": [parameter], "lr": lr * own.get("learning_rate_factor", 1)})
    return trained


def clip(parameters, most):
    """torch.nn.utils.clip_grad_norm_, for sparse gradients, too."""
    for p in parameters:
        if p.grad is not None and p.grad.is_sparse:
            p.grad = p.grad.coalesce()
    values = [p.grad.values() if p.grad.is_sparse else p.grad
              for p in parameters if p.grad is not None]
    norm = torch.cat([v.flatten() for v in values]).norm()
    for v in values:
        v.mul_(min(1.0, most / (norm.item() + 1e-6)))


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
    rows_of, dims = zip(*(shapes[f] for f in features))
    if m.get("type") == "blocks":
        saved = load_safetensors(os.path.join(initial, "dense.safetensors"))
        model = Dlrm(rows_of, dims, PooledBlocks(m, saved, features, list(dims)))
        load_tables(model, initial, features)
    elif m.get("type") in MODELS:
        own = [m.get("tables", {}).get(f, m).get("embedding_dim", m.get("embedding_dim"))
               for f in features]
        model = Dlrm(rows_of, dims, MODELS[m["type"]](dense.shape[1], own, m))
        load_by_name(model.dense, load_safetensors(os.path.join(initial, "dense.safetensors")))
        load_tables(model, initial, features)
    else:
        model = Dlrm(rows_of, dims,
                     make_dense(m.get("type", "dlrm"), dense.shape[1], dims, m["embedding_dim"],
                                m["bottom_mlp"], m["top_mlp"], m.get("cross_layers"),
                                m.get("cross_rank")))
        load_weights(model, initial, features)
    torch.set_num_threads(1)

    tables = [table.weight for table in model.tables]
    rest = [(name.removeprefix("dense."), p) for name, p in model.named_parameters()
            if all(p is not table for table in tables)]
    dense_config, sparse_config = config["optimizer"]["dense"], config["optimizer"]["sparse"]
    rest = groups(rest, config["optimizer"].get("blocks", {}), dense_config["learning_rate"])
    trained = groups(zip(features, tables), m.get("tables", {}), sparse_config["learning_rate"])
    all_rows = sparse_config.get("rows") == "all"
    for table in model.tables:
        table.sparse = not all_rows
    of_tables = make_optimizer_of_all_rows if all_rows else make_sparse_optimizer
    optimizers = [make_optimizer(rest, dense_config), of_tables(trained, sparse_config)]
    loss_config = config["training"].get("loss", {})
    smoothing = loss_config.get("label_smoothing", 0)
    trained_loss = nn.BCEWithLogitsLoss(
        pos_weight=torch.tensor(float(loss_config.get("pos_weight", 1))))
    losses = []
    for step in range(steps):
        part = slice(step * batch, (step + 1) * batch)
        logits = model(dense[part], ids[part], torch.arange(batch))
        loss = trained_loss(logits, label[part] * (1 - smoothing) + smoothing / 2)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        if "max_gradient_norm" in config["optimizer"]:
            clip(list(model.parameters()), config["optimizer"]["max_gradient_norm"])
        for optimizer in optimizers:
            optimizer.step()
        # Renzan shows the plain loss, whatever is trained on.
        losses.append(nn.BCEWithLogitsLoss()(logits, label[part]).item())

    # Layers with running statistics compute something else outside training: the loss of all samples.
    evaluation = {}
    if list(model.buffers()):
        model.eval()
        with torch.no_grad():
            logits = model(dense, ids, torch.arange(len(label)))
        evaluation = {"evaluation": nn.BCEWithLogitsLoss()(logits, label).item()}

    # The row that was looked up most often in each table, and how often that was in one batch.
    rows = {}
    for t, feature in enumerate(features):
        values, counts = np.unique(ids[:, t].numpy(), return_counts=True)
        row = int(values[counts.argmax()])
        most = int((ids[:, t].reshape(steps, batch) == row).sum(1).max())
        rows[feature] = {"row": row, "most_in_a_batch": most,
                         "values": tables[t][row].tolist()}
    # Where all rows move: one that only the first batch looked up, and one that none did.
    idle = {}
    for t, feature in enumerate(features if all_rows else []):
        first, later = set(ids[:batch, t].tolist()), set(ids[batch:, t].tolist())
        chosen = sorted(first - later)[:1] + sorted(set(range(rows_of[t])) - first - later)[:1]
        if chosen:
            idle[feature] = [{"row": row, "values": tables[t][row].tolist()} for row in chosen]
    print(json.dumps({"losses": losses, **evaluation, "rows": rows,
                      **({"idle": idle} if idle else {}), "torch": torch.__version__}))


main()
