"""Invariants of the jobs after a daemon was killed, and when all jobs have ended."""

import collections
import glob
import os
import re
import subprocess

from ledger import Worker
from workload import GPUS_PER_NODE, NODES

STOPS = ("stopping", "resizing", "cancelling", "node_failed")


class Failure(Exception):
    pass


def expect(condition, message):
    if not condition:
        raise Failure(message)


class Submissions:
    """What was requested, and what the daemon acknowledged."""

    def __init__(self):
        self.jobs = {}  # by name
        self.ids = {}  # ids of acknowledged jobs, by name
        self.cancels = {}  # by id: whether it was acknowledged

    def check(self, listed):
        """Every acknowledged job must exist, with its id, and none twice."""
        ids = collections.defaultdict(list)
        for job in listed:
            ids[job["name"]].append(job["id"])
        for name, found in ids.items():
            expect(name in self.jobs, f"{name} (job {found[0]}) was never submitted")
            expect(len(found) == 1, f"{name} was submitted once, but there are jobs {found}")
        for name, number in self.ids.items():
            expect(ids.get(name) == [number],
                   f"{name} was acknowledged as job {number}, but now it is {ids.get(name)}")


def check_found_again(daemon, ledger, before):
    """Workers that were alive when the daemon was killed must still be alive or have ended
    regularly. Returns the others, which only a node failure explains."""
    listed = {job["id"]: job for job in daemon.get("/v1/jobs?all=1")["jobs"]}
    now = ledger.alive()
    notes = collections.defaultdict(set)
    for worker, _, what in ledger.notes():
        notes[worker].add(what)
    unexplained = set()
    for worker, process in before.items():
        if now.get(worker) == process:
            job = listed[worker.job]
            # It may have ended in between.
            if job["attempts"] != worker.attempt + 1 or job["ended"]:
                expect(ledger.alive().get(worker) != process,
                       f"{worker} is alive (process {process[0]}), but job {worker.job} is "
                       f"{job['state']} after {job['attempts']} attempts")
        else:
            expect(worker not in now, f"{worker} has become another process")
            if not notes[worker] & {"ended", "stopped", "failed"}:
                unexplained.add(worker)
    return unexplained


def check_ledger(ledger):
    """No attempt may start twice, no job may have two gangs at a time, and no device two owners."""
    began = set()
    for worker, pid, what in ledger.notes():
        expect(not what.startswith("overlap"), f"{worker} (process {pid}): {what}")
        if what == "begin":
            expect(worker not in began, f"{worker} was started twice")
            began.add(worker)


