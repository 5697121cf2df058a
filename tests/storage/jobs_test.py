#!/usr/bin/env python3
"""A day of the cluster on this machine, whose jobs have their data and their checkpoints in the
store, and nothing else in common between two attempts: each worker of each has a run directory and
a cache of its own. A node is drained, another lost without a word, the daemon killed, and all jobs
stop for one of a higher priority. Their models are those of undisturbed runs.

    tests/storage/jobs_test.py build/release/bin/renzan
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from checks import expect, expect_equal, play
from store import BUCKET, Store
from training import is_alive

LIMIT_S = 240  # only ends a test that hangs
FOREVER = 100_000_000
STEPS_AT_THE_END = 300
DATA = f"s3://{BUCKET}/data"
CLUSTER = """
pools: {own: {nodes: 4, resources: {cpu: 4, memory: 4GiB, gpu: 1}}}
simulated: true
scheduling: {min_between_resizes: 1s}
"""
CONFIG = """
seed: SEED
data: {train: {path: DATA}}
model: {type: dlrm, embedding_dim: 8, bottom_mlp: [16], top_mlp: [16]}
training: {batch_size: 64, epochs: 1000000, max_steps: STEPS, log_every: 1000}
checkpoint: {every: 1s}
"""


class Machine:
    def __init__(self, program, folder, store):
        self.program, self.folder, self.store = program, folder, store
        self.environment = {**{k: v for k, v in os.environ.items() if not k.startswith("RENZAN_")},
                            **store.environment(), "RENZAN_STATE_DIR": f"{folder}/state",
                            "RENZAN_DATA_CACHE": f"{folder}/data"}
        self.write("cluster.yaml", CLUSTER)
        self("data", "synth", "--format", "dataset", "--rows", 20000, "--seed", 5, "--output",
             DATA)

    def __call__(self, *arguments, check=True):
        done = subprocess.run([self.program, *map(str, arguments)], cwd=self.folder,
                              env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        expect(done.returncode == 0 or not check,
               f"renzan {arguments} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def write(self, name, text):
        with open(f"{self.folder}/{name}", "w") as file:
            file.write(text)

    def up(self):
        self("cluster", "up", "cluster.yaml")

    def down(self):
        """Ends the daemon and all jobs, even if there is no daemon at the moment."""
        self("cluster", "up", "cluster.yaml", check=False)
        self("cluster", "down", "--stop-jobs", check=False)

    def kill_daemon(self):
        pid = json.loads(self("cluster", "status", "--json"))["pid"]
        os.kill(pid, signal.SIGKILL)
        while is_alive(pid):
            time.sleep(0.01)


class Job:
    """A job that trains until it is shortened, unless it has a number of `steps`."""

    def __init__(self, machine, name, seed, replicas, priority, steps=FOREVER, then=""):
        self.machine, self.name, self._seed = machine, name, seed
        self.place = f"jobs/{name}"
        self.shorten(steps)
        own = f'own=$(mktemp -d {machine.folder}/run.XXXXXX); export RENZAN_DATA_CACHE="$own.data"'
        train = f'"$0" train {name}.yaml --run-dir "$own"'
        machine.write(f"{name}.job", json.dumps({  # which is YAML, too
            "name": name, "priority": priority, "replicas": replicas,
            "resources": {"cpu": 1, "gpu": 1}, "environment": machine.store.environment(),
            "checkpoint": {"on_stop": True, "directory": f"s3://{BUCKET}/{self.place}"},
            "command": ["sh", "-c", f"{own}; {train} && {then}" if then else f"{own}; exec {train}",
                        machine.program]}))
        self.number = machine("submit", f"{name}.job").split()[-1]

    def shorten(self, steps):
        """Sets where the job ends. To be called before an attempt starts."""
        self._steps = steps
        self.machine.write(f"{self.name}.yaml", CONFIG.replace("SEED", str(self._seed))
                           .replace("DATA", DATA)
                           .replace("STEPS", str(steps)))

    def show(self):
        return json.loads(self.machine("job", "show", self.number, "--json"))

    def state(self):
        return self.show()["state"]

    def nodes(self):
        """The nodes of a running attempt; otherwise empty."""
        job = self.show()
        return set(job["nodes"]) if job["state"] == "running" else set()

    def log(self):
        """The log of worker 0 of the last attempt."""
        return self.machine("job", "logs", self.number, check=False)

    def saved_step(self):
        """The step of the newest checkpoint in the store; 0 before the first."""
        keys = self.machine.store.client().keys(BUCKET, f"{self.place}/")
        found = (re.fullmatch(rf"{self.place}/step-(\d+)/manifest\.json", key) for key in keys)
        return max((int(each[1]) for each in found if each), default=0)

    def wait_for(self, what, condition):
        """Waits until the condition is true, and returns its value."""
        end = time.monotonic() + LIMIT_S
        while not (found := condition()):
            if time.monotonic() > end:
                shown = self.machine("job", "show", self.number, check=False)
                expect(False, f"{self.name} does not {what}\n{shown}\n{self.log()}")
            time.sleep(0.05)
        return found

    def wait_until_it_saves(self):
        step = self.saved_step()
        self.wait_for(f"save after step {step}", lambda: self.saved_step() > step)

    def wait_until_it_resumes(self):
        """Returns the step from which its last attempt has trained."""
        def first_step():
            return self.state() in ("running", "done") and re.search(
                r"resuming from \S+ at step (\d+)\n", self.log())
        return int(self.wait_for("resume", first_step)[1])

    def expect_trained(self):
        """Waits for the job's end; its model must be that of an undisturbed run."""
        self.wait_for("end", lambda: self.state() in ("done", "failed"))
        log, job = self.log(), self.show()
        expect_equal(job["state"], "done", log)
        expect_equal(job["failures"], 0, f"failures of {self.name}")
        expect_equal(sha256_in(log), sha256_in(self.machine(
            "train", f"{self.name}.yaml", "--run-dir", f"undisturbed-{self.name}")), self.name)


