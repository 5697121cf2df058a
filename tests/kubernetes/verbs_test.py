#!/usr/bin/env python3
"""The verbs of `renzan` on a real control plane: a real node for output, fake nodes for gangs, and a
user who has rights in one namespace only. `verbs_test.py RENZAN`; exits with 77 where there is no
control plane, or none with a real node."""

import json
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from kube import wait_until  # noqa: E402
from world import CACHE, expect, testing  # noqa: E402

REAL_NODE = "127.0.0.1"
IMAGE = "localhost/busybox:1"
# Exit codes, as in docs/exit_codes.md.
USAGE, NO_INPUT, UNAVAILABLE, CANNOT_CREATE, FORBIDDEN, CONFIG = 64, 66, 69, 73, 77, 78


class Verbs:
    """Runs `renzan` as a user who has no daemon."""

    def __init__(self, program, home, kubeconfig):
        self.program, self.folder = program, pathlib.Path(home)
        self.folder.mkdir(exist_ok=True)
        kept = {key: value for key, value in os.environ.items() if not key.startswith("RENZAN_")}
        self.environment = kept | {"HOME": str(home), "KUBECONFIG": str(kubeconfig)}

    def __call__(self, *words, code=0):
        done = subprocess.run([self.program, *words], env=self.environment, cwd=self.folder,
                              capture_output=True, text=True, timeout=120)
        said = f"renzan {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
        expect(done.returncode == code, f"not {code}: {said}")
        if code:
            errors = [line for line in done.stderr.splitlines() if "error" in line]
            expect(len(errors) == 1 and len(done.stderr.splitlines()) == 1, f"not one line: {said}")
        return done.stdout + (done.stderr if code else "")

    def json(self, *words):
        return json.loads(self(*words, "--json"))

    def state(self, job):
        return self.json("job", "show", job)["state"]

    def message(self, job):
        shown = self.json("job", "show", job)
        return shown["message"] or shown["reason"] or ""

    def wait_for(self, job, state):
        wait_until(lambda: self.state(job) == state, f"{job} is {state}")

    def file(self, name, text):
        (self.folder / name).write_text(text)
        return name


def has(text, *parts):
    for part in parts:
        expect(part in text, f"'{part}' is not in\n{text}")


def output_and_exit_codes_come_back(renzan):
    file = renzan.file("hello.yaml", """
name: hello
resources: {cpu: 0.1, memory: 32MiB}
constraints: {required: {renzan.dev/pool: real}}
environment: {WHO: world}
command: [sh, -c, 'echo "hello $WHO"; sleep 1; echo bye']
""")
    has(renzan("submit", file, "--image", IMAGE, "--follow"), "hello world\nbye\n")
    has(renzan("job", "logs", "hello", "--tail", "1"), "bye")
    expect("hello" not in renzan("job", "logs", "hello", "--tail", "1"), "--tail is ignored")
    has(renzan("jobs"), "hello", "done", "exit 0")
    # By default, each job gets another name; the flags are those of this machine.
    words = ("submit", "--image", IMAGE, "--cpus", "0.1", "--set",
             "constraints.required={renzan.dev/pool: real}", "--wait", "--", "sh", "-c", "exit 3")
    for _ in range(2):
        done = subprocess.run([renzan.program, *words], env=renzan.environment, cwd=renzan.folder,
                              capture_output=True, text=True, timeout=120)
        expect(done.returncode == 3, f"{done}")
        expect(done.stdout.startswith("default/sh-"), done.stdout)
    has(renzan("submit", file, "--image", IMAGE, code=CANNOT_CREATE), "default/hello already")
    again = renzan("submit", "--again", "hello").strip()
    renzan.wait_for(again, "done")
    has(renzan("job", "logs", again), "hello world\nbye\n")


