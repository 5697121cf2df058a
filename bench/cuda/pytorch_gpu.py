#!/usr/bin/env python3
"""Training speed of PyTorch on one GPU: the peers of cuda_step_bench, for the same models, sizes
and kind of ids. Needs torch and numpy alone, and fbgemm_gpu for the variant of that name.

  bench/cuda/pytorch_gpu.py --json FILE                      all of it, as far as the budget goes
  bench/cuda/pytorch_gpu.py --models dlrm --variants best --batches 8192 65536
  bench/cuda/pytorch_gpu.py --models --embedding             lookups and updates of one table only,
                                                             in FBGEMM, too, if it can be imported
  bench/cuda/pytorch_gpu.py --device cpu --rows 1000 --batches 256 --steps 2 --no-compile    a test

Measures samples/s of whole training steps (forward, backward, both optimizers) of
  dlrm        Criteo Terabyte's: bottom 13-512-256-128, top 479-1024-1024-512-256-1; SGD
  dlrm_dcnv2  MLPerf's: three cross layers of rank 512, top 3456-1024-1024-512-256-1; Adagrad
with 26 tables of --rows rows, D = 128, float32, one id per table and sample by a power law.

Variants:
  eager          pytorch_dlrm.py's model: nn.EmbeddingBag per table with sparse gradients, float32
                 without TF32, torch.optim. PyTorch has no row-wise Adagrad: dlrm_dcnv2's tables
                 have torch.optim.Adagrad, whose state is as large as they are.
  best           all tables in one weight, torch.compile for the dense part with autocast to
                 bfloat16, optimizers for all dense parameters at once; the rows' gradients are
                 added straight to the weight with index_add_ (SGD), or summed per row by a sort and
                 index_add_, for row-wise Adagrad. Lookups and updates are compiled where that is
                 faster. Operands are padded to sizes that matrix units like, and the interaction's
                 gradient gathers. Measured op by op and as one CUDA graph of the whole step.
  fbgemm         best with the tables in FBGEMM, whose fused embeddings TorchRec uses: lookups of
                 all tables at once, and SGD or row-wise Adagrad within the backward pass. Its check
                 of the ids is off. Skipped where fbgemm_gpu cannot be imported.
  best_tf32, best_fp32    best with float32 in place of bfloat16, with TF32 and without
  best_autotune  best with mode="max-autotune-no-cudagraphs", which compiles for minutes: only if
                 named
index_add_ adds with atomics: unlike Renzan's, the results of `best` differ from run to run.

The input is either on the device already or in pinned memory of the host, from which another stream
copies the next batch during a step. Times are medians over groups of steps, by CUDA events. Each
configuration writes the JSON anew; one that fails is a line, and the next one runs.
"""
import argparse
import gc
import json
import os
import signal
import statistics
import sys
import tempfile
import time
import traceback
import warnings

START = time.monotonic()
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR",
                      os.path.join(tempfile.gettempdir(), "pytorch_gpu_inductor"))
sys.dont_write_bytecode = True  # no __pycache__ among the sources
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from pytorch_dlrm import CrossDense, Dlrm, DotDense, make_dense, mlp

TABLES, DENSE, DIM = 26, 13, 128
BOTTOM, TOP = [512, 256], [1024, 1024, 512, 256]
CROSS_LAYERS, CROSS_RANK = 3, 512
BATCHES = 4  # different ones, in turn
LR, EPSILON = 0.001, 1e-8
MODELS = ["dlrm", "dlrm_dcnv2"]
# Each with its precision.
VARIANTS = {"best": "bf16", "fbgemm": "bf16", "eager": "fp32", "best_tf32": "tf32",
            "best_fp32": "fp32", "best_autotune": "bf16"}
DEFAULT_VARIANTS = ["best", "fbgemm", "eager", "best_tf32", "best_fp32"]
# For functions that change a table: trying out launch sizes would copy it, even to the host.
NO_TUNING = {"triton.autotune_pointwise": False}


class OutOfTime(BaseException):
    """Not an Exception, which torch.compile would take for its own."""


# --- Time ---

def elapsed():
    return time.monotonic() - START


def synchronize(args):
    if args.cuda:
        torch.cuda.synchronize()


def mark(args):
    if not args.cuda:
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def seconds_between(begin, end):
    return end - begin if isinstance(begin, float) else begin.elapsed_time(end) / 1e3


