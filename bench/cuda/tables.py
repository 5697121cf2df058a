#!/usr/bin/env python3
"""bench/cuda/tables.py RESULTS_DIRECTORY: the tables of docs/gpu.md from what bench/cuda/all left."""
import json
import os
import sys

results = sys.argv[1]


def load(name):
    path = os.path.join(results, name)
    if not os.path.exists(path):
        return None
    with open(path) as file:
        return json.load(file)


def peers():
    """(model, variant, batch, whether one CUDA graph) -> samples/s of PyTorch, batches from the host."""
    return {(row["model"], row["variant"], row["batch"], row["graph"]): row["samples_per_second"]
            for name in ("pytorch.json", "pytorch_fbgemm.json")
            for row in (load(name) or {"models": []})["models"] if row["input"] == "host"}


def steps():
    theirs = peers()
    # Of the peers that were run.
    columns = [(f"{name}, {'one graph' if graph else 'op by op'}", fbgemm, graph)
               for graph in (True, False)
               for name, fbgemm in (("PyTorch", False), ("with FBGEMM", True))
               if any((variant == "fbgemm") == fbgemm for _, variant, _, _ in theirs)]
    head = ["model", "products", "batch", "Renzan, samples/s"]
    for name, _, _ in columns:
        head += [name, "ratio"]
    print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for model in ("dlrm", "dlrm_dcnv2"):
        for precision, variant in (("bf16", "best"), ("tf32", "best_tf32"), ("fp32", "best_fp32")):
            ours = load(f"{model}.{precision}.json")
            for row in (ours or {"batches": []})["batches"]:
                rate, batch = row["samples_per_second"], row["batch"]
                line = [model, precision, f"{batch:,}", f"{rate / 1e6:.2f} M"]
                for _, fbgemm, graph in columns:
                    key = (model, "fbgemm" if fbgemm else variant, batch, graph)
                    peer = theirs.get(key) if precision == "bf16" or not fbgemm else None
                    line += [f"{peer / 1e6:.2f} M", f"{rate / peer:.2f}"] if peer else \
                        ["not run", ""]
                print(f"| {' | '.join(line)} |")


def whole_runs():
    """Training with data from the disk (bench/cuda/train)."""
    print("\n| model, bf16 | batch | samples/s | step | host waits for the GPU |")
    print("| --- | --- | --- | --- | --- |")
    for model in ("dlrm", "dlrm_dcnv2"):
        for batch in (8192, 65536):
            run = load(f"train.{model}.{batch}.json")
            if run is None:
                continue
            waiting = sum(phase["seconds"] for phase in run["phases"]
                          if phase["phase"] == "wait for the GPU")
            print(f"| {model} | {batch:,} | {run['samples_per_second'] / 1e6:.2f} M | "
                  f"{run['step_seconds'] * 1e3:.2f} ms | {waiting * 1e3:.2f} ms |")


def phases(batch):
    ours = {model: load(f"{model}.bf16.json") for model in ("dlrm", "dlrm_dcnv2")}
    if not all(ours.values()):
        return
    rows = {model: next(row for row in of["batches"] if row["batch"] == batch)["phases"]
            for model, of in ours.items()}
    print(f"\n| phase, batch {batch:,}, bf16 | dlrm | at least | dlrm_dcnv2 | at least |")
    print("| --- | --- | --- | --- | --- |")
    for a, b in zip(rows["dlrm"], rows["dlrm_dcnv2"], strict=True):
        print(f"| {a['phase']} | " + " | ".join(
            f"{row['seconds'] * 1e3:.2f} ms | {100 * row['least_seconds'] / row['seconds']:.0f} %"
            for row in (a, b)) + " |")


def embeddings():
    table = load("embedding.json")
    print(f"\n{table['device']}, copying {table['copy_gb_s']:.0f} GB/s\n")
    print("| pooling factor | D | ids | optimizer | lookup | update | sort |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    names = {"power_law": "power law", "rowwise_adagrad": "row-wise Adagrad", "sgd": "SGD"}
    for case in table["cases"]:
        ids, optimizer = (names.get(case[key], case[key]) for key in ("ids", "optimizer"))
        print(f"| {case['pooling']} | {case['dim']} | {ids} | {optimizer} | "
              f"{100 * case['forward_share']:.0f} % | {100 * case['update_share']:.0f} % | "
              f"{case['sort_ms']:.2f} ms |")


for name in ("dlrm.bf16.json", "dlrm_dcnv2.bf16.json"):
    limits = load(name)
    if limits:
        print(f"{limits['device']}: copying {limits['copy_bytes_per_second'] / 1e9:.0f} GB/s, products "
              f"in bf16 {limits['flops'] / 1e12:.0f} TFLOP/s")
steps()
whole_runs()
for batch in (8192, 65536):
    phases(batch)
embeddings()
