"""Derives from a seed one small training run and the faults of each attempt at it.

Everything depends only on the seed, not on what happens, so that a seed can be repeated. Moments
are defined by progress rather than by time: attempt.py waits for them.
"""

import dataclasses
import random
import signal


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
class Plan:
    """One attempt."""

    placement: Placement
    max_restarts: int
    faults: list
    corruption: str  # of the newest checkpoint before the attempt: flip, truncate, remove or ""


STEPS = 240
TERM, INT, HUP = signal.SIGTERM, signal.SIGINT, signal.SIGHUP
USR1, KILL = signal.SIGUSR1, signal.SIGKILL


class Scenario:
    def __init__(self, seed, backends):
        """`backends`: those that several workers can use here, the faster ones repeated."""
        self.seed = seed
        self.backends = backends
        self._rng = random.Random(f"scenario {seed}")
        self.config = self._config()
        self.reference = Placement(1, self._rng.randint(1, 2), "local")

    def plan(self, attempt):
        """The plan of attempt 0, 1, 2 and so on."""
        rng = self._rng = random.Random(f"attempt {self.seed} {attempt}")
        restarts = rng.choice([0, 0, 2])
        faults = [self._fault() for _ in range(rng.choice([1, 2, 2, 3]))]
        corruption = rng.choice(["flip", "truncate", "remove"]) if rng.random() < 0.3 else ""
        return Plan(self._placement(), restarts, faults, corruption)

    def _config(self):
        """The configuration as a tree for YAML, without paths."""
        rng = self._rng
        codecs = ["fp32", "fp16", "bf16"]
        return {
            "seed": rng.randrange(1000),
            "data": rng.choice(["one_hot", "multi_hot"]),
            "model": {
                "type": rng.choice(["dlrm", "dlrm_dcnv2"]),
                "pooling": rng.choice(["sum", "mean"]),
                "embedding_dim": rng.choice([8, 16]),
                "bottom_mlp": [16],
                "top_mlp": [16, 8],
                "cross_layers": 2,
                "cross_rank": 4,
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
                    "type": rng.choice(["sgd", "adagrad", "rowwise_adagrad"]),
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
