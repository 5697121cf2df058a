"""Derives from a seed one small training run and the faults of each attempt at it.

Everything depends only on the seed, not on what happens, so that a seed can be repeated. Moments
are defined by progress rather than by time: attempt.py waits for them.
"""

import dataclasses
import random
import signal

from faults import (CUT_BEFORE, INTERNAL_ERROR, SLOW_DOWN, TIME_TOO_SKEWED, Fault as StoreFault,
                    delay, limit)
from faulty_runs import FAULTS, REQUESTS


@dataclasses.dataclass(frozen=True)
class Placement:
    workers: int
    threads: int
    backend: str

    def __str__(self):
        return f"{self.workers}x{self.threads} {self.backend}"


@dataclasses.dataclass(frozen=True)
class Moment:
    """`start`: seconds after the attempt began. `step`: steps after the attempt's first status or
    the previous fault. `checkpoint`, `model`: seconds after its partial directory was seen."""

    kind: str
    value: float

    def __str__(self):
        unit = "" if self.kind == "step" else " s"
        return f"{self.kind} + {self.value:g}{unit}"


AT_START = Moment("start", 0)


@dataclasses.dataclass(frozen=True)
class Fault:
    moment: Moment
    target: str  # launcher, worker, or all (a power cut)
    signal: signal.Signals
    twice: bool = False

    def __str__(self):
        what = "power cut" if self.target == "all" else f"{self.signal.name} to {self.target}"
        return f"{what}{' twice' if self.twice else ''} at {self.moment}"


@dataclasses.dataclass(frozen=True)
class Outage:
    """An outage of the store: every request fails, or the store is killed and started again."""

    moment: Moment
    fault: StoreFault | None  # of every request; None: killed
    seconds: float

    def __str__(self):
        what = self.fault.name if self.fault else "store killed"
        return f"{what} for {self.seconds:g} s at {self.moment}"

    @property
    def status(self):
        """The exit status with which an attempt may end if the outage lasts too long for it."""
        return {None: None, TIME_TOO_SKEWED: 78}.get(self.fault, 74)


@dataclasses.dataclass(frozen=True)
class RequestFault:
    """A fault of each `every`th request of a kind, `times` at most."""

    fault: StoreFault
    kind: str  # one of REQUESTS, or ""
    every: int
    times: int

    def __str__(self):
        which = f"every {self.every}th " if self.every > 1 else "every "
        return f"{self.fault.name}: {which}'{self.kind or 'request'}', {self.times} times"

    @property
    def where(self):
        """The method and the path of the requests."""
        return REQUESTS.get(self.kind, (None, ""))


@dataclasses.dataclass(frozen=True)
class Stored:
    """How a run keeps its checkpoints in a store."""

    trouble: str  # one of TROUBLES
    proxied: bool
    staged: bool  # on a local disk on their way to the store
    large: bool  # so that files are uploaded in parts

    def __str__(self):
        kinds = [kind for kind in ("proxied", "staged", "large") if getattr(self, kind)]
        return ", ".join([f"in a store, trouble: {self.trouble or 'none'}", *kinds])

    @property
    def retry_for(self):
        """How long requests are repeated."""
        return "0.5s" if self.trouble in ("outage", "clock") else "60s"


@dataclasses.dataclass(frozen=True)
class Plan:
    """The plan of one attempt."""

    placement: Placement
    max_restarts: int
    faults: list  # including outages
    corruption: str  # of the newest checkpoint before the attempt: flip, truncate, remove or ""
    requests: list = ()  # RequestFaults
    debris: bool = False  # left before the attempt


STEPS = 240
# The models that are drawn, with small sizes.
TOP = {"top_mlp": [16, 8]}
MODELS = {
    "dlrm": {"bottom_mlp": [16], **TOP},
    "dlrm_dcnv2": {"bottom_mlp": [16], "cross_layers": 2, "cross_rank": 4, **TOP},
    "deepfm": TOP,
    "dcnv2": {"cross_layers": 2, "cross_rank": 4, **TOP},
    "masknet": {"mask_blocks": 2, "mask_ratio": 0.02, "mask_width": 8, **TOP},
    "mmoe": {"experts": 2, "expert_mlp": [8], **TOP},
}
STORED = 1 / 3  # of the seeds
# What the store does to the attempts of a seed, and how often. Only outages and the clock's last
# longer than requests are repeated.
TROUBLES = {"": 2, "requests": 4, "restart": 1, "outage": 2, "clock": 1}
TERM, INT, HUP = signal.SIGTERM, signal.SIGINT, signal.SIGHUP
USR1, KILL = signal.SIGUSR1, signal.SIGKILL


def place_of(seed):
    """Where the seed's checkpoints are if there is a store; None if they are on disk anyway."""
    rng = random.Random(f"stored {seed}")
    if rng.random() >= STORED:
        return None
    trouble = rng.choices(list(TROUBLES), TROUBLES.values())[0]
    proxied = trouble in ("requests", "outage", "clock") or trouble and rng.random() < 0.5
    return Stored(trouble, bool(proxied), rng.random() < 0.4, rng.random() < 0.25)


