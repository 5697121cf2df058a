#!/usr/bin/env python3
"""Injects every kind of fault covered by the launch contract into small training runs until they
end: the model and its metrics must be those of an uninterrupted run. A third of the runs keep their
checkpoints in a real object store (tests/storage), which fails in other ways; where there is none,
they keep them on disk.

    tests/chaos/chaos.py build/release/bin/renzan --seeds 30
"""

import argparse
import contextlib
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.append(f"{os.path.dirname(os.path.realpath(__file__))}/../storage")
import checkpoints
from attempt import Attempt, Counts, Failure
from scenario import STEPS, Plan, Scenario, place_of
from storage import Storage
from stored import Prefix

FAULTY_ATTEMPTS = 5  # later attempts have no faults
LOG_LINES = 30  # of each attempt, on failure


class Watch:
    """Polls the progress of a run and counts lost steps."""

    def __init__(self, run, place):
        """`place`: the Directory or Prefix of the run's checkpoints."""
        self.checkpoints = place
        self.kinds = checkpoints.Kinds(place)
        self.step = self.steps_lost = 0
        self._path = f"{run}/status.json"

    def look(self):
        self.kinds.look()
        try:
            with open(self._path) as file:
                status = json.load(file)
        except FileNotFoundError:
            return None
        self.steps_lost += max(0, self.step - status["step"])
        self.step = status["step"]
        return status


class Run:
    """The run of one seed."""

    def __init__(self, program, work, seed, backends, storage):
        """`storage`: None if there is no store."""
        self.scenario = Scenario(seed, backends, storage is not None)
        self.counts = Counts()
        self.attempts = []
        self.corruptions = []
        self._program = program
        self._storage = storage
        self._directory = f"{work}/seed{seed}"
        self._checkpoints = checkpoints.Directory(f"{self._directory}/run/checkpoints")
        os.mkdir(self._directory)
        config = dict(self.scenario.config)
        data = f"../{config['data']}"
        config["data"] = {"train": {"path": data, "rows": [0, 3000]},
                          "eval": {"path": data, "rows": [3000, 4000]}}
        if self.scenario.stored:
            self._checkpoints = Prefix(storage.store, f"seed{seed}")
            config["checkpoint"] = config["checkpoint"] | {
                "dir": self._checkpoints.url,
                "stage": "stage" if self.scenario.stored.staged else ""}
        with open(f"{self._directory}/config.yaml", "w") as file:
            json.dump(config, file, indent=1)

    def run(self):
        self._train_reference()
        watch = Watch(f"{self._directory}/run", self._checkpoints)
        status = None
        while status != 0:
            number = len(self.attempts)
            plan = self.scenario.plan(number)
            if number >= FAULTY_ATTEMPTS:
                plan = Plan(plan.placement, 0, [], "")
            if number > 0 and plan.corruption:
                self._corrupt_newest(plan.corruption, number)
            if plan.debris:
                self._leave_debris(number)
            left = self._checkpoints.leftovers()
            attempt = Attempt(self._program, self._directory, number, self.scenario, plan, watch,
                              self._storage)
            self.attempts.append(attempt)
            status = attempt.run(self.counts)
            if number >= FAULTY_ATTEMPTS and status != 0:
                raise Failure(f"the attempt without faults ended with {status}")
        self.counts.steps_lost = watch.steps_lost
        # The next attempt removes what cannot be removed while a store is away.
        stale = left & self._checkpoints.leftovers()
        if stale and not attempt.lasting_outages():
            raise Failure(f"{sorted(stale)} were left by an earlier attempt")
        self._compare()
        self._expect_checkpoints()

    def _train_reference(self):
        place = self.scenario.reference
        result = subprocess.run(
            [self._program, "train", "config.yaml", "--run-dir", "reference",
             "--workers", str(place.workers), "--threads", str(place.threads),
             "--backend", place.backend, "--set", "checkpoint.every_steps=0",
             "--set", "checkpoint.dir="],
            cwd=self._directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=300, text=True)
        if result.returncode != 0:
            raise Failure(f"the uninterrupted run failed:\n{result.stdout}")

    def _corrupt_newest(self, how, number):
        """Corrupts the newest checkpoint if there is another one to resume from."""
        place = self._checkpoints
        valid = [name for name in place.complete() if not place.is_corrupt(name)]
        if len(valid) < 2:
            return
        newest, *others = [(name, place.manifest(name)["base"]) for name in valid]
        if not any(base is None or base["name"] in valid for _, base in others):
            return
        rng = random.Random(f"corruption {self.scenario.seed} {number}")
        self.corruptions.append((number, place.corrupt(newest[0], how, rng)))
        self.counts.corrupt += 1

    def _leave_debris(self, number):
        rng = random.Random(f"debris {self.scenario.seed} {number}")
        self.corruptions.append((number, f"debris in {self._checkpoints.leave_debris(rng)}"))

    def _expect_checkpoints(self):
        """Corrupt checkpoints must be kept, under their own name or moved aside; others must be
        whole."""
        if lost := self._checkpoints.lost():
            raise Failure(f"the corrupt {lost} were deleted or changed")
        if incomplete := self._checkpoints.incomplete():
            raise Failure(f"{incomplete} are missing, or of another size")
        if staged := glob.glob(f"{self._directory}/stage/*/*"):
            raise Failure(f"{staged} still wait for their upload")

    def _compare(self):
        ours, expected = (checkpoints.manifest(f"{self._directory}/{run}/model")["model_sha256"]
                          for run in ("run", "reference"))
        if ours != expected:
            raise Failure(f"different model: {ours}, uninterrupted {expected}")
        ours, expected = (self._metrics(run) for run in ("run", "reference"))
        if ours != expected:
            first = next((pair for pair in zip(ours, expected) if pair[0] != pair[1]), None)
            raise Failure(f"different metrics: {len(ours)} lines instead of {len(expected)}, "
                          f"the first difference is {first}")

    def _metrics(self, run):
        """Returns every line without the values that depend on time."""
        lines = []
        with open(f"{self._directory}/{run}/metrics.jsonl") as file:
            for line in map(json.loads, file):
                del line["time"]
                line.pop("train/samples_per_second", None)
                lines.append(line)
        return lines

    def describe(self):
        """The attempts and faults so far."""
        lines = [f"  checkpoints: {self.scenario.stored or 'on disk'}"]
        for number, attempt in enumerate(self.attempts):
            lines += [f"  before attempt {n}: {what}"
                      for n, what in self.corruptions if n == number]
            lines.append(f"  attempt {number}: {attempt.history()}")
        return "\n".join(lines)

    def tails(self):
        lines = []
        for attempt in self.attempts:
            lines.append(f"--- {os.path.basename(attempt.log)}")
            lines += attempt.text().splitlines()[-LOG_LINES:]
        return "\n".join(lines)

    def remove(self):
        shutil.rmtree(self._directory)


