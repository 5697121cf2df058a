"""The plan of a seed: which jobs are submitted, and what happens when the daemon is killed.

Everything is drawn from the seed alone, so that a run can be repeated. Jobs and nodes are numbers to
be taken modulo how many there are.
"""

import dataclasses
import os
import random

NODES, GPUS_PER_NODE, CPUS_PER_NODE = 4, 2, 16
FAKE_WORKER = f"{os.path.dirname(os.path.abspath(__file__))}/fake_worker.sh"

# What is going on when the daemon is killed: weight, and maximum delay of the kill in seconds.
PHASES = {
    "submit": (3, 0.02),  # a submission is in flight
    "start": (3, 0.06),  # one has just been acknowledged
    "cancel": (2, 0.02),
    "preempt": (2, 0.05),  # a job is being stopped, or one of higher priority was submitted
    "end": (3, 0.03),  # a worker has just ended
    "node": (2, 0.03),  # a node is drained, failed or restored
    "down": (1, 0.02),  # the daemon is shutting down
    "restart": (3, 0.15),  # the daemon is starting
    "quiet": (2, 0.3),
}


@dataclasses.dataclass(frozen=True)
class Job:
    name: str
    steps: int
    replicas: str = "1"
    gpus: int = 1
    code: int = 0
    fails: int = 0
    retries: int = 0
    priority: int = 0
    words: tuple = ()  # for the fake worker: saves, loud, orphan
    artifacts: bool = False

    @property
    def min_workers(self):
        return int(self.replicas.split(".")[0])

    @property
    def saves(self):
        return "saves" in self.words

    def expected_end(self):
        """The state and exit code, unless the job is cancelled."""
        if self.fails > self.retries:  # many more: a failure during a stop is not counted
            return "failed", 3
        return ("failed", self.code) if self.code else ("done", 0)

    def spec(self, ledger, tag):
        command = ["/bin/sh", FAKE_WORKER, ledger, str(self.steps), str(self.code), *self.words,
                   f"fails={self.fails}"]
        spec = {
            "name": self.name, "replicas": self.replicas, "priority": self.priority,
            "resources": {"cpu": 1, "gpu": self.gpus}, "retries": self.retries,
            "retry_backoff": "50ms", "checkpoint": {"on_stop": self.saves},
            "environment": dict([tag]),
        }
        if self.artifacts:
            spec["artifacts"] = f"{ledger}/artifacts/{self.name}"
            command.append(f"artifacts={spec['artifacts']}")
        return spec | {"command": command}


@dataclasses.dataclass(frozen=True)
class Kill:
    """What happens from one restart of the daemon to the next."""

    phase: str
    jobs: tuple  # submitted before the kill; in phase `submit`, the last one at that moment
    delay: float  # seconds from the phase's event
    which: int  # job or node
    verb: str  # what to do with the node
    twice: int  # how often it is killed again during its start
    absence: float  # seconds until it is restarted

    def __str__(self):
        more = f", {self.verb}" if self.phase == "node" else ""
        return (f"{self.phase}{more} + {self.delay * 1000:.1f} ms, "
                f"jobs {' '.join(job.name for job in self.jobs)}")


def _job(rng, name, important):
    kind = rng.choice(["short", "short", "gang", "fails", "saves", "saves", "saves", "elastic",
                       "artifacts", "loud", "orphan", "code"])
    if important:
        return Job(name + "-important", rng.randint(1, 4), str(rng.choice([2, 4])), 2,
                   priority=rng.randint(5, 9))
    name = f"{name}-{kind}"
    steps = rng.randint(1, 12)
    replicas = str(rng.choice([1, 1, 2, 3]))
    if kind == "gang":
        return Job(name, steps, str(rng.randint(2, 6)))
    if kind == "fails":
        return Job(name, rng.randint(1, 4), replicas, fails=rng.choice([1, 1, 99]),
                   retries=rng.choice([1, 2]))
    if kind == "saves":
        return Job(name, rng.randint(10, 40), replicas, words=("saves",))
    if kind == "elastic":
        return Job(name, rng.randint(10, 25), "1..4", words=("saves",))
    if kind == "artifacts":
        return Job(name, rng.randint(1, 3), replicas, artifacts=True)
    if kind in ("loud", "orphan"):
        return Job(name, rng.randint(2, 6), replicas, rng.choice([0, 1]), words=(kind,))
    if kind == "code":
        return Job(name, rng.randint(1, 4), replicas, code=rng.randint(1, 60))
    return Job(name, rng.randint(1, 4), gpus=rng.choice([0, 1, 2]))


def plan(seed, number):
    """The plan of kill number 0, 1, 2 and so on."""
    rng = random.Random(f"kill {seed} {number}")
    phase = rng.choices(list(PHASES), [weight for weight, _ in PHASES.values()])[0]
    jobs = [_job(rng, f"k{number}-{i}", False) for i in range(rng.choice([1, 1, 2, 3]))]
    which = rng.randrange(1000)
    if phase == "preempt" and which % 2:
        jobs.append(_job(rng, f"k{number}-{len(jobs)}", True))
    return Kill(phase, tuple(jobs), rng.uniform(0, PHASES[phase][1]), which,
                rng.choice(["drain", "drain", "fail", "restore"]), rng.choice([1, 1, 2, 3]),
                rng.choice([0, 0, 0, rng.uniform(0, 0.2)]))
