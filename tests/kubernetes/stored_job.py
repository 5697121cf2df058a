"""A job whose data and checkpoints lie in an object store, and which goes through the same day beside
the one of docs/kubernetes.md: two workers, who share nothing but the store. Where that cannot be
installed, it is left out. A part of day_test.py."""

import contextlib
import functools
import json
import re
import subprocess
import sys

from kube import wait_until
from world import expect, here

sys.path.insert(0, str(here.parent / "storage"))
from s3_client import REGION  # noqa: E402
from store import BUCKET, Store  # noqa: E402

NAME = "stored"  # also of its namespace
NAMESPACE = f"/api/v1/namespaces/{NAME}"
GANG_JOB = f"/apis/renzan.dev/v1alpha1/namespaces/{NAME}/gangjobs/{NAME}"
DATA, CHECKPOINTS = f"s3://{BUCKET}/clicks", f"s3://{BUCKET}/{NAME}"
OUTPUT = f"s3://{BUCKET}/{NAME}-output"
# A worker needs one, and urgent.yaml all of them, so that this job is stopped together with
# quickstart.
SEAT = "example.com/seat"
SEATS_PER_NODE = 2
STEPS_AT_THE_END = 500
CONFIG = """
seed: 5
data: {train: {path: DATA}}
model: {type: dlrm, embedding_dim: 8, bottom_mlp: [16], top_mlp: [16]}
training: {batch_size: 64, epochs: 1000000, max_steps: MAX_STEPS, log_every: 1000}
checkpoint: {every: 3s}
"""
JOB = f"""
name: {NAME}
replicas: 2
resources: {{cpu: 0.1, memory: 512MiB, other: {{{SEAT}: 1}}}}
checkpoint: {{on_stop: true, directory: "{CHECKPOINTS}"}}
upload_to: {OUTPUT}
grace: 60s
environment: {{AWS_ENDPOINT_URL: "STORE", AWS_REGION: {REGION}, RENZAN_DATA_CACHE: /tmp/cache}}
command: [renzan, pod-run, --, renzan, train, /config/train.yaml]
"""
# On the hosts' network, because the store listens on loopback.
POD = f"""
spec:
  hostNetwork: true
  containers:
    - name: main
      image: renzan:0.1.0
      envFrom: [{{secretRef: {{name: {NAME}}}}}]
      volumeMounts: [{{name: config, mountPath: /config}}]
  volumes: [{{name: config, configMap: {{name: {NAME}}}}}]
"""


# So that it does not take the processors from the others.
LIMITS = {"spec": {"limits": [{"type": "Container", "default": {"cpu": "250m"}}]}}


@contextlib.contextmanager
def store_if_installed():
    """Yields a Store, or None if it cannot be installed, after saying so."""
    try:
        store = Store()
    except SystemExit as end:
        if end.code != 77:
            raise
        print("the job with its checkpoints in a store is left out")
        yield None
        return
    with store:
        yield store


def config(data, max_steps):
    return CONFIG.replace("DATA", str(data)).replace("MAX_STEPS", str(max_steps))


def sha256_in(text):
    found = re.findall(r"model \S+ sha256 ([0-9a-f]{64})", text)
    expect(len(found) == 1, f"{len(found)} models in\n{text}")
    return found[0]