def group_seconds(args, run, groups, size):
    """Seconds of one run, for each group."""
    marks = [mark(args)]
    for _ in range(groups):
        for _ in range(size):
            run()
        marks.append(mark(args))
    synchronize(args)
    return [seconds_between(begin, end) / size for begin, end in zip(marks, marks[1:])]


def measure(args, run, steps, least_seconds=0.3):
    """Median, least and most seconds of a run, of at least `steps` (more of fast ones on a GPU)."""
    warm = min(group_seconds(args, run, 3 if args.cuda else 1, 1))
    if args.cuda:
        steps = max(steps, min(400, int(least_seconds / max(warm, 1e-6))))
    size = max(1, steps // 10)
    seconds = group_seconds(args, run, -(-steps // size), size)
    return {"seconds": statistics.median(seconds), "least_seconds": min(seconds),
            "most_seconds": max(seconds), "steps": len(seconds) * size}


# --- Input ---

def power_law_ids(random, rows, shape):
    """Density ~ id^(-2/3), as in cuda_step_bench."""
    return (random.random(shape) ** 3 * rows).astype(np.int32)


class Inputs:
    """A batch's place on the device, and loaders that fill it with the next of several batches. A
    batch is one buffer, so that it is one copy."""

    def __init__(self, args, batch, table_major):
        self.args = args
        self.batches = []
        for index in range(BATCHES):
            random = np.random.default_rng([args.seed, index])
            dense = random.random((batch, DENSE), np.float32)
            label = random.integers(0, 2, batch).astype(np.float32)
            ids = power_law_ids(random, args.rows, (batch, TABLES))
            if table_major:
                ids = np.ascontiguousarray(ids.T)
            packed = torch.from_numpy(np.concatenate(
                [dense.view(np.int32).ravel(), label.view(np.int32), ids.ravel()]))
            self.batches.append(packed.pin_memory() if args.cuda else packed)
        self.place = torch.empty_like(self.batches[0], device=args.device)
        dense, label, ids = self.place.split([batch * DENSE, batch, batch * TABLES])
        self.dense = dense.view(torch.float32).view(batch, DENSE)
        self.label = label.view(torch.float32)
        # Of sample s and table t at [s, t].
        self.ids = ids.view(TABLES, batch).t() if table_major else ids.view(batch, TABLES)

    def on_device(self):
        batches, turn = [batch.to(self.args.device) for batch in self.batches], [0]

        def load():
            self.place.copy_(batches[turn[0] % BATCHES])
            turn[0] += 1
        return load

    def from_host(self):
        if not self.args.cuda:
            return self.on_device()
        stream = torch.cuda.Stream()
        buffers = [torch.empty_like(self.place) for _ in range(2)]
        ready, used = ([torch.cuda.Event() for _ in range(2)] for _ in range(2))
        turn = [0]

        def send(index):
            with torch.cuda.stream(stream):
                stream.wait_event(used[index % 2])
                buffers[index % 2].copy_(self.batches[index % BATCHES], non_blocking=True)
                ready[index % 2].record(stream)

        def load():
            now = turn[0] % 2
            torch.cuda.current_stream().wait_event(ready[now])
            self.place.copy_(buffers[now])
            used[now].record()
            turn[0] += 1
            send(turn[0])
        torch.cuda.synchronize()
        send(0)
        return load


# --- Models ---

class PairDots(torch.autograd.Function):
    """The dot products of pairs of vectors. The gradient of indexing would sort or use atomics."""

    @staticmethod
    def forward(ctx, vectors, pairs, places, present):
        ctx.save_for_backward(vectors, places, present)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        return products.flatten(1)[:, pairs]

    @staticmethod
    def backward(ctx, grad):
        vectors, places, present = ctx.saved_tensors
        n = vectors.shape[1]
        both = torch.where(present, grad[:, places], 0).view(len(grad), n, n)
        return torch.bmm(both, vectors), None, None, None


class FastDot(DotDense):
    """DotDense with padded operands: 13 inputs to 16, 27 vectors to 32, 479 columns to 480."""

    def __init__(self):
        super().__init__(16, [DIM] * TABLES, DIM, BOTTOM, TOP)
        vectors = 1 + TABLES
        self.padded = 32
        row, column = torch.tril_indices(vectors, vectors, -1)
        places = torch.zeros(self.padded, self.padded, dtype=torch.long)
        present = torch.zeros(self.padded, self.padded, dtype=torch.bool)
        for r, c in ((row, column), (column, row)):
            places[r, c] = torch.arange(len(row), device=places.device)
            present[r, c] = True
        self.register_buffer("flat_pairs", row * self.padded + column, persistent=False)
        self.register_buffer("places", places.flatten(), persistent=False)
        self.register_buffer("present", present.flatten(), persistent=False)
        self.top = mlp([-(-(DIM + len(row)) // 8) * 8, *TOP, 1], False)

    def forward(self, dense, pooled):
        x = self.bottom(F.pad(dense, (0, 3)))
        padding = x.new_zeros(len(x), (self.padded - 1 - TABLES) * DIM)
        vectors = torch.cat([x, pooled.to(x.dtype), padding], 1).view(len(x), self.padded, DIM)
        products = PairDots.apply(vectors, self.flat_pairs, self.places, self.present)
        padding = x.new_zeros(len(x), self.top[0].in_features - DIM - products.shape[1])
        return self.top(torch.cat([x, products, padding], 1)).squeeze(1)


class FastCross(CrossDense):
    """CrossDense with 13 inputs padded to 16."""

    def __init__(self):
        super().__init__(16, [DIM] * TABLES, DIM, BOTTOM, TOP, CROSS_LAYERS, CROSS_RANK)

    def forward(self, dense, pooled):
        return super().forward(F.pad(dense, (0, 3)), pooled)


class Loss(nn.Module):
    def __init__(self, net, device_type, bf16):
        super().__init__()
        self.net, self.device_type, self.bf16 = net, device_type, bf16

    def forward(self, dense, pooled, label):
        with torch.autocast(self.device_type, dtype=torch.bfloat16, enabled=self.bf16):
            logits = self.net(dense, pooled)
        return F.binary_cross_entropy_with_logits(logits.float(), label)


# --- Steps ---

def sgd_update(weight, state, rows, grad):
    """`rows` [n] (int64), and their gradients `grad`, of n * D elements; `state` is unused."""
    grad = grad.to(weight.dtype).reshape(len(rows), -1)
    weight.index_add_(0, rows, grad, alpha=-LR)


def rowwise_adagrad_update(weight, state, rows, grad):
    """As sgd_update, `state` [rows of weight]. All sizes are known beforehand, unlike with
    torch.unique, so that it waits for nothing and fits a CUDA graph: the sums of the rows'
    gradients have n places, and the ones left over add zeros to some rows."""
    n = len(rows)
    grad = grad.to(weight.dtype).reshape(n, -1)
    ordered, order = torch.sort(rows.int())  # sorts half the bytes
    ordered = ordered.long()
    first = torch.cat([ordered.new_ones(1, dtype=torch.bool), ordered[1:] != ordered[:-1]])
    place = torch.cumsum(first, 0) - 1  # of each lookup in order
    places = torch.empty_like(place).scatter_(0, order, place)
    row_of = torch.arange(n, device=rows.device) % len(weight)
    row_of = row_of.scatter(0, place, ordered)
    sums = torch.zeros_like(grad).index_add(0, places, grad)
    state.index_add_(0, row_of, sums.square().mean(1))
    step = -LR / (state[row_of].sqrt() + EPSILON)
    weight.index_add_(0, row_of, sums * step[:, None])


def dense_sgd(parameters, grads, states):
    torch._foreach_add_(parameters, grads, alpha=-LR)


def dense_adagrad(parameters, grads, states):
    torch._foreach_addcmul_(states, grads, grads)
    roots = torch._foreach_sqrt(states)
    torch._foreach_add_(roots, EPSILON)
    torch._foreach_addcdiv_(parameters, grads, roots, value=-LR)


def error_line(error):
    """The first line of an exception that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


def faster(args, notes, name, function, arguments, compile, options=None):
    """`function` or what torch.compile makes of it, whichever is faster with these arguments."""
    best = None
    for kind in ["eager", "compiled"] if compile else ["eager"]:
        try:
            run = function if kind == "eager" else \
                torch.compile(function, dynamic=False, options=options)
            for _ in range(2):
                run(*arguments)
            seconds = min(group_seconds(args, lambda: run(*arguments), 5, 1))
            notes[f"{name}_{kind}_seconds"] = seconds
        except Exception as error:
            if kind == "eager":
                raise
            notes[f"{name}_compile_error"] = error_line(error)
            continue
        if best is None or seconds < best[0]:
            best = seconds, kind, run
    notes[name] = best[1]
    return best[2]


def eager_step(args, model, inputs):
    with torch.device(args.device):
        net = Dlrm([args.rows] * TABLES, [DIM] * TABLES,
                   make_dense(model, DENSE, [DIM] * TABLES, DIM, BOTTOM, TOP, CROSS_LAYERS,
                              CROSS_RANK))
        offsets = torch.arange(len(inputs.label), dtype=torch.int32)
    with torch.no_grad():
        for table in net.tables:
            table.weight.mul_(0.01)
    make = torch.optim.SGD if model == "dlrm" else torch.optim.Adagrad
    # Apart: with sparse gradients among them, dense ones would be updated one by one.
    optimizers = [make(part.parameters(), lr=LR) for part in (net.dense, net.tables)]
    loss_function = nn.BCEWithLogitsLoss()

    def step():
        loss = loss_function(net(inputs.dense, inputs.ids, offsets), inputs.label)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        return loss.detach()
    return step


class DensePart:
    """All but the tables, of the variants other than eager."""

    def __init__(self, args, model, variant, inputs, compile):
        self.args, self.inputs, self.compile = args, inputs, compile
        self.adagrad = model == "dlrm_dcnv2"
        self.update = dense_adagrad if self.adagrad else dense_sgd
        with torch.device(args.device):
            net = FastDot() if model == "dlrm" else FastCross()
        self.parameters = list(net.parameters())
        self.states = [torch.zeros_like(parameter) for parameter in self.parameters] \
            if self.adagrad else []
        self.loss_of = Loss(net, torch.device(args.device).type, VARIANTS[variant] == "bf16")
        if compile:
            mode = "max-autotune-no-cudagraphs" if variant == "best_autotune" else "default"
            self.loss_of = torch.compile(self.loss_of, dynamic=False, mode=mode)

    def gradients(self, pooled):
        """The loss, and its gradients by `pooled` and the parameters."""
        pooled = pooled.detach().requires_grad_()
        loss = self.loss_of(self.inputs.dense, pooled, self.inputs.label)
        return loss.detach(), torch.autograd.grad(loss, [pooled, *self.parameters])

    def choose_update(self, notes, grads):
        """Compiled or not; trying them out leaves no trace."""
        initial = [parameter.clone() for parameter in self.parameters]
        self.update = faster(self.args, notes, "dense_update", self.update,
                             (self.parameters, grads, self.states), self.compile, NO_TUNING)
        torch._foreach_copy_(self.parameters, initial)
        if self.adagrad:
            torch._foreach_zero_(self.states)


def best_step(args, model, variant, inputs, compile, notes):
    dtype = torch.bfloat16 if VARIANTS[variant] == "bf16" else torch.float32
    adagrad = model == "dlrm_dcnv2"
    with torch.device(args.device), torch.no_grad():
        weight = torch.empty(TABLES * args.rows, DIM).normal_(0, 0.01)
        row_state = torch.zeros(len(weight)) if adagrad else None
        # In 64 bits, since the weight has over 2^31 values.
        first_rows = torch.arange(TABLES, dtype=torch.int64) * args.rows
    dense = DensePart(args, model, variant, inputs, compile)

    def look_up(weight, ids):
        # torch.compile would compute places in the weight as int32 from int32, past its largest.
        rows = (ids + first_rows).view(-1).long()
        return rows, F.embedding(rows, weight).to(dtype).view(len(ids), -1)

    sparse_update = rowwise_adagrad_update if adagrad else sgd_update
    with torch.no_grad():
        look_up = faster(args, notes, "look_up", look_up, (weight, inputs.ids), compile)
        rows, pooled = look_up(weight, inputs.ids)
    _, (d_pooled, *grads) = dense.gradients(pooled)
    with torch.no_grad():
        dense.choose_update(notes, grads)
        sparse_update = faster(args, notes, "sparse_update", sparse_update,
                               (weight, row_state, rows, d_pooled), compile, NO_TUNING)
        # As if nothing had been tried out.
        weight.normal_(0, 0.01)
        if adagrad:
            row_state.zero_()

    def step():
        with torch.no_grad():
            rows, pooled = look_up(weight, inputs.ids)
        loss, (d_pooled, *grads) = dense.gradients(pooled)
        with torch.no_grad():
            dense.update(dense.parameters, grads, dense.states)
            sparse_update(weight, row_state, rows, d_pooled)
        return loss
    return step


def import_fbgemm():
    """The module, or why there is none."""
    try:
        import fbgemm_gpu.split_table_batched_embeddings_ops_training as training
        return training, None
    except Exception as error:  # OSError for a library, say
        return None, error


def fbgemm_tables(args, tables, rows, dim, adagrad, bf16):
    """FBGEMM's tables, as their module, and their weights. Calling it with ids by table and sample,
    and where each bag begins and the last ends, gives [samples, tables * dim]."""
    fbgemm, _ = import_fbgemm()
    from fbgemm_gpu.split_embedding_configs import EmbOptimType, SparseType
    from fbgemm_gpu.split_table_batched_embeddings_ops_common import (BoundsCheckMode,
                                                                      EmbeddingLocation)
    place = (EmbeddingLocation.DEVICE, fbgemm.ComputeDevice.CUDA) if args.cuda else \
        (EmbeddingLocation.HOST, fbgemm.ComputeDevice.CPU)
    # Half the bytes to sort; FBGEMM numbers the rows of all tables in the same type.
    index = torch.int32 if tables * rows < 2**31 else torch.int64
    bf16 &= args.cuda  # not implemented on the CPU
    module = fbgemm.SplitTableBatchedEmbeddingBagsCodegen(
        [(rows, dim, *place)] * tables, device=torch.device(args.device),
        optimizer=EmbOptimType.EXACT_ROWWISE_ADAGRAD if adagrad else EmbOptimType.EXACT_SGD,
        learning_rate=LR, eps=EPSILON, weights_precision=SparseType.FP32,
        output_dtype=SparseType.BF16 if bf16 else SparseType.FP32, stochastic_rounding=False,
        bounds_check_mode=BoundsCheckMode.NONE, embedding_table_index_type=index,
        embedding_table_offset_type=index)
    return module, module.weights_dev if args.cuda else module.weights_host


def fbgemm_step(args, model, variant, inputs, compile, notes):
    tables, weight = fbgemm_tables(args, TABLES, args.rows, DIM, model == "dlrm_dcnv2", True)
    with torch.no_grad():
        weight.normal_(0, 0.01)
    dense = DensePart(args, model, variant, inputs, compile)
    ids = inputs.ids.t().view(-1)
    offsets = torch.arange(len(ids) + 1, dtype=tables.embedding_table_offset_type,
                           device=args.device)
    _, (_, *grads) = dense.gradients(tables(ids, offsets))
    with torch.no_grad():
        dense.choose_update(notes, grads)

    def step():
        pooled = tables(ids, offsets)
        loss, (d_pooled, *grads) = dense.gradients(pooled)
        with torch.no_grad():
            dense.update(dense.parameters, grads, dense.states)
        pooled.backward(d_pooled)
        return loss
    return step


def captured(step):
    """`step` as one CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        loss = step()

    def replay():
        graph.replay()
        return loss
    return replay


# --- Configurations ---

class Report:
    """Prints a line for each result, and writes all of them to the JSON file."""

    def __init__(self, args):
        self.path = args.json
        self.out = {"torch": torch.__version__, "cuda": torch.version.cuda, "rows": args.rows,
                    "tables": TABLES, "dim": DIM, "models": [], "embedding": [], "errors": [],
                    "skipped": []}

    def write(self):
        if not self.path:
            return
        try:
            with open(self.path + ".part", "w") as file:
                json.dump({**self.out, "elapsed_seconds": elapsed()}, file, indent=1, default=str)
            os.replace(self.path + ".part", self.path)
        except OSError as error:
            print(f"cannot write {self.path}: {error}", flush=True)

    def add(self, section, record, line):
        self.out[section].append(record)
        print(line, flush=True)
        self.write()

    def error(self, name, error):
        if os.environ.get("PYTORCH_GPU_TRACE"):
            traceback.print_exception(error)
        self.add("errors", {"configuration": name, "error": str(error)[:4000]},
                 f"{name}: {error_line(error)}")


def clean_up(args):
    gc.collect()
    torch.compiler.reset()
    if args.cuda:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def reset_peak(args):
    if args.cuda:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()


def measure_model(args, report, model, variant, batch, compile):
    """The error that ended it, if one did."""
    begin = time.monotonic()
    name = f"{model} {variant} {batch}"
    # Global, for a compiled function as much as for others.
    torch.set_float32_matmul_precision("high" if VARIANTS[variant] == "tf32" else "highest")
    torch.manual_seed(args.seed)
    inputs = Inputs(args, batch, table_major=variant in ("eager", "fbgemm"))
    loaders = {"device": inputs.on_device(), "host": inputs.from_host()}
    loaders["device"]()
    notes = {"compiled": bool(compile and variant != "eager")}
    if variant == "eager":
        step = eager_step(args, model, inputs)
    else:
        make_step = fbgemm_step if variant == "fbgemm" else best_step
        step = make_step(args, model, variant, inputs, compile, notes)
    for _ in range(3 if args.cuda else 1):
        step()
    synchronize(args)
    notes["setup_seconds"] = time.monotonic() - begin

    def measure_step(step, graph):
        for place, load in loaders.items():
            last = []

            def run():
                load()
                last[:] = [step()]
            times = measure(args, run, args.steps)
            record = {"model": model, "variant": variant, "precision": VARIANTS[variant],
                      "batch": batch, "graph": graph, "input": place,
                      "samples_per_second": batch / times["seconds"], **times,
                      "loss": float(last[0]), **notes}
            peak = ""
            if args.cuda:
                record["peak_bytes"] = torch.cuda.max_memory_allocated()
                record["peak_reserved_bytes"] = torch.cuda.max_memory_reserved()
                peak = f"{record['peak_bytes'] / 2**30:.1f}"
            report.add("models", record,
                       f"{model:10} {variant:13} {batch:6} {'graph' if graph else 'ops':5} "
                       f"{place:6} {times['seconds'] * 1e3:9.3f} "
                       f"{times['least_seconds'] * 1e3:9.3f} {times['most_seconds'] * 1e3:9.3f} "
                       f"{batch / times['seconds'] / 1e6:8.3f} "
                       f"{peak:>6}  {float(last[0]):.3f}"
                       + ("" if notes["compiled"] or variant == "eager" else "  not compiled"))

    reset_peak(args)
    measure_step(step, False)
    if args.cuda and args.graphs and variant != "eager":
        torch.cuda.empty_cache()
        reset_peak(args)
        measure_step(captured(step), True)


def guarded(args, report, name, run, *arguments):
    """Whether it ended without an error; an error is reported."""
    failure = None
    try:
        signal.alarm(args.config_seconds)
        try:
            run(*arguments)
        finally:
            signal.alarm(0)
    except (Exception, OutOfTime) as error:
        # No frames: they hold tensors.
        failure = error.with_traceback(error.__traceback__
                                       if os.environ.get("PYTORCH_GPU_TRACE") else None)
        report.error(name, failure)
        failure = error_line(failure)
    clean_up(args)
    return failure is None, failure


def configurations(args):
    """The most telling ones first: best at the least and the largest batch, for both models; then
    the other variants at these; then the batches between."""
    ends = [batch for batch in args.batches if batch in (min(args.batches), max(args.batches))]
    between = [batch for batch in args.batches if batch not in ends]
    return [(model, variant, batch) for batches in (ends, between)
            for variant in args.variants for model in args.models for batch in batches]


def run_models(args, report, todo):
    for model, variant, batch in todo:
        name = f"{model} {variant} {batch}"
        if elapsed() > args.budget_seconds:
            report.out["skipped"].append(name)
            continue
        compile = args.compile and variant != "eager"
        done = len(report.out["models"])
        good, failure = guarded(args, report, name, measure_model, args, report, model, variant,
                                batch, compile)
        # Once more without it, if torch.compile was at fault.
        if (not good and compile and len(report.out["models"]) == done
                and "OutOfMemory" not in failure and elapsed() < args.budget_seconds):
            guarded(args, report, name + " not compiled", measure_model, args, report, model,
                    variant, batch, False)


# --- Limits, and one table alone ---

def measure_limits(args, report):
    n = (args.copy_bytes or (4 << 30)) if args.cuda else 16 << 20
    source = torch.empty(n // 4, device=args.device).normal_()
    to = torch.empty_like(source)
    seconds = measure(args, lambda: to.copy_(source), 20)["seconds"]
    report.out["copy_bytes_per_second"] = 2 * n / seconds
    print(f"copy of {n / 2**30:.2f} GiB: {2 * n / seconds / 1e9:.0f} GB/s read and written")
    del source, to
    size = 8192 if args.cuda else 256
    for name, dtype, precision in [("bf16", torch.bfloat16, "highest"),
                                   ("tf32", torch.float32, "high"),
                                   ("fp32", torch.float32, "highest")]:
        torch.set_float32_matmul_precision(precision)
        a, b = (torch.randn(size, size, device=args.device, dtype=dtype) for _ in range(2))
        seconds = measure(args, lambda: torch.mm(a, b), 10, 0.1)["seconds"]
        report.out[f"{name}_flops"] = 2 * size**3 / seconds
        print(f"product of {size} x {size} in {name}: {2 * size**3 / seconds / 1e12:.1f} TFLOP/s")
    torch.set_float32_matmul_precision("highest")
    report.write()


def gather_sum(weight, ids, bags):
    return F.embedding(ids, weight).view(bags, -1, weight.shape[1]).sum(1)


def sgd_of_bags(weight, state, ids, d_pooled):
    pooling = len(ids) // len(d_pooled)
    grad = d_pooled[:, None].expand(-1, pooling, -1).reshape(len(ids), -1)
    sgd_update(weight, state, ids, grad)


def adagrad_of_bags(weight, state, ids, d_pooled):
    pooling = len(ids) // len(d_pooled)
    grad = d_pooled[:, None].expand(-1, pooling, -1).reshape(len(ids), -1)
    rowwise_adagrad_update(weight, state, ids, grad)


def fbgemm_kernels(tables, ids, offsets, d_pooled, forward, update, states):
    """As `kernels` of measure_table: the update is within the backward pass."""
    kernels = []
    for name, module, size in zip(("SGD", "Adagrad"), tables, (update, update + states)):
        if not kernels:
            kernels.append(("FBGEMM", forward, lambda module=module: module(ids, offsets)))
        with torch.enable_grad():
            pooled = module(ids, offsets)
        kernels.append((f"FBGEMM, {name}", size, lambda pooled=pooled:
                        pooled.backward(d_pooled, retain_graph=True)))
    return kernels


def measure_table(args, report, dim, pooling, law, table, compiled, fbgemm):
    weight, state = table
    bags = max(1, args.lookups // pooling)
    n = bags * pooling
    random = np.random.default_rng([args.seed, dim, pooling])
    ids = power_law_ids(random, len(weight), n) if law == "power" else \
        random.integers(0, len(weight), n, dtype=np.int32)
    ids = torch.from_numpy(ids).to(args.device).long()
    offsets = torch.arange(bags, device=args.device) * pooling
    d_pooled = torch.randn(bags, dim, device=args.device) * 1e-3
    distinct = len(torch.unique(ids))
    row = 4 * dim
    forward = n * row + bags * row
    update = 2 * distinct * row + bags * row
    kernels = [
        ("EmbeddingBag", forward, lambda: F.embedding_bag(ids, weight, offsets, mode="sum")),
        ("index_add_", update, lambda: sgd_of_bags(weight, state, ids, d_pooled)),
        ("row-wise Adagrad", update + 8 * distinct,
         lambda: adagrad_of_bags(weight, state, ids, d_pooled))]
    if compiled:
        gather, sgd, adagrad = compiled
        kernels += [
            ("gather, compiled", forward, lambda: gather(weight, ids, bags)),
            ("index_add_, compiled", update, lambda: sgd(weight, state, ids, d_pooled)),
            ("Adagrad, compiled", update + 8 * distinct,
             lambda: adagrad(weight, state, ids, d_pooled))]
    if fbgemm:
        index = fbgemm[0].embedding_table_index_type
        ends = torch.arange(bags + 1, device=args.device, dtype=index) * pooling
        try:
            kernels += fbgemm_kernels(fbgemm, ids.to(index), ends, d_pooled, forward, update,
                                      8 * distinct)
        except Exception as error:
            report.error(f"FBGEMM D={dim} pooling {pooling} {law}", error.with_traceback(None))
    for kernel, size, run in kernels:
        try:
            with torch.no_grad():
                times = measure(args, run, args.steps, 0.05)
        except Exception as error:
            report.error(f"{kernel} D={dim} pooling {pooling} {law}", error.with_traceback(None))
            continue
        rate = size / times["seconds"]
        share = rate / report.out.get("copy_bytes_per_second", float("nan"))
        report.add("embedding", {"kernel": kernel, "dim": dim, "pooling": pooling, "ids": law,
                                 "lookups": n, "distinct_rows": distinct, "bytes": size,
                                 "bytes_per_second": rate, "share_of_copy": share, **times},
                   f"{kernel:22} {dim:4} {pooling:5} {law:8} {times['seconds'] * 1e3:9.3f} "
                   f"{n / times['seconds'] / 1e6:10.0f} {rate / 1e9:8.0f} {100 * share:6.0f} %")


def one_fbgemm_table(args, report, weight):
    """With SGD and with row-wise Adagrad, both on `weight`; nothing without FBGEMM."""
    if not args.fbgemm:
        return []
    modules = []
    try:
        for adagrad in (False, True):
            module, own = fbgemm_tables(args, 1, *weight.shape, adagrad, False)
            own.data = weight.view(-1)
            modules.append(module)
    except Exception as error:
        report.error(f"FBGEMM D={weight.shape[1]}", error.with_traceback(None))
        return []
    return modules


def run_embedding(args, report):
    print(f"\n{'one table':22} {'D':>4} {'pool':>5} {'ids':8} {'ms':>9} {'Mlookups/s':>10} "
          f"{'GB/s':>8} {'of copy':>8}")

    def of_dim(dim):
        compiled = [torch.compile(function, dynamic=False, options=NO_TUNING)
                    for function in (gather_sum, sgd_of_bags, adagrad_of_bags)
                    if args.compile and args.compile_embedding]
        rows = args.embedding_bytes // (4 * dim)
        with torch.no_grad():
            table = (torch.empty(rows, dim, device=args.device).normal_(0, 0.01),
                     torch.zeros(rows, device=args.device))
            fbgemm = one_fbgemm_table(args, report, table[0])
            for law in ("uniform", "power"):
                for pooling in (1, 20, 100):
                    if elapsed() > args.budget_seconds:
                        report.out["skipped"].append(f"embedding {dim} {pooling} {law}")
                    else:
                        measure_table(args, report, dim, pooling, law, table, compiled, fbgemm)

    for dim in (128, 64, 256):
        guarded(args, report, f"embedding D={dim}", of_dim, dim)


def device_line(args):
    if not args.cuda:
        return "CPU"
    properties = torch.cuda.get_device_properties(0)
    return (f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB, "
            f"{properties.multi_processor_count} multiprocessors")


def run_all(args, report):
    report.out["device"] = device_line(args)
    print(f"{report.out['device']}; torch {torch.__version__}, CUDA {torch.version.cuda}, "
          f"{args.rows} rows in each of {TABLES} tables, D = {DIM}", flush=True)
    guarded(args, report, "limits", measure_limits, args, report)
    todo = configurations(args)
    print(f"\n{'model':10} {'variant':13} {'batch':>6} {'by':5} {'input':6} {'ms':>9} {'least':>9} "
          f"{'most':>9} {'M/s':>8} {'GiB':>6}  loss", flush=True)
    first = len(args.models) * min(2, len(args.batches)) if args.embedding else len(todo)
    run_models(args, report, todo[:first])
    if args.embedding:
        run_embedding(args, report)
        run_models(args, report, todo[first:])
    if report.out["skipped"]:
        print("\nno time left for " + "; ".join(report.out["skipped"]))
    print(f"\n{elapsed():.0f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", choices=MODELS, nargs="*", default=MODELS)
    parser.add_argument("--batches", type=int, nargs="+", default=[8192, 16384, 32768, 65536])
    parser.add_argument("--variants", choices=VARIANTS, nargs="+", default=DEFAULT_VARIANTS)
    parser.add_argument("--rows", type=int, default=1000000, help="of each table")
    parser.add_argument("--steps", type=int, default=20, help="timed ones, at least")
    parser.add_argument("--embedding", action="store_true",
                        help="lookups and updates of one table alone, too")
    parser.add_argument("--embedding-bytes", type=int, default=8 << 30, help="of that table")
    parser.add_argument("--lookups", type=int, default=1 << 21, help="of that table")
    parser.add_argument("--compile-embedding", action="store_true",
                        help="and with torch.compile, a few seconds for each size")
    parser.add_argument("--copy-bytes", type=int, default=4 << 30)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--no-graphs", dest="graphs", action="store_false")
    parser.add_argument("--budget-seconds", type=float, default=150,
                        help="since the start; no configuration begins later")
    parser.add_argument("--config-seconds", type=int, default=90, help="for one, at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    args.cuda = torch.device(args.device).type == "cuda"
    if args.cuda and not torch.cuda.is_available():
        print("skipped: no GPU that torch can use")
        sys.exit(77)
    warnings.filterwarnings("ignore")

    def out_of_time(signal_number, frame):
        raise OutOfTime(f"took more than {args.config_seconds} s")
    signal.signal(signal.SIGALRM, out_of_time)
    report = Report(args)
    args.fbgemm = False
    if args.embedding or "fbgemm" in args.variants:
        fbgemm, failure = import_fbgemm()
        args.fbgemm = fbgemm is not None
        if failure:
            args.variants = [variant for variant in args.variants if variant != "fbgemm"]
            print(f"fbgemm skipped: {error_line(failure)}", flush=True)
    try:
        run_all(args, report)
    except (Exception, OutOfTime) as error:  # the device is not usable any more, say
        report.error("all that was left", error)
    report.write()


if __name__ == "__main__":
    main()
