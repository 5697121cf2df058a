#!/usr/bin/env python3
"""DLRM and DLRM-DCNv2 in PyTorch: the peers of bench/vs_pytorch, and the models of tests/golden. Reads
a Renzan dataset with numpy; needs the Python of bench/setup-peers.

  pytorch_dlrm.py --data DIR --rows 100000 --variant bf16     prints samples/s as JSON

Variants: `eager` is nn.EmbeddingBag with sparse gradients and float32 without torch.compile; `fp32` is
FBGEMM's table-batched embeddings with the optimizer fused into the backward pass, and the dense part
compiled; `bf16` is that with autocast to bfloat16.
"""
import argparse
import glob
import json
import os
import re
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


def load_weights(model, directory, features):
    """Takes over the weights of a Renzan model directory."""
    saved = load_safetensors(os.path.join(directory, "dense.safetensors"))
    with torch.no_grad():
        for name, stack in (("bottom", model.dense.bottom), ("top", model.dense.top)):
            linears = [layer for layer in stack if isinstance(layer, nn.Linear)]
            for i, linear in enumerate(linears):
                linear.weight.copy_(saved[f"{name}.{i}.weight"])
                linear.bias.copy_(saved[f"{name}.{i}.bias"])
        if isinstance(model.dense, DotDense):
            for feature, projection in zip(features, model.dense.projections):
                if isinstance(projection, nn.Linear):
                    projection.weight.copy_(saved[f"projection.{feature}.weight"])
        if isinstance(model.dense, CrossDense):
            for l, (v, w) in enumerate(zip(model.dense.v, model.dense.w)):
                v.weight.copy_(saved[f"cross.{l}.v"])
                w.weight.copy_(saved[f"cross.{l}.w"])
                w.bias.copy_(saved[f"cross.{l}.bias"])
    load_tables(model, directory, features)


def load_tables(model, directory, features):
    with torch.no_grad():
        for table, feature in zip(model.tables, features):
            # A large table is saved in row blocks: row r is in block r mod their number.
            paths = glob.glob(os.path.join(directory, f"table.{feature}.row_block_*.safetensors"))
            for path in paths or [os.path.join(directory, f"table.{feature}.safetensors")]:
                key, rows = next(item for item in load_safetensors(path).items()
                                 if item[0].endswith(".weight"))
                block = re.search(r"row_block_(\d+)_of_(\d+)", key)
                first, step = map(int, block.groups()) if block else (0, 1)
                table.weight[first::step] = rows


def mlp(sizes, last_relu):
    layers = []
    for i, (n, m) in enumerate(zip(sizes, sizes[1:])):
        layers.append(nn.Linear(n, m))
        if last_relu or i + 2 < len(sizes):
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


