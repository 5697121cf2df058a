#!/usr/bin/env python3
"""Kills the job system's daemon repeatedly, at moments drawn from a seed, while jobs of all kinds are
submitted, run, fail, are preempted and cancelled. Nothing acknowledged may be lost, running workers
must continue and be found again, and every job must end correctly.

    tests/cluster/daemon_kills.py build/release/bin/renzan --kills 100 --seed 1
"""

import argparse
import collections
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, f"{HERE}/../chaos")
import processes
from daemon import Daemon, Refused, Unanswered
from validate import (Failure, JobValidator, Submissions, check_found_again, check_ledger,
                      check_usage, expect)
from ledger import Ledger
from workload import CPUS_PER_NODE, GPUS_PER_NODE, NODES, plan

MAX_UNFINISHED_JOBS = 16
# More than any job needs after the last kill, but less than the minute after which a supervisor polls:
# a missed request must be noticed.
LONGEST_SECONDS = 45
LOG_LINES = 40


class Run:
    def __init__(self, program, work, seed):
        self.tag = (processes.TAG, f"kills.{os.getpid()}")
        self.counts = collections.Counter()
        self.history = []
        self._seed = seed
        self._program = program
        self._began = time.monotonic()
        self._submissions = Submissions()
        self._killed = set()  # workers that did not end by themselves
        self.ledger = Ledger(f"{work}/ledger")
        options = ["--nodes", str(NODES), "--gpus-per-node", str(GPUS_PER_NODE), "--simulated",
                   "--cpus-per-node", str(CPUS_PER_NODE)]
        self.daemon = Daemon(program, work, dict(os.environ) | dict([self.tag]), options)

    def run(self, kills):
        self.daemon.start()
        expect(self.daemon.wait_until_ready(), "the daemon did not start")
        for number in range(kills):
            kill = plan(self._seed, number)
            self.history.append(f"  kill {number}: {kill}")
            self._run_until(kill)
            self._restart(kill)
            self._check()
            self.history[-1] += f" (at {time.monotonic() - self._began:.1f} s)"
        self._finish()

    # --- From one kill to the next.
    def _run_until(self, kill):
        """Brings about the kill's phase and kills the daemon."""
        self._ask(lambda: self.daemon.post(f"/v1/nodes/{self._node(kill.which)}/restore"))
        unfinished = [job["id"] for job in self._jobs() if not job["ended"]]
        first, last = kill.jobs[:-1], kill.jobs[-1]
        if len(unfinished) < MAX_UNFINISHED_JOBS:
            for job in first:
                self._submit(job)
        action = None
        if kill.phase == "submit":
            action = lambda: self._submit(last)
        elif kill.phase == "start":
            self._submit(last)
        elif kill.phase == "cancel" and unfinished:
            action = lambda: self._cancel(unfinished[kill.which % len(unfinished)])
        elif kill.phase == "preempt" and kill.which % 2:
            self._submit(last)
        elif kill.phase == "preempt" and unfinished:
            job = unfinished[kill.which % len(unfinished)]
            action = lambda: self._ask(lambda: self.daemon.post(f"/v1/jobs/{job}/preempt"))
        elif kill.phase == "end":
            self._wait_for_an_end()
        elif kill.phase == "node":
            node = self._node(kill.which // 4)
            action = lambda: self._ask(
                lambda: self.daemon.post(f"/v1/nodes/{node}/{kill.verb}"))
        elif kill.phase == "down":
            action = lambda: self._ask(lambda: self.daemon.post("/v1/shutdown"))
        thread = threading.Thread(target=action) if action else None
        if thread:
            thread.start()
        time.sleep(kill.delay)
        alive = self._kill(kill.phase == "down")
        if thread:
            thread.join()
        self._alive = alive

    def _restart(self, kill):
        time.sleep(kill.absence)
        for _ in range(kill.twice if kill.phase == "restart" else 0):
            self.daemon.start()
            time.sleep(kill.delay)
            self._kill(False)
        self.daemon.start()
        expect(self.daemon.wait_until_ready(), "the daemon could not be restarted")

    def _kill(self, may_have_ended):
        """Kills the daemon. Returns the workers that are alive at that moment."""
        self.daemon.freeze()
        alive = self.ledger.alive()
        status = self.daemon.kill()
        allowed = [-signal.SIGKILL] + ([0] if may_have_ended else [])
        expect(status in allowed, f"the daemon had ended by itself with {status}")
        self.counts["kills"] += status != 0
        self.counts["workers that were alive"] += len(alive)
        return alive

    def _check(self):
        self._killed |= check_found_again(self.daemon, self.ledger, self._alive)
        self._submissions.check(self._jobs())

    # --- Requests.
    def _ask(self, request):
        """Returns None if there was no response, or if the request does not fit the current
        state."""
        try:
            return request()
        except Unanswered:
            self.counts["unanswered"] += 1
        except Refused as refusal:
            expect(refusal.status in (404, 409), str(refusal))
        return None

    def _submit(self, job):
        self._submissions.jobs[job.name] = job
        if job.artifacts:
            os.mkdir(f"{self.ledger.path}/artifacts/{job.name}")
        # JSON is YAML.
        request = {"spec": json.dumps(job.spec(self.ledger.path, self.tag)), "source": job.name,
                   "overrides": [], "submit_dir": "/"}
        answer = self._ask(lambda: self.daemon.post("/v1/jobs", request))
        if answer:
            self._submissions.ids[job.name] = answer["id"]

    def _cancel(self, job):
        self._submissions.cancels.setdefault(job, False)
        answer = self._ask(lambda: self.daemon.post(f"/v1/jobs/{job}/cancel"))
        self._submissions.cancels[job] |= answer is not None

    def _jobs(self):
        return self.daemon.get("/v1/jobs?all=1")["jobs"]

    def _node(self, number):
        return f"local-{number % NODES}"

    def _wait_for_an_end(self):
        def ended():
            return sum(what == "ended" for _, _, what in self.ledger.notes())
        before, end = ended(), time.monotonic() + 1
        while ended() == before and time.monotonic() < end:
            time.sleep(0.001)

    # --- The end.
    def _finish(self):
        """Lets all jobs finish, then validates them."""
        deadline, left = 0, None
        while open_jobs := [job for job in self._jobs() if not job["ended"]]:
            for node in range(NODES):
                self._ask(lambda: self.daemon.post(f"/v1/nodes/{self._node(node)}/restore"))
            if len(open_jobs) != left:
                deadline, left = time.monotonic() + LONGEST_SECONDS, len(open_jobs)
            waiting = [f"{job['id']} {job['name']} {job['state']}" for job in open_jobs]
            expect(time.monotonic() < deadline, f"these jobs do not end: {waiting}")
            time.sleep(0.05)
        listed = self._jobs()
        self._submissions.check(listed)
        check_ledger(self.ledger)
        records = {}
        for each in listed:
            record = self.daemon.get(f"/v1/jobs/{each['id']}")
            records[each["id"]] = record | {"gpus": self._submissions.jobs[each["name"]].gpus}
            JobValidator(self.daemon, self._program, self.ledger,
                     self._submissions.jobs[each["name"]], record,
                     self._submissions.cancels.get(each["id"])).validate(
                         {worker for worker in self._killed if worker.job == each["id"]},
                         self.tag)
            self._count(record)
        check_usage(self.daemon.get("/v1/usage"), records, time.monotonic() - self._began)
        self.daemon.post("/v1/shutdown")
        expect(self.daemon.process.wait(20) == 0, "the daemon did not shut down cleanly")
        left = processes.wait_until_gone(self.tag[1], 5)
        expect(not left, f"processes {left} were left behind")

    def _count(self, record):
        self.counts["jobs"] += 1
        self.counts[record["state"]] += 1
        self.counts["attempts"] += record["attempts"]
        self.counts["preemptions"] += record["preemptions"]
        self.counts["failures"] += record["failures"]
        for event in record["events"]:
            if event["kind"] in ("not_started", "node_failed", "resizing"):
                self.counts[event["kind"]] += 1

    def stop(self):
        """Kills everything that still runs."""
        if self.daemon.process and self.daemon.process.poll() is None:
            self.daemon.kill()
        processes.kill_all(self.tag[1])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("renzan", help="the program")
    parser.add_argument("--kills", type=int, default=100, help="how many (100)")
    parser.add_argument("--seed", type=int, default=1, help="of the whole plan (1)")
    parser.add_argument("--keep", action="store_true", help="keep all files and print where they are")
    parser.add_argument("--verbose", action="store_true", help="print the whole plan")
    return parser.parse_args()


def report_failure(run, failure, options):
    with open(run.daemon.log, errors="replace") as file:
        log = "".join(file.readlines()[-LOG_LINES:])
    history = "\n".join(run.history if options.verbose else run.history[-3:])
    sys.exit(f"{history}\n--- the daemon's log\n{log}\nFAILED: seed {options.seed}: {failure}\n"
             f"to repeat: {sys.argv[0]} {options.renzan} --kills {options.kills} --seed "
             f"{options.seed} --keep --verbose")


def main():
    options = arguments()
    work = tempfile.mkdtemp(prefix="kills.")
    began = time.monotonic()
    run = Run(os.path.realpath(options.renzan), work, options.seed)
    try:
        run.run(options.kills)
    except Failure as failure:
        report_failure(run, failure, options)
    finally:
        run.stop()
        if options.keep:
            print(f"kept: {work}")
        else:
            shutil.rmtree(work)
    if options.verbose:
        print("\n".join(run.history))
    counts = ", ".join(f"{count} {what}" for what, count in run.counts.items())
    print(f"seed {options.seed}: {counts} in {time.monotonic() - began:.1f} s")
    # Check that the test covered what it is for.
    for what in ("workers that were alive", "unanswered", "preemptions", "failures", "cancelled"):
        if options.kills >= 100 and run.counts[what] == 0:
            sys.exit(f"FAILED: nothing was tested: 0 {what}")


if __name__ == "__main__":
    main()
