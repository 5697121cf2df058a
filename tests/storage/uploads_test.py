#!/usr/bin/env python3
"""What goes into the store without being data or a checkpoint: `renzan upload`, and what jobs of
the cluster on this machine and workers in pods leave when they end.

    tests/storage/uploads_test.py build/release/bin/renzan
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from checks import expect, expect_equal, play
from training import HANG
from faulty_store import FaultyStore
from store import BUCKET, Store

LIMIT_S = 60  # only ends a test that hangs
WRONG = "not-the-secret"


class Machine:
    def __init__(self, program, folder, store):
        self.program, self.folder, self.store = program, pathlib.Path(folder), store

    def environment(self, **variables):
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("RENZAN_", "AWS_"))}
        return {**inherited, "RENZAN_STATE_DIR": f"{self.folder}/state", **variables}

    def __call__(self, *arguments, code=0, **variables):
        """What the program prints on stdout and stderr."""
        done = subprocess.run([self.program, *map(str, arguments)], cwd=self.folder,
                              env=self.environment(**variables), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=LIMIT_S, check=False)
        expect_equal(done.returncode, code, f"renzan {arguments} says\n{done.stdout}\nand ends with")
        return done.stdout

    def submit(self, **keys):
        path = self.folder / "job.yaml"
        path.write_text(json.dumps(keys))  # which is YAML, too
        return self("submit", path).split()[-1]

    def job(self, number):
        return json.loads(self("job", "show", number, "--json"))

    def end_of(self, number):
        """The job, once it has ended, and the last message about it."""
        end = time.monotonic() + LIMIT_S
        while self.job(number)["ended"] is None:
            expect(time.monotonic() < end, f"it does not end: {self('job', 'show', number)}")
            time.sleep(0.05)
        job = self.job(number)
        return job, job["events"][-1]["text"]


def objects(store, prefix):
    """The objects' contents, by the part of their keys after the prefix."""
    client = store.client()
    return {key.removeprefix(prefix): client.get(BUCKET, key).body
            for key in client.keys(BUCKET, prefix)}


def the_verb(machine):
    folder = machine.folder / "verb"
    (folder / "run/deep").mkdir(parents=True)
    (folder / "run/a").write_text("1")
    (folder / "run/deep/b +ü.bin").write_bytes(bytes(20_000_000))
    (folder / "run/link").symlink_to("a")
    store = machine.store.environment()
    said = machine("upload", folder / "run", f"s3://{BUCKET}/verb/", **store)
    expect("uploaded 2 files (20.0 MB)" in said and "left out 1" in said, said)
    found = objects(machine.store, "verb/")
    expect_equal(sorted(found), ["run/a", "run/deep/b +ü.bin"], "the objects")
    expect_equal(len(found["run/deep/b +ü.bin"]), 20_000_000, "bytes")
    (folder / "list").write_text(f"{folder}/run/./deep\n{folder}/run/a\n")
    machine("upload", "--files-from", folder / "list", f"s3://{BUCKET}/listed", **store)
    expect_equal(sorted(objects(machine.store, "listed/")), ["a", "deep/b +ü.bin"], "the objects")
    for code, words, what in ((64, "s3://BUCKET/PREFIX", [folder / "run", folder / "copy"]),
                              (64, "nothing to upload", [f"s3://{BUCKET}/x"]),
                              (66, "does not exist", [folder / "none", f"s3://{BUCKET}/x"]),
                              (66, "bucket", [folder / "run", "s3://no-such-bucket/x"])):
        said = machine("upload", *what, code=code, **store)
        expect(words in said and said.count("error:") == 1, said)
    said = machine("upload", folder / "run", f"s3://{BUCKET}/x", code=77,
                   **{**store, "AWS_SECRET_ACCESS_KEY": WRONG})
    expect(WRONG not in said, said)


def jobs_leave_their_output(machine):
    """Two attempts leave output, the second of which fails for good; with the job's credentials."""
    script = ("echo attempt $RENZAN_ATTEMPT; mkdir -p out; echo model > out/model;"
              " echo metrics > $RENZAN_RUN_DIR/metrics; exit 3")
    number = machine.submit(command=["sh", "-c", script], artifacts="out", retries=1,
                            retry_backoff="10ms", upload_to=f"s3://{BUCKET}/jobs/fails",
                            environment=machine.store.environment())
    job, last = machine.end_of(number)
    expect_equal(job["state"], "failed", last)
    expect("upload" not in last, last)
    found = objects(machine.store, "jobs/fails/")
    expect_equal({"artifacts/out/model": b"model\n", "run/metrics": b"metrics\n",
                  "attempt-0/worker-0.log": b"attempt 0\n",
                  "attempt-1/worker-0.log": b"attempt 1\n"},
                 {key: found.get(key) for key in ("artifacts/out/model", "run/metrics",
                                                  "attempt-0/worker-0.log",
                                                  "attempt-1/worker-0.log")}, "the objects")
    secret = machine.store.environment()["AWS_SECRET_ACCESS_KEY"].encode()
    expect(not any(secret in content for content in found.values()), "a secret is in the store")


