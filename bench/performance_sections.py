"""What bench/performance measures, one function for each section. Each returns what it measured, as
JSON keeps it: all rounds, not their medians. With `quick` it only tries that everything works."""
import functools
import json
import pathlib
import shutil
import tempfile
import time

import datasets
from commands import RENZAN, ROOT, run
from figures import say

TERABYTE = {"embedding_dim": 128, "bottom_mlp": [512, 256], "top_mlp": [1024, 1024, 512, 256]}
MODELS = {  # as in Renzan's configuration; batch 2048, two threads, tables of 100,000 rows
    "kaggle": {"type": "dlrm", "embedding_dim": 16, "bottom_mlp": [512, 256, 64],
               "top_mlp": [512, 256]},
    "terabyte": {"type": "dlrm", **TERABYTE},
    "dcnv2": {"type": "dlrm_dcnv2", **TERABYTE, "cross_layers": 3, "cross_rank": 512},
}
BATCH, THREADS, TABLES, TABLE_ROWS, POOLING = 2048, 2, 26, 100_000, 1


def script(name, *flags):
    """What a script of this folder prints with --json; its progress is shown."""
    return json.loads(run(ROOT / "bench" / name, "--json", *flags, stderr=None))


def limits(quick):
    """The machine's rates, which the least times are computed from."""
    return [json.loads(run(RENZAN, "bench", "machine", "--threads", THREADS, "--json"))
            for _ in range(1 if quick else 5)]


def against_pytorch(model, quick, *, rounds, steps, torch_steps, warm_up=10):
    """Rates of Renzan in both precisions and of three settings of PyTorch."""
    sizes = MODELS[model]
    if quick:
        rounds, steps, torch_steps, warm_up = 1, 5, 2, 2
    cross = [word for key in ("cross_layers", "cross_rank") if key in sizes
             for word in ("--" + key.replace("_", "-"), sizes[key])]
    return script("vs_pytorch", "--model", sizes["type"], "--dim", sizes["embedding_dim"],
                  "--bottom", *sizes["bottom_mlp"], "--top", *sizes["top_mlp"], *cross,
                  "--batch", BATCH, "--threads", THREADS, "--table-rows", TABLE_ROWS,
                  "--precision", "fp32", "bf16", "--rounds", rounds, "--steps", steps,
                  "--torch-steps", torch_steps, "--torch-warm-up", warm_up)


def bench_train(data, model, steps, program=RENZAN, **settings):
    """`renzan bench train` of a model on a dataset; `settings` become --set options."""
    with tempfile.TemporaryDirectory() as directory:
        config = pathlib.Path(directory) / "config.yaml"
        config.write_text(f"data: {{train: {{path: {data}}}}}\n"
                          f"model: {json.dumps(model)}\n"
                          f"training: {{batch_size: {BATCH}}}\nthreads: {THREADS}\n")
        sets = [word for key, value in settings.items()
                for word in ("--set", f"{key.replace('__', '.')}={value}")]
        return json.loads(run(program, "bench", "train", config, "--json", "--steps", steps, *sets))


def roofline(quick):
    """The time of each phase of a step and its least time, for every model and precision."""
    measured = {f"{model}-{precision}": [] for model in MODELS for precision in ("fp32", "bf16")}
    with tempfile.TemporaryDirectory() as directory:
        datasets.criteo(f"{directory}/data", BATCH * (10 if quick else 60), TABLE_ROWS)
        for index in range(1 if quick else 3):
            for name, runs in measured.items():
                model, precision = name.split("-")
                steps = 3 if quick else {"kaggle": 50, "terabyte": 30, "dcnv2": 15}[model]
                runs.append(bench_train(f"{directory}/data", MODELS[model], steps,
                                        numerics__precision=precision))
                say(f"round {index + 1}, {name}: step {runs[-1]['step_seconds'] * 1e3:.1f} ms, "
                    f"least {runs[-1]['least_seconds'] * 1e3:.1f} ms")
    return {"batch": BATCH, "runs": measured}


def workers(quick):
    return script("workers", *(["--pairs", 1, "--steps", 20] if quick else []))