def output_is_followed_through_attempts(renzan):
    """From before the job has a pod; for any worker; or for one attempt alone."""
    file = renzan.file("twice.yaml", """
name: twice
replicas: 2
retries: 1
retry_backoff: 100ms
resources: {cpu: 0.1, memory: 32MiB}
constraints: {required: {renzan.dev/pool: real}}
command:
- sh
- -c
- 'for line in one two; do echo "worker $RANK, attempt $RENZAN_ATTEMPT: $line"; sleep 1; done;
  [ $RENZAN_ATTEMPT = 1 ] || [ $RANK = 1 ] || { sleep 5; exit 1; }'
""")
    renzan("submit", file, "--image", IMAGE)
    followers = {words: subprocess.Popen(
        [renzan.program, "job", "logs", "twice", "--follow", *words], env=renzan.environment,
        cwd=renzan.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for words in ((), ("--worker", "1"), ("--worker", "1", "--attempt", "0"))}
    try:
        said = {words: follower.communicate(timeout=120)[0]
                for words, follower in followers.items()}
    finally:
        for follower in followers.values():
            follower.kill()
    expect(renzan.state("twice") == "done", f"twice is {renzan.state('twice')}")

    def lines(worker, *attempts):
        return "".join(f"worker {worker}, attempt {attempt}: {line}\n"
                       for attempt in attempts for line in ("one", "two"))

    for (words, follower), expected in zip(followers.items(),
                                           (lines(0, 0, 1), lines(1, 0, 1), lines(1, 0))):
        expect((said[words], follower.returncode) == (expected, 0),
               f"logs --follow {words}: {follower.returncode}\n{said[words]}")


def gangs_wait_are_explained_and_stopped(renzan):
    pod = renzan.file("pod.yaml", """
metadata:
  annotations: {fake-nodes/run-seconds: "600", fake-nodes/stop-seconds: "0.2",
                fake-nodes/stop-code: "75"}
spec: {containers: [{name: main, image: trainer}]}
""")
    gang = renzan.file("gang.yaml", """
replicas: 2
resources: {gpu: 8}
checkpoint: {on_stop: true, on_request: true}
command: [train]
""")
    for name in "low", "next":
        has(renzan("submit", gang, "--name", name, "--pod-template", pod), f"default/{name}")
    renzan.wait_for("low", "running")
    number = str(renzan.json("job", "show", "low")["id"])
    has(renzan("jobs", "--state", "running"), number, "low", "default", "fake-")
    has(renzan("jobs", "--state", "pending"), "next", "needs")
    has(renzan("job", "show", number), "job " + number, "2 now, 2 wanted", "fake-000:1 fake-001:1",
        "Started")
    has(renzan("job", "explain", number), "it has been running since")
    has(renzan("job", "explain", "next"), "job next (pending)", "8 GPUs", "would start",
        "position in the pending queue: 1")
    next_number = str(renzan.json("job", "show", "next")["id"])
    before, after = renzan("cluster", "what-if", "--add-nodes", "gpu=2").splitlines()
    has(after, next_number, "sooner")
    has(renzan("cluster", "what-if", "--add-nodes", "gpu=2", "--submit", gang), gang)
    has(renzan("cluster", "challenge", gang, "--plan-only"), "jobs that stop and resume later",
        f"1: [{number}]")
    has(renzan("nodes"), "fake-000", "gpu", "8/8", REAL_NODE)
    has(renzan("cluster", "status"), "server  https://127.0.0.1", "leader  replica-0", "1 pending",
        "1 running", "default")
    has(renzan("cluster", "usage"), "default", "of GangJobs that exist")

    has(renzan("job", "checkpoint", number), "running")
    has(renzan("job", "preempt", number), f"job {number}: asked to preempt")
    wait_until(lambda: renzan.json("job", "show", number)["preemptions"] == 1, "low is preempted")
    renzan("job", "cancel", number)
    renzan.wait_for(number, "cancelled")
    has(renzan("job", "cancel", number, code=USAGE), "ended already (cancelled)")
    renzan.wait_for("next", "running")
    has(renzan("nodes", "drain", "fake-000"), "fake-000: draining")
    renzan.wait_for("next", "pending")
    has(renzan("nodes"), "cordoned")
    has(renzan("nodes", "uncordon", "fake-000"), "fake-000: ready")
    renzan.wait_for("next", "running")
    renzan("job", "cancel", "next")
    renzan.wait_for("next", "cancelled")


def a_manifest_is_sent_as_it_is(renzan):
    file = renzan.file("manifest.yaml", """
apiVersion: renzan.dev/v1alpha1
kind: GangJob
metadata: {name: whole}
spec:
  template:
    metadata: {annotations: {fake-nodes/run-seconds: "0.2"}}
    spec: {containers: [{name: main, image: trainer, resources: {limits: {nvidia.com/gpu: 1}}}]}
""")
    renzan("submit", file, "--wait")
    has(renzan("jobs"), "whole")
    has(renzan("submit", file, "--priority", "3", code=USAGE), "priority=3")


def who_has_one_namespace_sees_no_other(renzan, ann):
    renzan("submit", "gang.yaml", "--name", "theirs", "--pod-template", "pod.yaml")
    renzan.wait_for("theirs", "running")
    theirs = str(renzan.json("job", "show", "theirs")["id"])
    for name in "gang.yaml", "pod.yaml", "hello.yaml":
        ann.file(name, (renzan.folder / name).read_text())
    own = ("--namespace", "ann")
    has(ann("submit", "hello.yaml", "--image", IMAGE, "--follow", *own), "hello world\nbye\n")
    has(ann("job", "show", "hello", *own), "Started")
    has(ann("submit", "gang.yaml", "--name", "mine", "--pod-template", "pod.yaml", *own),
        "ann/mine")
    message = wait_until(lambda: ann.json("job", "explain", "ann/mine").get("why"), "a reason")
    has(ann("job", "explain", "ann/mine"), message, "only what the controller says")
    table = ann("jobs", *own)
    has(table, "mine")
    expect("theirs" not in table, table)
    has(ann("job", "show", theirs, *own, code=NO_INPUT), f"there is no job {theirs}")
    for words in (("job", "show", "default/theirs"), ("job", "logs", "default/theirs"),
                  ("job", "explain", "default/theirs"), ("job", "cancel", "default/theirs"),
                  ("job", "preempt", "default/theirs"), ("jobs",), ("nodes",),
                  ("nodes", "cordon", "fake-000"), ("cluster", "status"),
                  ("cluster", "what-if", "--add-nodes", "gpu=1"),
                  ("submit", "gang.yaml", "--image", "x")):
        has(ann(*words, code=FORBIDDEN), "Forbidden")
    for words in (("exec", "theirs-0-0", "--", "true"), ("port-forward", "theirs-0-0", "9090"),
                  ("logs", "theirs-0-0"), ("get", "pods"), ("get", "gangjobs"),
                  ("get", "events"),
                  # Where the leader serves the cycles that it has recorded.
                  ("-n", "renzan-system", "port-forward", "deployment/renzan-controller", "9090")):
        done = subprocess.run([f"{CACHE}/bin/kubectl", "-n", "default", *words], text=True,
                              env=ann.environment, capture_output=True, timeout=60)
        has(done.stderr, "Forbidden")
    expect(renzan.state("theirs") == "running", "another user has stopped it")
    ann("job", "cancel", "ann/mine")
    renzan("job", "cancel", "theirs")


def what_a_real_node_cannot_run_is_named(renzan):
    """The job itself names it, because that is where its user looks first."""
    file = renzan.file("no-image.yaml", """
name: no-image
resources: {cpu: 0.1, memory: 32MiB}
constraints: {required: {renzan.dev/pool: real}}
command: [sh]
""")
    renzan("submit", file, "--image", "localhost/none:7")
    image = wait_until(lambda: "localhost/none:7" in renzan.message("no-image")
                       and renzan.message("no-image"), "it says which image is missing")
    has(image, "ImagePull")
    renzan("job", "cancel", "no-image")
    pod = renzan.file("no-claim.yaml", """
spec:
  volumes: [{name: data, persistentVolumeClaim: {claimName: clicks}}]
  containers: [{name: main}]
""")
    renzan("submit", file, "--name", "no-claim", "--image", IMAGE, "--pod-template", pod)
    wait_until(lambda: "there is no PersistentVolumeClaim clicks" in renzan.message("no-claim"),
               "it says which claim is missing")
    renzan("job", "cancel", "no-claim")


def who_views_the_cluster_changes_nothing(renzan, bob):
    """With the role renzan-cluster-view on the whole cluster."""
    renzan("submit", "gang.yaml", "--name", "seen", "--pod-template", "pod.yaml")
    renzan.wait_for("seen", "running")
    number = str(renzan.json("job", "show", "seen")["id"])
    bob.file("gang.yaml", (renzan.folder / "gang.yaml").read_text())
    has(bob("jobs"), "seen", "running")
    has(bob("nodes"), "fake-000", REAL_NODE)
    has(bob("job", "explain", number), "it has been running since")
    has(bob("cluster", "status"), "1 running")
    has(bob("cluster", "what-if", "--add-nodes", "gpu=2", "--submit", "gang.yaml"), "gang.yaml")
    for words in (("job", "cancel", number), ("job", "preempt", number),
                  ("job", "logs", number), ("nodes", "cordon", "fake-000"),
                  ("nodes", "drain", "fake-000"), ("submit", "gang.yaml", "--image", "x")):
        has(bob(*words, code=FORBIDDEN), "Forbidden")
    expect(renzan.state("seen") == "running", "somebody who only looks has stopped it")
    renzan("job", "cancel", "seen")


def mistakes_are_named(renzan):
    has(renzan("submit", "gang.yaml", "--image", "x", "--namespace", "none", code=NO_INPUT),
        'namespaces "none" not found')
    has(renzan("submit", "gang.yaml", code=CONFIG), "--image")
    has(renzan("job", "show", "none", code=NO_INPUT), "none")
    has(renzan("job", "show", "4711", code=NO_INPUT), "no job 4711")
    has(renzan("jobs", "--cluster", "none", code=CONFIG), "--cluster", "'none'")
    has(renzan("jobs", "--cluster", "local", code=UNAVAILABLE), "no daemon")
    has(renzan("nodes", "fail", "fake-000", code=USAGE), "simulates a failure")
    has(renzan("cluster", "up", "--cluster", "kubernetes", code=USAGE), "--cluster local")
    has(renzan("cluster", "down", "--cluster", "kubernetes", code=USAGE), "--cluster local")
    config = json.loads(pathlib.Path(renzan.environment["KUBECONFIG"]).read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    nowhere = Verbs(renzan.program, renzan.folder,
                    renzan.folder / renzan.file("nowhere", json.dumps(config)))
    has(nowhere("jobs", code=UNAVAILABLE), "cannot reach the API server")


def main():
    with testing(up=["--nodes=1", "--user=ann", "--user=bob"], nodes=["--count=2"]) as world:
        world.kubectl("label", "nodes", REAL_NODE, "renzan.dev/pool=real")
        world.kubectl("create", "namespace", "ann")
        world.kubectl("create", "rolebinding", "ann", "-n", "ann", "--clusterrole=edit",
                      "--user=ann")
        world.kubectl("create", "clusterrolebinding", "bob", "--clusterrole=renzan-cluster-view",
                      "--user=bob")
        renzan = Verbs(world.program, f"{world.run}/admin", f"{world.run}/kubeconfig")
        ann = Verbs(world.program, f"{world.run}/ann", f"{world.run}/kubeconfig-ann")
        bob = Verbs(world.program, f"{world.run}/bob", f"{world.run}/kubeconfig-bob")
        world.start_replica()
        world.play(output_and_exit_codes_come_back, renzan)
        world.play(output_is_followed_through_attempts, renzan)
        world.play(gangs_wait_are_explained_and_stopped, renzan)
        world.play(a_manifest_is_sent_as_it_is, renzan)
        world.play(who_has_one_namespace_sees_no_other, renzan, ann)
        world.play(who_views_the_cluster_changes_nothing, renzan, bob)
        world.play(what_a_real_node_cannot_run_is_named, renzan)
        world.play(mistakes_are_named, renzan)


if __name__ == "__main__":
    main()