class Scenario:
    def __init__(self, seed, backends, has_store):
        """`backends`: those that several workers can use here, with faster ones repeated."""
        self.seed = seed
        self.backends = backends
        self.stored = place_of(seed) if has_store else None
        self._rng = random.Random(f"scenario {seed}")
        self.config = self._config()
        if self.stored and self.stored.large:
            self.config["model"]["embedding_dim"] = 128
            self.config["checkpoint"]["every_steps"] += 30
        self.reference = Placement(1, self._rng.randint(1, 2), "local")

    def plan(self, attempt):
        """The plan of attempt 0, 1, 2 and so on."""
        rng = self._rng = random.Random(f"attempt {self.seed} {attempt}")
        restarts = rng.choice([0, 0, 2])
        faults = [self._fault() for _ in range(rng.choice([1, 2, 2, 3]))]
        corruption = rng.choice(["flip", "truncate", "remove"]) if rng.random() < 0.3 else ""
        plan = Plan(self._placement(), restarts, faults, corruption)
        return self._with_trouble(plan, attempt) if self.stored else plan

    def _with_trouble(self, plan, attempt):
        """Adds the store's trouble to the plan."""
        # Draws of its own, so that everything else is as it is on disk.
        rng = self._rng = random.Random(f"trouble {self.seed} {attempt}")
        faults, requests = list(plan.faults), []
        if self.stored.trouble == "requests":
            requests = [self._request_fault() for _ in range(rng.randint(2, 8))]
        elif self.stored.trouble and rng.random() < 0.7:
            outage = self._outage()
            at_start = outage.moment == AT_START
            faults.insert(0 if at_start else rng.randrange(len(faults) + 1), outage)
        return dataclasses.replace(plan, faults=faults, requests=requests,
                                   debris=rng.random() < 0.2)

    def _config(self):
        """The configuration as a tree for YAML, without paths."""
        rng = self._rng
        codecs = ["fp32", "fp16", "bf16"]
        run_seed, data = rng.randrange(1000), rng.choice(["one_hot", "multi_hot"])
        # Other models by draws of their own, so that everything else is as it is with these two.
        model, own = rng.choice(["dlrm", "dlrm_dcnv2"]), random.Random(f"model {self.seed}")
        if own.random() < 0.6:
            model = own.choice([name for name in MODELS if not name.startswith("dlrm")])
        return {
            "seed": run_seed,
            "data": data,
            "model": {
                "type": model,
                "pooling": rng.choice(["sum", "mean"]),
                "embedding_dim": rng.choice([8, 16]),
                **MODELS[model],
            },
            "training": {
                "batch_size": 64,
                "epochs": 1000,
                "max_steps": STEPS,
                "log_every": rng.randint(1, 5),
                "eval_every": rng.choice([0, 20, 70]),
            },
            "optimizer": {
                "dense": {"type": rng.choice(["sgd", "adagrad", "adam"]), "learning_rate": 0.01},
                "sparse": {
                    "type": rng.choice(
                        ["sgd", "adagrad", "rowwise_adagrad", "adam", "momentum", "ftrl"]
                    ),
                    "learning_rate": 0.05,
                },
            },
            "comm": {key: rng.choice(codecs) for key in ("forward", "backward", "dense")},
            "checkpoint": {
                "every_steps": rng.randint(1, 50),
                "keep": rng.randint(1, 3),
                "incremental": rng.random() < 0.75,
            },
            "numerics": {
                "virtual_workers": 8,
                "precision": rng.choice(["fp32", "bf16"]),
                "embedding_precision": rng.choice(["fp32", "fp16", "bf16"]),
            },
        }

    def _placement(self):
        workers = self._rng.choice([1, 2, 2, 2, 3, 3, 4])
        backend = "local" if workers == 1 else self._rng.choice(self.backends)
        threads = self._rng.randint(1, 2) if workers <= 2 else 1  # for small machines
        return Placement(workers, threads, backend)

    def _moment(self):
        rng = self._rng
        kind = rng.choices(["start", "step", "checkpoint", "model"], [2, 5, 5, 1])[0]
        if kind == "step":
            return Moment(kind, rng.randint(1, STEPS // 6))
        longest = {"start": 0.5, "checkpoint": 0.1, "model": 0.05}[kind]
        return Moment(kind, round(rng.uniform(0, longest), 3))

    def _fault(self):
        rng = self._rng
        target, number, twice = rng.choice([
            ("launcher", TERM, False),
            ("launcher", TERM, True),
            ("worker", TERM, False),
            ("launcher", INT, False),
            ("launcher", HUP, False),
            ("launcher", USR1, False),
            ("worker", USR1, False),
            ("worker", KILL, False),
            ("worker", KILL, False),
            ("worker", KILL, False),
            ("all", KILL, False),
            ("all", KILL, False),
            ("all", KILL, False),
        ])
        return Fault(self._moment(), target, number, twice)

    def _outage(self):
        rng = self._rng
        fault = {"restart": None, "clock": TIME_TOO_SKEWED}.get(
            self.stored.trouble, rng.choice([CUT_BEFORE, INTERNAL_ERROR, SLOW_DOWN]))
        seconds = rng.uniform(0, 0.5) if fault is None else rng.uniform(0.3, 3)
        moment = AT_START if rng.random() < 0.3 else self._moment()
        return Outage(moment, fault, round(seconds, 3))

    def _request_fault(self):
        """So few faults that requests succeed when they are repeated."""
        rng = self._rng
        slow = [delay(round(rng.uniform(0.05, 0.3), 3)),
                limit(rng.randint(2, 20) * 1_000_000)]
        fault = rng.choice([*FAULTS, *FAULTS, *slow])
        if rng.random() < 0.5:
            return RequestFault(fault, rng.choice(list(REQUESTS)), rng.randint(1, 3),
                                rng.randint(1, 3))
        return RequestFault(fault, "", rng.randint(3, 30), rng.randint(1, 8))
