#!/usr/bin/env python3
"""A job of the cluster on this machine whose checkpoints lie in the store: it loses one node without
a word, leaves another that is drained, and each time goes on where it was, with nothing but the
store: every attempt has a run directory of its own. Its model is that of an undisturbed run.

    tests/storage/jobs_test.py build/release/bin/renzan
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from checks import expect, expect_equal, play
from store import Store

LIMIT_S = 240  # only ends a test that hangs
CONFIG = """
data: {train: {path: DATA}}
model: {type: dlrm, embedding_dim: 16}
training: {batch_size: 256, epochs: EPOCHS, log_every: 50}
checkpoint: {every: "0", every_steps: 100}
"""


class Machine:
    def __init__(self, program, folder, environment):
        self.program, self.folder = program, folder
        self.environment = {**{k: v for k, v in os.environ.items() if not k.startswith("RENZAN_")},
                            **environment, "RENZAN_STATE_DIR": f"{folder}/state"}

    def __call__(self, *arguments, check=True):
        done = subprocess.run([self.program, *map(str, arguments)], cwd=self.folder,
                              env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        expect(done.returncode == 0 or not check,
               f"renzan {arguments} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def job(self, number):
        return json.loads(self("job", "show", number, "--json"))

    def logs(self, number):
        attempts = self.job(number)["attempts"]
        return [self("job", "logs", number, "--attempt", attempt, check=False)
                for attempt in range(attempts)]

    def wait_for(self, what, condition, number):
        end = time.monotonic() + LIMIT_S
        while not condition():
            if time.monotonic() > end:
                expect(False, f"waited in vain: {what}\n{self('job', 'show', number)}\n"
                       + "\n---\n".join(self.logs(number)))
            time.sleep(0.05)


def write_config(folder, name, epochs):
    path = f"{folder}/{name}.yaml"
    with open(path, "w") as file:
        file.write(CONFIG.replace("DATA", f"{folder}/data").replace("EPOCHS", str(epochs)))
    return path


def sha256_in(text):
    found = re.search(r"model \S+ sha256 ([0-9a-f]{64})", text)
    expect(found is not None, f"no model in\n{text}")
    return found[1]


def a_job_moves_with_nothing_but_the_store(machine, store):
    folder = machine.folder
    machine("data", "synth", "--format", "dataset", "--rows", 20000, "--seed", 5, "--output", "data")
    config = write_config(folder, "job", 40)
    wanted = sha256_in(machine("train", config, "--run-dir", "undisturbed"))
    machine("cluster", "up", "--nodes", 2, "--gpus-per-node", 1, "--cpus-per-node", 4)
    try:
        job = f"""
name: moves
resources: {{cpu: 1, gpu: 1}}
checkpoint: {{on_stop: true, directory: "s3://test/jobs/moves"}}
retries: 3
retry_backoff: 100ms
environment: {json.dumps(store.environment())}
command: [sh, -c, 'exec "$0" train {config} --run-dir "$(mktemp -d {folder}/machine.XXXX)"', {machine.program}]
"""
        with open(f"{folder}/moves.yaml", "w") as file:
            file.write(job)
        number = machine("submit", "moves.yaml").split()[-1]
        expect_equal(machine.job(number)["checkpoint_dir"], "s3://test/jobs/moves", "where it saves")

        def saved(attempt):
            logs = machine.logs(number)
            return len(logs) > attempt and "checkpoint step-" in logs[attempt]

        def node():
            nodes = machine.job(number)["nodes"]
            return nodes[0] if nodes else None

        machine.wait_for("a checkpoint in the store", lambda: saved(0), number)
        first = node()
        expect(first, "the job ended too early")
        machine("nodes", "fail", first)
        machine.wait_for("another checkpoint, elsewhere", lambda: saved(1), number)
        second = node()
        expect(first != second, f"it is still on {first}")
        machine("nodes", "restore", first)
        machine("nodes", "drain", second)
        machine.wait_for("its end", lambda: machine.job(number)["state"] in ("done", "failed"), number)
        logs = machine.logs(number)
        expect_equal(machine.job(number)["state"], "done", "\n---\n".join(logs))
        expect_equal(sha256_in(logs[-1]), wanted, "the model")
        for log in logs[1:]:
            expect("resuming from step-" in log, f"an attempt began anew:\n{log}")
    finally:
        machine("cluster", "down", "--stop-jobs", check=False)


def main():
    program = os.path.abspath(sys.argv[1])
    with Store() as store, tempfile.TemporaryDirectory(prefix="jobs.") as folder:
        machine = Machine(program, folder, store.environment())
        play(a_job_moves_with_nothing_but_the_store, machine, store)


main()