def what_cannot_be_uploaded_stays(machine):
    """And the job says why; the daemon has no credentials of its own."""
    for environment, words in (({}, "credentials"),
                               ({**machine.store.environment(), "AWS_SECRET_ACCESS_KEY": WRONG},
                                "SignatureDoesNotMatch")):
        number = machine.submit(command=["sh", "-c", "echo metrics > $RENZAN_RUN_DIR/metrics"],
                                upload_to=f"s3://{BUCKET}/jobs/refused",
                                environment={**environment, "AWS_EC2_METADATA_DISABLED": "true"})
        job, last = machine.end_of(number)
        expect_equal(job["state"], "done", last)
        expect("could be uploaded to s3://" in last and words in last, last)
        expect(WRONG not in last, last)
        expect((pathlib.Path(job["run_dir"]) / "metrics").is_file(), "the run directory")
    expect_equal(objects(machine.store, "jobs/refused/"), {}, "the objects")


def a_daemon_that_is_killed_uploads_again(machine):
    """And a job whose output is being uploaded can be cancelled."""
    with FaultyStore(machine.store) as faulty:
        faulty.inject(HANG, "PUT", r"jobs/hangs")
        number = machine.submit(command=["true"], upload_to=f"s3://{BUCKET}/jobs/hangs",
                                environment=faulty.environment())
        faulty.wait_for_request("PUT", r"jobs/hangs")
        expect_equal(machine.job(number)["state"], "collecting", "the state")
        machine("cluster", "down")
        seen = faulty.count("PUT", r"jobs/hangs")
        machine("cluster", "up", "--nodes", 1, "--cpus-per-node", 4)
        faulty.wait_for_request("PUT", r"jobs/hangs", seen + 1)
        machine("job", "cancel", number)
        _, last = machine.end_of(number)
        expect("could be uploaded" in last, last)
        number = machine.submit(command=["echo", "words"], upload_to=f"s3://{BUCKET}/jobs/again",
                                environment=machine.store.environment())
        job, last = machine.end_of(number)
        expect_equal(job["state"], "done", last)
        expect_equal(objects(machine.store, "jobs/again/").get("attempt-0/worker-0.log"),
                     b"words\n", "the output")


def pods_leave_their_output(machine):
    """Worker 0 and another one. A command that succeeds fails if its output would be lost."""
    (machine.folder / "words").touch()
    for rank in (0, 1):
        folder = machine.folder / f"pod-{rank}"
        folder.mkdir()
        script = f"echo worker {rank}; echo $RANK > $RENZAN_RUN_DIR/rank; echo 1 > {folder}/out-{rank}"
        words = ("pod-run", "--wait-for-master", 0, "--", "sh", "-c", script)
        variables = {**machine.store.environment(), "RANK": str(rank), "WORLD_SIZE": "2",
                     "RENZAN_ATTEMPT": "1", "RENZAN_UPLOAD_TO": f"s3://{BUCKET}/pods",
                     "RENZAN_ARTIFACTS": str(folder),
                     "RENZAN_TERMINATION_LOG": str(machine.folder / "words")}
        machine(*words, **variables)
        machine(*words, code=77, **{**variables, "AWS_SECRET_ACCESS_KEY": WRONG})
        expect("SignatureDoesNotMatch" in (machine.folder / "words").read_text(), "the last words")
    found = objects(machine.store, "pods/")
    expect_equal({key: found[key] for key in sorted(found)},
                 {"artifacts/out-0": b"1\n", "artifacts/out-1": b"1\n",
                  "attempt-1/worker-0.log": b"worker 0\n", "attempt-1/worker-1.log": b"worker 1\n",
                  "run/rank": b"0\n"}, "the objects")


def main():
    with Store() as store, tempfile.TemporaryDirectory(prefix="uploads.") as folder:
        machine = Machine(os.path.abspath(sys.argv[1]), folder, store)
        play(the_verb, machine)
        play(pods_leave_their_output, machine)
        machine("cluster", "up", "--nodes", 1, "--cpus-per-node", 4)
        try:
            play(jobs_leave_their_output, machine)
            play(what_cannot_be_uploaded_stays, machine)
            play(a_daemon_that_is_killed_uploads_again, machine)
        finally:
            subprocess.run([machine.program, "cluster", "down", "--stop-jobs"],
                           env=machine.environment(), check=False, capture_output=True)


main()