COLUMNS = {"attempts": "attempts", "kills": "kills", "kills_in_write": "in write",
           "kills_in_model": "in model", "stops": "stops", "restarts": "restarts",
           "resumes": "resumes", "from_increments": "from incr.", "corrupt": "corrupt",
           "steps_lost": "steps lost", "requests_failed": "failed requests",
           "outages": "outages"}


def print_header():
    print("  ".join(["seed".rjust(6), "place", *COLUMNS.values(), "seconds"]), flush=True)


def print_row(name, place, counts, seconds):
    cells = [str(getattr(counts, key)).rjust(len(title)) for key, title in COLUMNS.items()]
    print("  ".join([name.rjust(6), place.ljust(5), *cells, f"{seconds:7.1f}"]), flush=True)


def make_data(program, work):
    for name, more in (("one_hot", []), ("multi_hot", ["--multi-hot", "3"])):
        subprocess.run([program, "data", "synth", "--format", "dataset", "--seed", "6", "--rows",
                        "4000", "--features", "8", "--output", f"{work}/{name}", *more],
                       check=True, stdout=subprocess.DEVNULL)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("renzan", help="the program")
    parser.add_argument("--seeds", type=int, default=30, help="how many runs (30)")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the runs and print their path")
    parser.add_argument("--verbose", action="store_true", help="print every schedule")
    return parser.parse_args()


def report_failure(run, seed, failure, options):
    print(f"\nFAILED: seed {seed}: {failure}\n"
          f"configuration: {json.dumps(run.scenario.config)}\n"
          f"{run.describe()}\n{run.tails()}\n"
          f"to repeat: {sys.argv[0]} {options.renzan} --first-seed {seed} --seeds 1 --keep "
          f"--verbose\n", flush=True)


def open_storage(seeds, work):
    """Opens the store for the seeds that keep their checkpoints there. Yields None if there are
    none, or if it cannot be installed."""
    if not any(map(place_of, seeds)):
        return contextlib.nullcontext()
    try:
        return Storage(f"{work}/store")
    except SystemExit as skipped:
        if skipped.code != 77:
            raise
        print("without a store, all seeds keep their checkpoints on disk")
        return contextlib.nullcontext()


def run_seeds(options, seeds, work, storage):
    """Returns the counts over all seeds, by place, and the seeds that failed."""
    backends = ["gloo"] + (["mpi"] * 2 if shutil.which("mpirun") else [])
    program = os.path.realpath(options.renzan)
    totals, failed = {"disk": Counts(), "store": Counts()}, []
    make_data(program, work)
    print_header()
    began = time.monotonic()
    for seed in seeds:
        start = time.monotonic()
        run = Run(program, work, seed, backends, storage)
        place = "store" if run.scenario.stored else "disk"
        try:
            run.run()
        except Failure as failure:
            failed.append(seed)
            report_failure(run, seed, failure, options)
        totals[place].add(run.counts)
        print_row(str(seed), place, run.counts, time.monotonic() - start)
        if options.verbose:
            print(run.describe(), flush=True)
        if not options.keep:
            run.remove()
    for place, total in totals.items():
        if total.attempts:
            print_row("all", place, total, time.monotonic() - began)
    return totals, failed


def main():
    # Background jobs and nohup ignore these signals, and runs would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    options = arguments()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    work = tempfile.mkdtemp(prefix="chaos.")
    try:
        with open_storage(seeds, work) as storage:
            totals, failed = run_seeds(options, seeds, work, storage)
    finally:
        if options.keep:
            print(f"kept: {work}")
        else:
            shutil.rmtree(work)
    if failed:
        sys.exit(f"FAILED: seeds {failed}")
    # Fails if the faults never hit the interesting moments; a single seed may miss them.
    for place, total in totals.items() if options.seeds > 1 else ():
        if total.attempts and not total.kills_in_write:
            sys.exit(f"FAILED: no kill hit a checkpoint while it was being written ({place})")
        if total.attempts and not total.from_increments:
            sys.exit(f"FAILED: nothing was resumed from an incremental checkpoint ({place})")
    if totals["store"].attempts and options.seeds > 1 and not totals["store"].requests_failed:
        sys.exit("FAILED: no request to the store failed")


if __name__ == "__main__":
    main()