class JobValidator:
    """Checks one ended job."""

    def __init__(self, daemon, program, ledger, job, record, cancelled):
        self._daemon, self._program = daemon, program
        self._ledger = ledger
        self._job = job
        self._record = record
        self._cancelled = cancelled  # None, or whether that was acknowledged
        self._id = record["id"]
        self._attempts = record["attempts_list"]
        self._last = record["attempts"] - 1
        self._notes = {}
        for worker, _, what in ledger.notes():
            if worker.job == self._id:
                self._notes.setdefault(worker, []).append(what)
        self._node_failed = {attempt["number"] for attempt in self._attempts
                             if re.search(r"\bnode \S+ failed", attempt["message"])}

    def validate(self, killed, tag):
        try:
            self._identity(tag)
            self._history(killed)
            self._end()
            self._stops()
            for worker, notes in self._notes.items():
                self._output(worker, notes)
            for rank in sorted({worker.rank for worker in self._notes}):
                self._steps(rank)
            self._artifacts()
        except Failure as failure:
            raise Failure(f"job {self._id} ({self._job}): {failure}; it is "
                          f"{self._describe()}") from failure

    def _describe(self):
        lines = [f"{self._record['state']}, exit code {self._record['exit_code']}"]
        lines += [f"  attempt {each['number']}: exit {each['exit_code']}, {each['message']}"
                  for each in self._attempts]
        lines += [f"  {each['kind']}: {each['text']}" for each in self._record["events"]]
        lines += [f"  {worker}: {' '.join(notes)}" for worker, notes in self._notes.items()]
        return "\n".join(lines)

    def _identity(self, tag):
        wanted = self._job.spec(self._ledger.path, tag)
        expect(self._record["manifest"]["command"] == wanted["command"], "its command is wrong")
        for line in (f"retries: {self._job.retries}", f'replicas: "{self._job.replicas}"'):
            expect(line in self._record["spec"].split("\n"), f"no '{line}' in its specification")
        expect(self._record["priority"] == self._job.priority, "its priority is wrong")

    def _history(self, killed):
        numbers = [attempt["number"] for attempt in self._attempts]
        expect(numbers == list(range(self._record["attempts"])), f"attempts {numbers}")
        for attempt in self._attempts:
            expect(attempt["ended"] is not None, f"attempt {attempt['number']} has not ended")
            expect("ended without a report" not in attempt["message"], "its processes were killed")
        for worker in self._notes:
            expect(worker.attempt in numbers, f"{worker} ran, but there was no such attempt")
        for worker in killed:
            expect(worker.attempt in self._node_failed or self._another_failed(worker),
                   f"{worker} disappeared while there was no daemon")

    def _another_failed(self, worker):
        """Whether another worker failed: the supervisor then kills those of the gang that do not
        end soon."""
        message = self._attempts[worker.attempt]["message"]
        failed = re.search(r"\bworker (\d+) on \S+ ended with exit status", message)
        return failed is not None and int(failed.group(1)) != worker.rank

    def _end(self):
        end = self._record["state"], self._record["exit_code"]
        if end[0] == "cancelled" and self._cancelled is not None:
            return
        expect(not self._cancelled, "its cancellation was acknowledged")
        expect(end == self._job.expected_end(), f"expected {self._job.expected_end()}")
        # The last gang was complete.
        last = [worker for worker in self._notes if worker.attempt == self._last]
        expect(len(last) >= self._job.min_workers, f"the last gang had {len(last)} workers")

    def _stops(self):
        """Workers must be stopped only for a reason."""
        stopped = {worker.attempt for worker, notes in self._notes.items() if "stopped" in notes}
        kinds = [event["kind"] for event in self._record["events"]]
        failed = {attempt["number"] for attempt in self._attempts
                  if "ended with exit status" in attempt["message"]}
        stops = sum(kind in STOPS for kind in kinds)
        expect(len(stopped - failed) <= stops, f"attempts {sorted(stopped)} were stopped")
        failures = sum(event["text"].startswith("failed") for event in self._record["events"])
        expect(self._record["failures"] == failures, f"{self._record['failures']} failures")
        happened = sum("failed" in notes for notes in self._notes.values())
        if self._job.fails:
            expect(happened - stops <= failures <= happened,
                   f"{failures} failures counted, {happened} happened")

    def _output(self, worker, notes):
        run = f"{self._daemon.state}/jobs/{self._id}/run"
        path = f"{run}/output.{worker.attempt}.{worker.rank}"
        if not os.path.exists(path):
            expect(worker.attempt in self._node_failed or self._another_failed(worker),
                   f"{worker} has no output")
            return
        with open(path) as file:
            wanted = file.read()
        got = self._daemon.get_text(
            f"/v1/jobs/{self._id}/logs?worker={worker.rank}&attempt={worker.attempt}")
        if set(notes) & {"ended", "stopped", "failed"}:
            expect(got == wanted, f"the log of {worker} has {len(got)} bytes, not {len(wanted)}")
        else:  # killed, perhaps between its two writes
            expect(wanted.startswith(got), f"the log of {worker} is not what it wrote")
        if self._id % 10 == 0 and worker.rank == 0:
            shown = subprocess.run(
                [self._program, "job", "logs", str(self._id), "--attempt", str(worker.attempt),
                 "--socket", self._daemon.socket], capture_output=True, text=True, check=True)
            expect(shown.stdout == got, f"`renzan job logs` shows another log of {worker}")

    def _steps(self, rank):
        try:
            with open(f"{self._daemon.state}/jobs/{self._id}/run/steps.{rank}") as file:
                steps = [int(line) for line in file]
        except FileNotFoundError:
            steps = []
        if self._job.saves:
            # Only a node failure loses unsaved steps.
            if self._node_failed:
                steps = sorted(set(steps))
            expect(steps == list(range(1, len(steps) + 1)), f"worker {rank} did steps {steps}")
        worker = Worker(self._id, self._last, rank)
        if self._record["state"] == "done" and worker in self._notes:
            expect(steps and steps[-1] == self._job.steps, f"worker {rank} ended at {steps[-1:]}")

    def _artifacts(self):
        if not self._job.artifacts or self._record["state"] != "done":
            return
        ended = self._record["events"][-1]["text"]
        expect("could be collected" not in ended, ended)
        source = f"{self._ledger.path}/artifacts/{self._job.name}"
        kept = f"{self._record['artifacts_dir']}/{self._job.name}"
        parts = sorted(map(os.path.basename, glob.glob(f"{source}/*")))
        expect(parts and sorted(os.listdir(kept)) == parts, f"{kept} does not hold {parts}")
        for part in parts:
            with open(f"{source}/{part}") as wanted, open(f"{kept}/{part}") as got:
                expect(got.read() == wanted.read(), f"{kept}/{part} is not what was written")


def check_usage(usage, records, seconds):
    """The usage of a cluster that existed for so many seconds."""
    for each in usage["jobs"]:
        record = records[each["id"]]
        least = sum((attempt["ended"] - attempt["started"]) / 1000 * record["gpus"] *
                    sum(placed["workers"] for placed in attempt["placement"])
                    for attempt in record["attempts_list"])
        expect(each["gpu_seconds"] >= 0.9 * least - 0.5,
               f"job {each['id']} had {least:.3f} GPU-seconds, {each['gpu_seconds']} are counted")
    total = sum(each["gpu_seconds"] for each in usage["jobs"])
    expect(total <= NODES * GPUS_PER_NODE * seconds, f"{total} GPU-seconds in {seconds} s")
    for kind in ("queues", "users"):
        of_kind = sum(each["gpu_seconds"] for each in usage[kind])
        expect(abs(of_kind - total) < 0.01, f"{total} GPU-seconds by job, {of_kind} by {kind}")