class DotDense(nn.Module):
    """The dense part of DLRM: both MLPs and the dot interaction between them. Rows of another
    dimension than `dim` are projected (Ginart et al., 2019)."""

    def __init__(self, num_dense, dims, dim, bottom, top):
        super().__init__()
        self.dims, self.dim = dims, dim
        self.bottom = mlp([num_dense, *bottom, dim], True)
        self.projections = nn.ModuleList([nn.Identity() if d == dim else
                                          nn.Linear(d, dim, bias=False) for d in dims])
        self.projects = any(d != dim for d in dims)
        vectors = 1 + len(dims)
        self.top = mlp([dim + vectors * (vectors - 1) // 2, *top, 1], False)
        self.register_buffer("pairs", torch.tril_indices(vectors, vectors, -1), persistent=False)

    def forward(self, dense, pooled):
        """dense [batch, num_dense], pooled [batch, sum of dims]: logits [batch]."""
        x = self.bottom(dense)
        if self.projects:
            rows = torch.split(pooled, self.dims, 1)
            pooled = torch.cat([p(r) for p, r in zip(self.projections, rows)], 1)
        vectors = torch.cat([x, pooled.to(x.dtype)], 1).view(len(x), -1, self.dim)
        products = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([x, products], 1)).squeeze(1)


class CrossDense(nn.Module):
    """The dense part of DLRM-DCNv2: a low-rank cross network in place of the dot interaction (Wang
    et al., 2021), as in TorchRec's DLRM_DCN."""

    def __init__(self, num_dense, dims, dim, bottom, top, layers, rank):
        super().__init__()
        self.bottom = mlp([num_dense, *bottom, dim], True)
        width = dim + sum(dims)
        self.v = nn.ModuleList([nn.Linear(width, rank, bias=False) for _ in range(layers)])
        self.w = nn.ModuleList([nn.Linear(rank, width) for _ in range(layers)])
        self.top = mlp([width, *top, 1], False)

    def forward(self, dense, pooled):
        """As DotDense."""
        x = self.bottom(dense)
        x0 = x = torch.cat([x, pooled.to(x.dtype)], 1)
        for v, w in zip(self.v, self.w):
            x = x0 * w(v(x)) + x
        return self.top(x).squeeze(1)


def make_dense(model, num_dense, dims, dim, bottom, top, cross_layers, cross_rank):
    """`model` and the sizes are those of Renzan's configuration; `dims` those of the tables."""
    if model == "dlrm":
        return DotDense(num_dense, dims, dim, bottom, top)
    return CrossDense(num_dense, dims, dim, bottom, top, cross_layers, cross_rank)


class Dlrm(nn.Module):
    """One nn.EmbeddingBag for each table, and a dense part."""

    def __init__(self, table_rows, dims, dense):
        super().__init__()
        self.tables = nn.ModuleList([nn.EmbeddingBag(rows, dim, mode="sum", sparse=True)
                                     for rows, dim in zip(table_rows, dims)])
        self.dense = dense

    def forward(self, dense, ids, offsets):
        rows = [table(ids[:, t], offsets) for t, table in enumerate(self.tables)]
        return self.dense(dense, torch.cat(rows, 1))


def dense_part(args, num_dense, num_tables):
    return make_dense(args.model, num_dense, [args.dim] * num_tables, args.dim, args.bottom,
                      args.top, args.cross_layers, args.cross_rank)


def eager_step(args, label, dense, ids, rows):
    model = Dlrm(rows, [args.dim] * len(rows), dense_part(args, dense.shape[1], len(rows)))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    loss_function = nn.BCEWithLogitsLoss()
    offsets = torch.arange(args.batch)

    def step(part):
        loss = loss_function(model(dense[part], ids[part], offsets), label[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss
    return step


def compiled_step(args, label, dense, ids, rows):
    import fbgemm_gpu  # noqa: F401, registers the operators
    from fbgemm_gpu.split_embedding_configs import EmbOptimType
    from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation
    from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
        ComputeDevice, SplitTableBatchedEmbeddingBagsCodegen)

    tables = SplitTableBatchedEmbeddingBagsCodegen(
        [(n, args.dim, EmbeddingLocation.HOST, ComputeDevice.CPU) for n in rows],
        optimizer=EmbOptimType.EXACT_SGD, learning_rate=args.lr)
    tables.init_embedding_weights_uniform(-0.01, 0.01)
    model = dense_part(args, dense.shape[1], len(rows))
    compiled = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, fused=True)
    loss_function = nn.BCEWithLogitsLoss()
    offsets = torch.arange(args.batch * len(rows) + 1)
    # By batch and table, as the operator wants them: not counted against PyTorch.
    by_table = {begin: ids[begin:begin + args.batch].t().reshape(-1)
                for begin in range(0, len(label), args.batch)}

    def step(part):
        pooled = tables(by_table[part.start], offsets)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.variant == "bf16"):
            logits = compiled(dense[part], pooled)
        loss = loss_function(logits.float(), label[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss
    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--rows", type=int, required=True, help="of each table")
    parser.add_argument("--variant", choices=["eager", "fp32", "bf16"], required=True)
    parser.add_argument("--model", choices=["dlrm", "dlrm_dcnv2"], default="dlrm")
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--bottom", type=int, nargs="*", default=[512, 256, 64])
    parser.add_argument("--top", type=int, nargs="*", default=[512, 256])
    parser.add_argument("--cross-layers", type=int, default=3)
    parser.add_argument("--cross-rank", type=int, default=512)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warm-up", type=int, default=10, help="steps")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    label, dense, ids = load_dataset(args.data, args.batch * args.steps)
    batches = len(label) // args.batch
    make = eager_step if args.variant == "eager" else compiled_step
    step = make(args, label, dense, ids, [args.rows] * ids.shape[1])

    def steps(count):
        for index in range(count):
            begin = index % batches * args.batch
            loss = step(slice(begin, begin + args.batch))
        return loss.item()

    steps(args.warm_up)  # compiles, too
    start = time.perf_counter()
    loss = steps(args.steps)
    seconds = time.perf_counter() - start
    print(json.dumps({"samples_per_second": args.batch * args.steps / seconds, "loss": loss,
                      "torch": torch.__version__,
                      "isa": torch.backends.cpu.get_cpu_capability()}))


if __name__ == "__main__":
    main()
