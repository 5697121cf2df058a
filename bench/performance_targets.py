"""The performance targets, and how far measurements of bench/performance meet them."""
import dataclasses
import statistics

from figures import spread

# With AMX, and with AVX-512 alone.
RATIOS = {"kaggle-bf16": (4, 4), "terabyte-bf16": (3, 3), "dcnv2-bf16": (2.5, 2.5),
          "kaggle-fp32": (2.4, 4), "terabyte-fp32": (2, 3)}
WORKERS = {("mpi", 2): 0.97, ("gloo", 2): 0.85, ("mpi", 4): 0.85, ("gloo", 4): 0.6}
ROOFLINE, PRODUCTS, EMBEDDING, BATCHES, AUC, MEMORY, STEP = 0.75, 0.85, 0.7, 1, 0.0005, 1.1, 1.25

MODEL_NAMES = {"kaggle": "Kaggle size", "terabyte": "Terabyte size", "dcnv2": "DLRM-DCNv2"}
PRECISION_NAMES = {"fp32": "float32", "bf16": "bfloat16"}
BACKEND_NAMES = {"mpi": "MPI", "gloo": "Gloo"}


def machine_class(machine):
    if "amx_bf16" in machine["units"]:
        return "amx"
    if "avx512f" not in machine["units"]:
        return "other"
    # What Renzan chooses where the instruction for pairs of bfloat16 is fast.
    return "avx512_bf16" if machine["isa_bf16"] == "avx512_bf16" else "avx512"


def ratio_target(name, kind):
    """None if there is none."""
    if name not in RATIOS or kind == "other":
        return None
    with_amx, with_avx512 = RATIOS[name]
    return with_amx if kind == "amx" else with_avx512


@dataclasses.dataclass
class Check:
    """A measured value beside its target. Without a target there is no verdict."""
    what: str
    value: float
    text: str  # the value and its range
    goal: float | None
    form: str = ".2f"
    unit: str = ""
    within: bool = False  # the goal is an upper limit

    @property
    def target(self):
        if self.goal is None:
            return "none"
        return f"{'within' if self.within else '≥'} {self.goal:{self.form}}{self.unit}"

    @property
    def verdict(self):
        if self.goal is None:
            return ""
        met = self.value <= self.goal if self.within else self.value >= self.goal
        return "met" if met else "missed"


def of_values(what, values, goal):
    """A check of a ratio: its median."""
    return Check(what, statistics.median(values), spread(values, ".2f"), goal)


def of_shares(what, values, goal):
    """A check of a share, in percent: its median."""
    return Check(what, 100 * statistics.median(values), spread(values, ".0f", 100) + " %",
                 100 * goal, ".0f", " %")


def best_peer(measured, precision):
    """The fastest setting of PyTorch; in float32 only those that compute in float32."""
    allowed = [v for v in measured["peers"] if precision == "bf16" or v != "bf16"]
    return max(allowed, key=lambda variant: statistics.median(measured["peers"][variant]))


def ratios(measured, precision, variant):
    return [a / b for a, b in zip(measured["renzan"][precision], measured["peers"][variant])]


def model_name(name):
    model, precision = name.split("-")
    return f"{MODEL_NAMES[model]}, {PRECISION_NAMES[precision]}"


def ratio_check(name, kind, measured):
    precision = name.split("-")[1]
    return of_values(f"{model_name(name)}, against the fastest PyTorch",
                     ratios(measured, precision, best_peer(measured, precision)),
                     ratio_target(name, kind))


def roofline_checks(measured):
    return [of_shares(model_name(name), [r["least_seconds"] / r["step_seconds"] for r in runs],
                      ROOFLINE) for name, runs in measured["runs"].items()]


def products_phase(run):
    return next(p for p in run["phases"] if p["phase"] == "forward and backward")


def products_checks(measured):
    """In float32 only."""
    return [of_shares(model_name(name),
                      [p["least_seconds"] / p["seconds"] for p in map(products_phase, runs)],
                      PRODUCTS) for name, runs in measured["runs"].items() if name.endswith("fp32")]


def worker_checks(measured):
    return [of_values(f"{s['workers']} workers of one thread over {BACKEND_NAMES[s['backend']]}",
                      [b / a for a, b in zip(measured["one"], s["rates"])],
                      WORKERS.get((s["backend"], s["workers"]))) for s in measured["several"]]


def embedding_checks(measured):
    share, limits = (measured["columns"].index(name) for name in ("of the limits", "range"))
    percent = lambda cell: cell.removesuffix(" %")
    return [Check(f"{row[0]}, D={row[1]}, pooling factor {row[2]}", float(percent(row[share])),
                  f"{percent(row[share])} ({percent(row[limits])}) %", 100 * EMBEDDING, ".0f", " %")
            for row in measured["rows"]]


def batch_checks(measured):
    return [of_values(f"batch {point['batch']:,}",
                      ratios(point, "fp32", best_peer(point, "fp32")), BATCHES)
            for point in measured]


def quality_checks(measured):
    checks = []
    for compared in measured:
        auc = compared["auc"]
        for setting in list(auc)[1:]:
            differences = [b - a for a, b in zip(auc["fp32"], auc[setting])]
            mean = statistics.mean(differences)
            text = f"{mean:+.5f}"
            if len(differences) > 1:
                text += f" ({min(differences):+.5f} to {max(differences):+.5f})"
            checks.append(Check(f"{compared['data']}, {compared['model']}, {setting}", abs(mean),
                                text, AUC, ".4f", within=True))
    return checks


def of_prediction(what, ratio, goal):
    """A check of what was measured as a multiple of what was predicted: either may be larger."""
    return Check(what, max(ratio, 1 / ratio), f"{ratio:.2f}", goal, within=True)


def memory_checks(measured):
    """The peak of each run's largest worker."""
    return [of_prediction(run["run"], run["peak"] / run["said"], MEMORY) for run in measured]


def estimate_checks(measured):
    """The time of a step."""
    return [of_prediction(run["model"], run["measured_ms"] / run["predicted_ms"], STEP)
            for run in measured]


def worst(checks, what):
    """The check that is furthest from a common target, under another name."""
    chosen = max(checks, key=lambda check: check.value if check.within else -check.value)
    return dataclasses.replace(chosen, what=f"{what} (worst: {chosen.what})")


# What each section answers: one check for each target, of (class of the machine, measured).
CHECKS = [
    *((name.split("-")[0], lambda kind, m, name=name: [ratio_check(name, kind, m)])
      for name in RATIOS),
    ("roofline", lambda _, m: [worst(roofline_checks(m), "step against its roofline")]),
    ("roofline", lambda _, m: [worst(products_checks(m), "products in float32")]),
    ("workers", lambda _, m: worker_checks(m)),
    ("embedding", lambda _, m: [worst(embedding_checks(m), "embedding kernels")]),
    ("batches", lambda _, m: [worst(batch_checks(m), "every batch size in float32")]),
    ("precision", lambda _, m: [worst(quality_checks(m), "AUC of bfloat16 against float32")]),
    ("rows", lambda _, m: [worst(quality_checks(m), "AUC of 16-bit tables against float32")]),
    ("memory", lambda _, m: [worst(memory_checks(m), "peak memory against the estimate")]),
    ("estimates", lambda _, m: [worst(estimate_checks(m), "time of a step against the plan")]),
]