class StoredJob:
    def __init__(self, day, program, store):
        self.day, self.store, self._client = day, store, day.client
        self._program, self._folder = program, day.work / NAME
        self.stopped_at = 0  # a step
        self.undisturbed = ""  # the model's sha256
        self._folder.mkdir()

    def renzan(self, *words, **variables):
        done = subprocess.run([self._program, *map(str, words)], cwd=self._folder, text=True,
                              env=self.day.environment | variables, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        expect(done.returncode == 0, f"renzan {words}: {done.returncode}\n{done.stdout}")
        return done.stdout

    def submit(self):
        """Submits the job, with the same rows in the store and here."""
        environment = self.store.environment()
        for place in DATA, "data":
            self.renzan("data", "synth", "--format", "dataset", "--rows", 20000, "--seed", 5,
                        "--output", place, **environment)
        self._client.post("/api/v1/namespaces", {"metadata": {"name": NAME}})
        for path, item in (
                ("limitranges", LIMITS),
                ("secrets", {"stringData": {name: environment[name] for name in (
                    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}}),
                ("configmaps", {"data": {"train.yaml": config(DATA, 100_000_000)}})):
            self._client.post(f"{NAMESPACE}/{path}", {"metadata": {"name": NAME}, **item})
        wait_until(lambda: self._client.get(f"{NAMESPACE}/serviceaccounts")["items"], "an account")
        (self._folder / "job.yaml").write_text(JOB.replace("STORE", self.store.endpoint))
        (self._folder / "pod.yaml").write_text(POD)
        self.renzan("submit", "job.yaml", "--pod-template", "pod.yaml", "--namespace", NAME)

    def shorten(self):
        """Makes the stopped job end after some more steps. Trains that far here, on disk."""
        end = self.saved_step() + STEPS_AT_THE_END
        self._client.patch(f"{NAMESPACE}/configmaps/{NAME}", {
            "data": {"train.yaml": config(DATA, end)}})
        (self._folder / "train.yaml").write_text(config(self._folder / "data", end))
        self.undisturbed = sha256_in(self.renzan("train", "train.yaml", "--run-dir", "undisturbed"))

    def saved_step(self):
        """The step of the newest checkpoint in the store; 0 before the first."""
        keys = self.store.client().keys(BUCKET, f"{NAME}/")
        found = (re.fullmatch(rf"{NAME}/step-(\d+)/manifest\.json", key) for key in keys)
        return max((int(each[1]) for each in found if each), default=0)

    def status(self):
        return self._client.get(GANG_JOB).get("status", {})

    def nodes(self):
        """The nodes of a running attempt; otherwise empty."""
        status = self.status()
        return {share["node"] for share in status["placement"]} if (
            status.get("phase") == "running") else set()

    def log(self):
        """The log of worker 0 of the last attempt; empty before it has started."""
        return self.day.log(f"{NAME}-{self.status()['attempts'] - 1}-0", f"{NAMESPACE}/pods")

    def wait_for(self, what, condition):
        return self.day.wait(
            condition, f"the job in the store {what}; it is {json.dumps(self.status())}")

    def wait_until_it_resumes(self):
        """Returns the step from which the last attempt trains."""
        def first_step():
            return re.search(r"resuming from \S+ at step (\d+)\n", self.log())
        return int(self.wait_for("resumes", first_step)[1])

    def expect_output(self, last_attempt):
        """The store must have the output of a stopped attempt and of the last one."""
        client, place = self.store.client(), OUTPUT.removeprefix(f"s3://{BUCKET}/")
        there = set(client.keys(BUCKET, f"{place}/"))
        wanted = {f"{place}/attempt-{attempt}/worker-{rank}.log"
                  for attempt in (0, last_attempt) for rank in (0, 1)}
        wanted.add(f"{place}/run/metrics.jsonl")
        expect(wanted <= there, f"not in the store: {wanted - there}; there are {there}")
        log = client.get(BUCKET, f"{place}/attempt-{last_attempt}/worker-0.log").body.decode()
        expect(sha256_in(log) == self.undisturbed, f"another log:\n{log}")

    def wait_until_it_saves(self, after=0):
        self.wait_for(f"saves after step {after}", lambda: self.saved_step() > after)


def where_there_is_a_store(scenario):
    @functools.wraps(scenario)
    def play(day):
        if day.stored:
            scenario(day, day.stored)
    return play


@where_there_is_a_store
def a_job_in_the_store_is_submitted(day, stored):
    stored.submit()
    day.say("a job with its checkpoints in a store is submitted")


@where_there_is_a_store
def it_saves_in_the_store(day, stored):
    stored.wait_until_it_saves()
    day.say("it saves in the store")


@where_there_is_a_store
def it_was_stopped_too(day, stored):
    expect(stored.status()["phase"] == "pending", f"it was not stopped: {stored.status()}")
    expect(stored.status()["attempts"] == 1, f"it was started again: {stored.status()}")
    stored.stopped_at = stored.saved_step()


@where_there_is_a_store
def it_resumes_from_the_store(day, stored):
    step = stored.wait_until_it_resumes()
    expect(step == stored.stopped_at, f"it was stopped at step {stored.stopped_at}, not {step}")
    day.say("the job in the store has resumed where it was stopped")


@where_there_is_a_store
def it_has_left_the_drained_node(day, stored):
    """It must have moved to the node whose kubelet is about to hang."""
    drained = day.environment["NODE"]
    stored.wait_for(f"has left {drained}", lambda: stored.nodes() and drained not in stored.nodes())
    stored.wait_until_it_saves(after=stored.wait_until_it_resumes())
    day.say("the job in the store has moved to the other node")


@where_there_is_a_store
def its_kubelet_hangs(day, stored):
    stored.stopped_at = stored.saved_step()


@where_there_is_a_store
def it_has_left_the_hung_node(day, stored):
    """It must have moved to the node that is about to lose its power."""
    home = day.environment["NODE"]
    stored.wait_for(f"has moved to {home}", lambda: stored.nodes() == {home})
    step = stored.wait_until_it_resumes()
    expect(step > stored.stopped_at, f"its work after step {stored.stopped_at} was lost: {step}")
    stored.wait_until_it_saves(after=step)
    expect(stored.status()["facts"]["failures"] == 0, f"it has failed: {stored.status()}")


@where_there_is_a_store
def its_node_is_dark(day, stored):
    stored.shorten()


@where_there_is_a_store
def it_ends_with_what_is_in_the_store(day, stored):
    stored.wait_for("ends", lambda: stored.status()["phase"] in ("done", "failed"))
    status, log = stored.status(), stored.log()
    expect(status["phase"] == "done", f"it has failed: {status}\n{log}")
    expect(status["facts"]["failures"] == 0, f"it has failed on its way: {status}")
    expect("resuming from step-" in log, f"it has begun anew:\n{log}")
    expect(sha256_in(log) == stored.undisturbed,
           f"not the model {stored.undisturbed} of an undisturbed run:\n{log}")
    stored.expect_output(status["attempts"] - 1)
    day.say("the job in the store has the sha256 of an undisturbed run")