def embedding(quick):
    """The table of embedding_bench, cell by cell."""
    flags = ["--table-mib", 64, "--repeats", 1] if quick else []
    lines = run(ROOT / "build/release/bench/embedding_bench", "--threads", THREADS,
                *flags).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in lines if line.startswith("|")]
    return {"table": lines[0], "columns": cells[0], "rows": cells[2:]}


def batches(quick):
    """Rates of Renzan and PyTorch in float32 by batch size."""
    sizes, measured = MODELS["kaggle"], []
    for batch in (128, 2048) if quick else (128, 512, 2048, 8192, 32768, 65536):
        steps = 20 if quick else min(1000, max(20, 2**19 // batch))
        # PyTorch is slow enough at large batches for fewer steps to do.
        torch_steps = 2 if quick else min(500, max(5, 2**18 // batch))
        warm_up = 2 if quick else 10 if batch < 8192 else 3
        measured.append({"batch": batch, **script(
            "vs_pytorch", "--variants", "eager", "fp32", "--dim", sizes["embedding_dim"],
            "--bottom", *sizes["bottom_mlp"], "--top", *sizes["top_mlp"], "--batch", batch,
            "--threads", THREADS, "--table-rows", TABLE_ROWS, "--steps", steps, "--torch-steps",
            torch_steps, "--torch-warm-up", warm_up, "--rounds", 1 if quick else 3)})
    return measured


def quality(quick, settings, seeds):
    # One seed of generated samples differs from the next by more than the target.
    return script("precision", "--settings", settings,
                  *(["--rows", 20000, "--real-seeds", 1] if quick else ["--seeds", seeds]))


def memory(quick):
    return script("memory", *(["--quick"] if quick else []))


def estimates(quick):
    return script("estimates", *(["--quick"] if quick else []))


class OtherWork:
    """Whole commands that do other work than training, and what they need below `folder`: the
    dataset `clicks`, a trained model, and the dataset of a model with large tables."""

    def __init__(self, folder, rows, rows_per_table, program=RENZAN):
        self._folder, self._program = folder, program
        datasets.criteo(folder / "clicks", rows, TABLE_ROWS, program)
        run(program, "data", "synth", "--format", "dataset", "--seed", 1, "--rows", 2 * BATCH,
            "--rows-per-table", rows_per_table, "--output", folder / "large")
        for name, model in (("clicks", MODELS["kaggle"]),
                            ("large", {"embedding_dim": 32, "bottom_mlp": [64], "top_mlp": [64]})):
            (folder / f"{name}.yaml").write_text(
                f"data: {{train: {{path: {folder / name}}}}}\nmodel: {json.dumps(model)}\n"
                f"training: {{batch_size: {BATCH}, max_steps: 0}}\n")
            run(program, "train", folder / f"{name}.yaml", "--run-dir", folder / f"{name}-trained")
        self._load = lambda model: ("eval", model, "--data", folder / "large", "--rows", 0, 10)
        self._commands = {
            f"evaluate {rows:,} rows, Kaggle size":
                ("eval", folder / "clicks-trained/model", "--data", folder / "clicks"),
            f"initialize, hash and save tables of {rows_per_table:,} rows":
                ("train", folder / "large.yaml", "--run-dir", folder / "saved"),
            f"load tables of {rows_per_table:,} rows and score 10 samples":
                self._load(folder / "large-trained/model")}

    def names(self):
        return list(self._commands)

    def seconds(self, name, threads):
        return self._seconds(self._commands[name], threads)

    def load_seconds(self, saved_by, threads):
        """Of loading the large tables that another OtherWork has saved."""
        return self._seconds(self._load(saved_by._folder / "large-trained/model"), threads)

    def _seconds(self, command, threads):
        start = time.monotonic()
        run(self._program, *command, "--threads", threads)
        took = time.monotonic() - start
        shutil.rmtree(self._folder / "saved", ignore_errors=True)
        return took


def other(quick):
    """Seconds of whole commands, by the number of threads."""
    with tempfile.TemporaryDirectory() as directory:
        work = OtherWork(pathlib.Path(directory), rows=20_000 if quick else 400_000,
                         rows_per_table=40_000 if quick else 4_000_000)
        parts = [{"what": name, "seconds": {"1": [], "2": []}} for name in work.names()]
        for index in range(1 if quick else 5):
            for threads in ("1", "2"):
                for part in parts:
                    part["seconds"][threads].append(work.seconds(part["what"], threads))
            say(f"round {index + 1}: " + ", ".join(
                f"{part['seconds']['1'][-1]:.2f} / {part['seconds']['2'][-1]:.2f} s"
                for part in parts))
    return parts


# Each curve changes one thing of the Kaggle-size model; x is what the plot shows on its axis.
def curves(quick):
    """(curve, x, arguments of `datasets.uniform`, changed settings) for each point."""
    some = (lambda values: values[:2]) if quick else (lambda values: values)
    for batch in some((128, 512, 2048, 8192, 32768, 65536)):
        yield "batch", batch, {}, {"training__batch_size": batch}
    for tables in some((2, 8, 26, 64, 128)):
        yield "tables", tables, {"tables": tables}, {}
    for rows in some((1_000, 10_000, 100_000, 1_000_000, 4_000_000)):
        yield "rows", rows, {"table_rows": rows}, {}
    for dim in some((16, 32, 64, 128, 256)):
        yield "dim", dim, {}, {"model__embedding_dim": dim}
    for pooling in some((1, 5, 20, 100)):
        yield "pooling", pooling, {"pooling": pooling}, {}
    for backend in ("mpi", "gloo"):
        for count in some((1, 2, 4, 8)):
            yield f"workers-{backend}", count, {}, {
                "workers": count, "threads": 1,
                "comm__backend": backend if count > 1 else "local"}


def growth(quick):
    """The time of a step and of its phases, by the sizes that it grows with. Renzan in float32, on
    data of which all ids are equally likely."""
    points = [{"curve": curve, "x": x, "data": data, "settings": settings, "runs": []}
              for curve, x, data, settings in curves(quick)]
    with tempfile.TemporaryDirectory() as directory:
        @functools.cache
        def dataset(tables, table_rows, pooling):
            path = f"{directory}/{tables}-{table_rows}-{pooling}"
            rows = max(10 * BATCH, 110_000 // pooling)
            datasets.uniform(path, rows, tables, table_rows, pooling)
            return path

        for index in range(1 if quick else 3):
            for point in points:
                sizes = {"tables": TABLES, "table_rows": TABLE_ROWS, "pooling": POOLING}
                batch = point["settings"].get("training__batch_size", BATCH)
                steps = 3 if quick else min(200, max(5, 100_000 // batch))
                data = dataset(*(sizes | point["data"]).values())
                point["runs"].append(bench_train(data, MODELS["kaggle"], steps,
                                                 **point["settings"]))
                say(f"round {index + 1}, {point['curve']} {point['x']}: step "
                    f"{point['runs'][-1]['step_seconds'] * 1e3:.1f} ms")
    return points


# A new section needs a function here, its checks in performance_targets.py, its tables in
# performance_tables.py, and markers for the tables in a page of docs/performance.
SECTIONS = {
    "limits": limits,
    "kaggle": functools.partial(against_pytorch, "kaggle", rounds=5, steps=200, torch_steps=60),
    "terabyte": functools.partial(against_pytorch, "terabyte", rounds=3, steps=100, torch_steps=30),
    "dcnv2": functools.partial(against_pytorch, "dcnv2", rounds=3, steps=20, torch_steps=10,
                               warm_up=3),
    "roofline": roofline,
    "workers": workers,
    "embedding": embedding,
    "batches": batches,
    "precision": functools.partial(quality, settings="bf16", seeds=4),
    # Products in float32, whose bits are the same in all classes with AVX-512.
    "rows": functools.partial(quality, settings="bf16 rows,fp16 rows", seeds=2),
    "memory": memory,
    "estimates": estimates,
    "other": other,
    "growth": growth,
}
