#!/usr/bin/env python3
"""Where a step of one of FuxiCTR's models spends its time: the peer of bench/models_limits, which
says what it is given.

  models_fuxictr_step.py FUXICTR REQUEST.json      prints JSON
"""
import json
import pathlib
import statistics
import sys
import tempfile
import time

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

sys.dont_write_bytecode = True  # no __pycache__ among the sources
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from models_fuxictr import Batches, make_model, read_request

WARM_UP = 3
PRODUCTS = ("mm", "addmm", "bmm", "baddbmm")


def product_rate(batch, width, seconds=1.0):
    """FLOP/s of PyTorch's products in the shape of the MLPs' layers: the best of all."""
    a, b = torch.randn(batch, width), torch.randn(width, width)
    begin, best = time.perf_counter(), 0.0
    while time.perf_counter() - begin < seconds:
        now = time.perf_counter()
        torch.mm(a, b)
        best = max(best, 2.0 * batch * width * width / (time.perf_counter() - now))
    return best


def main():
    request = read_request()
    data = request["data"]
    train = Batches(data["train"]["path"], data["sequences"], request["batch"], shuffle=True)
    with tempfile.TemporaryDirectory() as folder:
        model = make_model(request, train, folder)
        # What BaseModel.fit sets before its first epoch.
        model._max_gradient_norm = request["max_gradient_norm"]
        model.train()
        batches = iter(train)
        for _ in range(WARM_UP):
            model.train_step(next(batches))
        with FlopCounterMode(display=False) as counter:
            model.train_step(next(batches))
        seconds = []
        for _ in range(request["steps"]):
            begin = time.perf_counter()
            model.train_step(next(batches))
            seconds.append(time.perf_counter() - begin)
        with profile(activities=[ProfilerActivity.CPU]) as profiled:
            model.train_step(next(batches))
    times = {event.key: event.self_cpu_time_total * 1e-6 for event in profiled.key_averages()}
    products = sum(took for key, took in times.items()
                   if key.removeprefix("aten::") in PRODUCTS)
    print(json.dumps({
        "step_seconds": statistics.median(seconds), "flops": counter.get_total_flops(),
        "product_share": products / sum(times.values()),
        "product_flops": product_rate(request["batch"], 400),
        "operations": dict(sorted(times.items(), key=lambda item: -item[1])[:10])}))


main()