def sha256_in(text):
    found = re.findall(r"model \S+ sha256 ([0-9a-f]{64})", text)
    expect_equal(len(found), 1, f"models in\n{text}")
    return found[0]


def all_save_in_the_store(patient, steady):
    patient.wait_for("have two workers", lambda: len(patient.nodes()) == 2)
    for job in patient, steady:
        expect_equal(job.show()["checkpoint_dir"], f"s3://{BUCKET}/{job.place}", "where it saves")
        job.wait_until_it_saves()


def the_daemon_is_killed(machine, patient, steady):
    """The jobs continue, and the next daemon knows them."""
    machine.kill_daemon()
    for job in patient, steady:
        job.wait_until_it_saves()
    machine.up()
    for job in patient, steady:
        job.wait_until_it_saves()
        expect_equal(job.show()["attempts"], 1, f"attempts of {job.name}")


def a_node_is_drained(machine, patient, steady):
    """It has one of two workers of a job that cannot shrink: the other job makes room."""
    node = min(steady.nodes())
    machine("nodes", "drain", node)
    steady.wait_for(f"leave {node}", lambda: steady.nodes() and node not in steady.nodes())
    patient.wait_for("be smaller", lambda: len(patient.nodes()) == 1)
    for job in steady, patient:
        job.wait_until_it_resumes()
        job.wait_until_it_saves()
    machine("nodes", "restore", node)


def a_node_and_the_daemon_are_lost(machine, patient):
    patient.wait_for("grow again", lambda: len(patient.nodes()) == 2)
    patient.wait_until_it_resumes()
    patient.wait_until_it_saves()
    node, attempts = min(patient.nodes()), patient.show()["attempts"]
    machine("nodes", "fail", node)
    machine.kill_daemon()
    saved = patient.saved_step()
    machine.up()
    patient.wait_for(f"start without {node}", lambda: patient.show()["attempts"] > attempts
                     and patient.nodes() and node not in patient.nodes())
    expect(patient.wait_until_it_resumes() >= saved, f"it has lost what it had saved at {saved}")
    machine("nodes", "restore", node)


def all_stop_for_an_urgent_one(machine, patient, steady):
    over = f"{machine.folder}/over"
    urgent = Job(machine, "urgent", 3, "4", priority=10, steps=500,
                 then=f'until [ -e "{over}" ]; do sleep 0.05; done')
    urgent.wait_for("run", urgent.nodes)
    stopped = {}
    for job in patient, steady:
        expect_equal(job.state(), "pending", job.name)
        stopped[job] = job.saved_step()
        job.shorten(stopped[job] + STEPS_AT_THE_END)
    urgent.wait_for("train", lambda: "model" in urgent.log())
    open(over, "w").close()
    for job, step in stopped.items():
        expect_equal(job.wait_until_it_resumes(), step, f"the step at which {job.name} goes on")
    urgent.expect_trained()


def a_day(machine):
    machine.up()
    try:
        patient = Job(machine, "patient", 1, "1..2", priority=0)
        steady = Job(machine, "steady", 2, "2", priority=1)
        play(all_save_in_the_store, patient, steady)
        play(the_daemon_is_killed, machine, patient, steady)
        play(a_node_is_drained, machine, patient, steady)
        play(a_node_and_the_daemon_are_lost, machine, patient)
        play(all_stop_for_an_urgent_one, machine, patient, steady)
        for job in patient, steady:
            play(job.expect_trained)
    finally:
        machine.down()


def main():
    program = os.path.abspath(sys.argv[1])
    with Store() as store, tempfile.TemporaryDirectory(prefix="jobs.") as folder:
        a_day(Machine(program, folder, store))


if __name__ == "__main__":
    main()
