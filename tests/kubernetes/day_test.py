#!/usr/bin/env python3
"""A day of a cluster of two real nodes, and the commands of docs/kubernetes.md, in its order: the
controller is installed, a model is trained in pods, and meanwhile it is asked to save, preempted by
a gang of a higher priority, announced the end of a node, out of reach on one whose kubelet hangs,
cut off from one that loses its power, and resized. It ends with the same bits as an undisturbed
run. So does another one beside it, whose data and checkpoints lie in an object store, where one can
be installed (tests/storage/store.py).

  day_test.py RENZAN                      in an image of the program and what it loads
  day_test.py RENZAN --image FILE.tar     in the image that scripts/image has made

Exits with 77 where this machine cannot run real nodes.
"""

import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here))
from kube import JSON_PATCH, ApiError, Client, wait_until  # noqa: E402
from page import Page  # noqa: E402
import stored_job  # noqa: E402
from stored_job import (  # noqa: E402
    a_job_in_the_store_is_submitted, it_ends_with_what_is_in_the_store, it_has_left_the_drained_node,
    it_resumes_from_the_store, it_saves_in_the_store, it_was_stopped_too, its_node_is_dark)
from world import CACHE, GANG_JOBS, PODS, control_plane, expect  # noqa: E402

RENZAN = os.path.abspath(sys.argv[1])
# What the program loads when a verb of the job system, as of a pod, or a path in a store is used.
LIBRARIES = [pathlib.Path(RENZAN).parent.parent / "lib" / name
             for name in ("librenzan_jobs.so", "librenzan_s3.so")]
ROOT = here.parent.parent
NODES = ["127.0.0.1", "127.0.0.2"]
DEVICES = {"nvidia.com/gpu": 2, stored_job.SEAT: stored_job.SEATS_PER_NODE}  # of a node
SPOT_TAINT = "aws-node-termination-handler/spot-itn=:NoSchedule"
STEPS_PER_EPOCH = 20000 // 256
PATIENCE_S = 180  # only ends a test that hangs

# The differences between this cluster and the page's: [(file, [(its text, ours)])]. The workload is
# small, and devices are pretended: GPUs, one per worker.
WORKER = [("requests: {cpu: 2, memory: 2Gi}", "requests: {cpu: 200m, memory: 128Mi}"),
          ("limits: {memory: 2Gi}", "limits: {memory: 1Gi, nvidia.com/gpu: 1}")]
DIFFERENCES = {
    "deploy/kubernetes/examples/queue.yaml": [],
    "deploy/kubernetes/examples/sleep.yaml": [("image: busybox", "image: localhost/busybox:1"),
                                              ("sleep 60", "sleep 1")],
    "deploy/kubernetes/examples/urgent.yaml": [
        ("image: busybox", "image: localhost/busybox:1"),
        ("limits: {nvidia.com/gpu: 1}", f"limits: {{nvidia.com/gpu: 1, {stored_job.SEAT}: 1}}")],
    "deploy/kubernetes/examples/data.yaml": [
        ("requests: {cpu: 2, memory: 1Gi}", "requests: {cpu: 200m, memory: 128Mi}"),
        ("--rows 1000000 ", "--rows 20000 "), ("--first-row 1000000 ", "--first-row 20000 "),
        ("--rows 100000 ", "--rows 2000 "), ("hash:100000 ", "hash:2000 ")],
    "deploy/kubernetes/examples/train.yaml": WORKER,
    # Until its user shortens it, at the end of the day.
    "examples/quickstart.yaml": [("epochs: 1\n", "epochs: 10000\n"),
                                 ("decay_steps: 3907", "decay_steps: 1000000")],
}


def make_checkout(folder, probe_port, api_port):
    """Copies what the page needs of this repository, with the differences."""
    shutil.copytree(ROOT / "deploy/kubernetes", folder / "deploy/kubernetes")
    shutil.copytree(ROOT / "examples", folder / "examples")
    for file, differences in DIFFERENCES.items():
        text = (folder / file).read_text()
        for old, new in differences:
            expect(old in text, f"{file} lacks '{old}'")
            text = text.replace(old, new)
        (folder / file).write_text(text)
    # Pods reach the API server only on the hosts' network, which all nodes share, and there are no
    # nodes but those of the pool.
    deployment = folder / "deploy/kubernetes/controller/deployment.yaml"
    text = deployment.read_text().replace("--listen=0.0.0.0:8080",
                                          f"--listen=$(HOST_IP):{probe_port}")
    text = text.replace("--metrics=0.0.0.0:8082", "--metrics=$(HOST_IP):0")
    deployment.write_text(re.sub("--debug-port=[0-9]+", "--debug-port=0", text))
    container = "/spec/template/spec/containers/0"
    kustomization = folder / "deploy/kubernetes/1.20/controller/kustomization.yaml"
    (kustomization.parent / "patch.json").write_text(json.dumps([
        {"op": "add", "path": "/spec/template/spec/hostNetwork", "value": True},
        {"op": "add", "path": "/spec/template/spec/tolerations",
         "value": [{"key": "renzan.dev/dedicated", "operator": "Exists"}]},
        {"op": "replace", "path": f"{container}/ports/0/containerPort", "value": probe_port},
        *({"op": "add", "path": f"{container}/env/-", "value": variable} for variable in (
            {"name": "HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
            {"name": "KUBERNETES_SERVICE_HOST", "value": "127.0.0.1"},
            {"name": "KUBERNETES_SERVICE_PORT", "value": str(api_port)}))]))
    kustomization.write_text(kustomization.read_text() + """  - target:
      group: apps
      version: v1
      kind: Deployment
      name: renzan-controller
      namespace: renzan-system
    path: patch.json
""")


def free_port():
    """A port that is free on both nodes, below those that the kernel gives to outgoing connections:
    one of those could block a controller that restarts."""
    while True:
        port = random.randrange(20000, 32000)
        try:
            for node in NODES:
                with socket.socket() as probe:
                    probe.bind((node, port))
            return port
        except OSError:
            pass  # it is taken


class Day:
    def __init__(self, work, store):
        self.work, self.run = work, work / "run"
        self.client = Client(f"{self.run}/kubeconfig")
        self.volume = work / "volume"
        self.checkout = work / "checkout"
        # So that `kubectl` is this one, and nothing of the user's own is read.
        self.environment = {"PATH": f"{CACHE}/bin:/usr/bin:/bin", "HOME": str(work),
                            "KUBECONFIG": f"{self.run}/kubeconfig", "NODES": " ".join(NODES),
                            "NODE": NODES[0]}
        config = json.loads((self.run / "kubeconfig").read_text())
        port = config["clusters"][0]["cluster"]["server"].rsplit(":", 1)[1]
        make_checkout(self.checkout, free_port(), int(port))
        self.page = Page(ROOT / "docs/kubernetes.md", self.checkout, self.environment)
        self.stopped_at = 0  # the step of the run when it was preempted
        self.begun = time.monotonic()
        self.stored = stored_job.StoredJob(self, RENZAN, store) if store else None

    def say(self, what):
        print(f"{time.monotonic() - self.begun:6.1f} s  {what}", flush=True)

    def kubectl(self, *arguments):
        done = subprocess.run(["kubectl", *arguments], env=self.environment, capture_output=True,
                              text=True)
        expect(done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    # --- The cluster.

    def give_devices(self, node):
        """Again after its kubelet has restarted, which removes capacities that it does not know."""
        def has_devices():
            there = self.client.get(f"/api/v1/nodes/{node}")["status"]["allocatable"]
            return all(there.get(name) == str(count) for name, count in DEVICES.items())
        def give():
            if not has_devices():
                self.client.patch(f"/api/v1/nodes/{node}/status", [
                    {"op": "add", "path": f"/status/capacity/{name.replace('/', '~1')}",
                     "value": str(count)} for name, count in DEVICES.items()], JSON_PATCH)
                return False
            return True
        self.wait(give, f"{node} has its devices")

    def give_volume(self):
        self.volume.mkdir()
        self.volume.chmod(0o777)
        self.client.post("/api/v1/persistentvolumes", {
            "metadata": {"name": "shared"},
            "spec": {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteMany"],
                     "hostPath": {"path": str(self.volume)}}})

    def is_ready(self, node):
        conditions = self.client.get(f"/api/v1/nodes/{node}")["status"]["conditions"]
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def lose_power(self, number):
        pid = int((self.run / f"node{number}.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)

    def kubelet_of(self, number):
        """The node's kubelet, a descendant of the process that is the node. Others come and go
        meanwhile."""
        pids = [int((self.run / f"node{number}.pid").read_text().split()[0])]
        for pid in pids:
            with contextlib.suppress(OSError):
                process = pathlib.Path(f"/proc/{pid}")
                if (process / "comm").read_text() == "kubelet\n":
                    return pid
                pids += map(int, (process / f"task/{pid}/children").read_text().split())
        sys.exit(f"FAILED: node {number} has no kubelet")

    @contextlib.contextmanager
    def hung_kubelet(self, number):
        """Stops the kubelet: what runs on the node keeps running, but nobody hears of it or can
        stop it."""
        kubelet = self.kubelet_of(number)
        os.kill(kubelet, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(kubelet, signal.SIGCONT)
        self.wait(lambda: self.is_ready(NODES[number - 1]), "the node reports again")

    def power_on(self, number):
        subprocess.run([here / "start", self.run, f"node{number}"], check=True)
        self.wait(lambda: self.is_ready(NODES[number - 1]), "the node is back")
        self.give_devices(NODES[number - 1])

    # --- Jobs.

    def wait(self, condition, what):
        try:
            return wait_until(condition, what, PATIENCE_S)
        except TimeoutError as error:
            sys.exit(f"FAILED: {error}; the job is {json.dumps(self.status())}")

    def status(self, job="quickstart"):
        objects = self.client.get(GANG_JOBS)["items"]
        return next((each.get("status", {}) for each in objects
                     if each["metadata"]["name"] == job), None)

    def placement(self):
        """{node: workers} of a running attempt; otherwise empty."""
        status = self.status()
        if status.get("phase") != "running":
            return {}
        return {share["node"]: share["workers"] for share in status["placement"]}

    def wait_for_placement(self, placement):
        self.wait(lambda: self.placement() == placement, f"the run is on {placement}")

    def attempts(self):
        return self.status()["attempts"]

    def run_status(self):
        try:
            return json.loads((self.volume / "runs/quickstart/status.json").read_text())
        except (OSError, ValueError):
            return {}

    def shorten(self, steps_left):
        """Makes the stopped run end after some more steps."""
        epochs = (self.run_status()["step"] + steps_left) / STEPS_PER_EPOCH
        config = self.checkout / "examples/quickstart.yaml"
        config.write_text(config.read_text().replace("epochs: 10000\n", f"epochs: {epochs}\n"))
        self.client.patch("/api/v1/namespaces/default/configmaps/quickstart", {
            "data": {config.name: config.read_text()}})

    def log(self, pod, pods=PODS):
        """The pod's log; empty before it has started."""
        try:
            return self.client.get(f"{pods}/{pod}/log")
        except ApiError:
            return ""

    def first_log(self):
        """The log of worker 0 of the newest attempt. A kubelet on a busy machine may refuse a pod,
        and then there is another attempt: so no test may wait for a pod of a fixed name."""
        return self.log(f"quickstart-{self.attempts() - 1}-0")

    def wait_for_progress(self):
        """Waits until the newest attempt trains. Returns worker 0's log."""
        self.wait(self.first_log, "worker 0 has started")
        self.wait(lambda: self.run_status().get("state") == "running", "the run trains")
        step = self.run_status()["step"]
        self.wait(lambda: self.run_status().get("step", 0) > step, f"the run is past step {step}")
        return self.first_log()


def install(day):
    for node in NODES:
        day.give_devices(node)
    day.give_volume()
    day.page.run("kubectl apply -k ours", [
        ("resources: [../deploy/kubernetes/", "bases: [../deploy/kubernetes/1.20/"),
        # Named as nodes name an image without a registry.
        ("registry.example.com/renzan", "docker.io/library/renzan")])
    day.page.run("kubectl label nodes")
    out = day.page.run("kubectl -n renzan-system get pods")
    expect(len(re.findall(r"renzan-controller-\S+ +1/1 +Running", out)) == 2, out)
    expect(" leads" in out, f"no replica says that it leads:\n{out}")
    out = day.page.run("examples/queue.yaml")
    expect("default" in out, out)
    day.say("installed")


def a_first_job(day):
    out = day.page.run("examples/sleep.yaml")
    for rank in 0, 1:
        expect(f"worker {rank} of 2" in out, out)
    expect("Started" in out and "Done" in out, f"no events: {out}")
    day.say("the first job has ended")


def a_failure_is_explained(day):
    def submit(name, image, *command):
        day.client.post(GANG_JOBS, {
            "apiVersion": "renzan.dev/v1alpha1", "kind": "GangJob", "metadata": {"name": name},
            "spec": {"template": {"spec": {"containers": [{
                "name": "main", "image": image, "command": command,
                "resources": {"requests": {"cpu": "100m"}}}]}}}})

    submit("broken", "renzan:0.1.0",
           "renzan", "pod-run", "--", "renzan", "train", "/missing.yaml")
    submit("imageless", "localhost/nowhere:1", "true")
    day.wait(lambda: day.status("broken").get("phase") == "failed", "it has failed")
    message = day.status("broken")["message"]
    expect("/missing.yaml" in message, f"its message does not say why: {message}")
    day.wait(lambda: re.search(r"worker 0 on \S+: (ErrImagePull|ImagePullBackOff): .*nowhere",
                               day.status("imageless").get("message", "")), "the image is named")
    day.client.delete(f"{GANG_JOBS}/imageless")
    day.say("failures are explained")


def training_begins(day):
    day.page.run("examples/train.yaml")
    day.wait_for_placement({node: 2 for node in NODES})
    day.wait_for_progress()
    day.say("the model is trained by two workers on each node")


def it_saves_when_asked(day):
    folder = day.volume / "runs/quickstart/checkpoints"
    before = set(folder.iterdir()) if folder.exists() else set()
    day.page.run("request-checkpoint")
    day.wait(lambda: folder.exists() and set(folder.iterdir()) - before, "a checkpoint was saved")
    expect(day.attempts() == 1, "it was stopped for a checkpoint")
    day.say("it has saved when asked")


def a_higher_priority_preempts(day):
    out = day.page.run("examples/urgent.yaml")
    expect(re.search(r"quickstart .* pending ", out), out)
    stopped = day.run_status()
    expect(stopped.get("state") == "stopped", f"it did not stop cleanly: {stopped}")
    why = day.wait(lambda: day.status().get("message"), "it says why it waits")
    expect("needs 2 workers at the same time" in why, why)
    day.stopped_at = stopped["step"]
    # A shell that is stopped before it has set its trap does not end until its grace period is
    # over.
    day.wait(lambda: all("worker" in day.log(f"urgent-0-{rank}") for rank in range(4)),
             "the four workers have begun")
    day.say("it was preempted with a checkpoint")


def it_has_room_again(day):
    day.page.run("delete gangjob urgent")
    day.wait_for_placement({node: 2 for node in NODES})
    log = day.wait_for_progress()
    expect(f"at step {day.stopped_at}" in log, f"it has not resumed where it stopped:\n{log}")
    day.say("it has resumed")


def a_spot_node_announces_its_end(day):
    day.kubectl("taint", "nodes", NODES[1], SPOT_TAINT)
    day.wait_for_placement({NODES[0]: 2})
    log = day.wait_for_progress()
    expect("resuming from" in log, f"it has begun anew:\n{log}")
    day.kubectl("taint", "nodes", NODES[1], SPOT_TAINT.replace("=:NoSchedule", "-"))
    day.say("it has left a node whose end was announced")


def a_node_is_drained(day):
    """Drains the other node, on which a replica of the controller also runs."""
    day.page.run("kubectl drain")
    day.wait_for_placement({NODES[1]: 2})
    day.wait_for_progress()
    expect(day.status("sleep")["phase"] == "done", "a job that has ended runs again")
    day.page.run("kubectl uncordon")
    day.say("a node was drained")


def its_user_restarts_it(day):
    day.page.run("request-preempt")
    day.wait_for_placement({node: 2 for node in NODES})
    day.wait_for_progress()
    day.say("it was stopped by its user, and has the whole cluster again")


def a_kubelet_hangs(day):
    """The kubelet of the node that has all workers hangs. They continue until their successors ask
    them to stop."""
    attempts = day.attempts()
    with day.hung_kubelet(2):
        step = day.run_status()["step"]
        stored_job.its_kubelet_hangs(day)
        day.wait_for_placement({NODES[0]: 2})
        resumed = day.wait(
            lambda: re.search(r"resuming from \S+ at step (\d+)", day.first_log()),
            "worker 0 resumes")
        log = day.wait_for_progress()
        expect(int(resumed[1]) > step, f"its work after step {step} was lost:\n{log}")
        expect("waiting for another run that is writing to" in log, f"it did not wait:\n{log}")
        expect(day.attempts() == attempts + 1, f"it took {day.attempts() - attempts} attempts")
        expect(day.status()["facts"]["failures"] == 0, "a hung kubelet counts as a failure")
        stored_job.it_has_left_the_hung_node(day)
    day.say("workers whose kubelet hung have given way")


def a_node_loses_its_power(day):
    day.lose_power(1)
    day.say("a node has lost its power")


def it_goes_on_without_that_node(day):
    day.wait_for_placement({NODES[1]: 2})
    day.wait_for_progress()
    expect(day.status()["facts"]["failures"] == 0, "a lost node counts as a failure of the job")
    day.say("the run goes on without it")


def its_user_wants_a_size_that_is_not_there(day):
    attempts = day.attempts()
    day.page.run("minReplicas")
    day.wait(lambda: day.status()["phase"] == "pending", "it waits")
    why = day.wait(lambda: day.status().get("message"), "it says why it waits")
    expect("4 workers" in why, why)
    expect(day.run_status().get("state") == "stopped", "it has not saved")
    # So that the rest of the run takes only a moment, whatever this machine's speed.
    day.shorten(steps_left=200)
    day.power_on(1)
    day.say("the node is back")
    day.wait_for_placement({node: 2 for node in NODES})
    expect(day.attempts() == attempts + 1, f"{day.attempts() - attempts} attempts for one size")
    day.say("it has the size that its user wants")


def it_ends_as_if_undisturbed(day):
    out = day.page.run("gangjob/quickstart\n")
    digests = re.findall(r"sha256 ([0-9a-f]{64})", out)
    status = day.status()
    expect(status["facts"]["failures"] == 0, f"the job has failed on its way: {status}")
    day.say("it has ended")
    undisturbed = subprocess.run(
        [RENZAN, "train", day.checkout / "examples/quickstart.yaml", "--run-dir",
         day.work / "undisturbed"], cwd=day.volume, capture_output=True, text=True)
    expect(undisturbed.returncode == 0, undisturbed.stderr)
    expected = re.findall(r"sha256 ([0-9a-f]{64})", undisturbed.stdout + undisturbed.stderr)
    expect(len(digests) == 1 and digests == expected,
           f"the model {digests} differs from the undisturbed one {expected}:\n{out}")
    day.say("it has the sha256 of an undisturbed run")


def test(work, store):
    day = Day(work, store)
    try:
        for scenario in (install, a_first_job, a_failure_is_explained,
                         a_job_in_the_store_is_submitted, training_begins, it_saves_when_asked,
                         it_saves_in_the_store, a_higher_priority_preempts, it_was_stopped_too,
                         it_has_room_again, it_resumes_from_the_store,
                         a_spot_node_announces_its_end, a_node_is_drained,
                         it_has_left_the_drained_node, a_kubelet_hangs, its_user_restarts_it,
                         a_node_loses_its_power, its_node_is_dark,
                         it_goes_on_without_that_node, its_user_wants_a_size_that_is_not_there,
                         it_ends_as_if_undisturbed, it_ends_with_what_is_in_the_store):
            scenario(day)
        left = day.page.left()
        expect(not left, f"no step here runs these commands of the page:\n{left}")
    except BaseException:
        for arguments in (["get", "pods,gangjobs,nodes,events", "-A"],
                          ["-n", "renzan-system", "logs", "--tail=40",
                           "-lapp.kubernetes.io/component=controller"],
                          ["logs", "--tail=15", "--prefix", "-lrenzan.dev/job=quickstart"],
                          ["logs", "--tail=15", "--prefix", "-lrenzan.dev/job=stored", "-nstored"]):
            shown = subprocess.run(["kubectl", *arguments], env=day.environment, text=True,
                                   capture_output=True)
            print(f"--- kubectl {' '.join(arguments)}\n{shown.stdout}{shown.stderr}",
                  file=sys.stderr)
        raise


def main():
    # Output before a failure is printed before the failure.
    sys.stdout.reconfigure(line_buffering=True)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        if sys.argv[2:3] == ["--image"]:
            image = sys.argv[3]
        else:
            image = work / "renzan.tar"
            subprocess.run([here / "image", image, "renzan:0.1.0", "--busybox", "--program", RENZAN,
                            *(word for path in LIBRARIES for word in ("--library", path)),
                            "--user", "65532"], check=True)
        names_flags = subprocess.check_output([here / "names", "--flags"], text=True).split()
        with stored_job.store_if_installed() as store, control_plane(
                work / "run", "--nodes=2", "--scheduler", f"--image={image}",
                "--manager=--node-monitor-grace-period=12s",
                "--manager=--node-monitor-period=1s", *names_flags):
            names = subprocess.Popen([here / "names", work / "run"], stdout=subprocess.PIPE,
                                     text=True)
            try:
                expect(names.stdout.readline().strip() == "ready", "no name server")
                test(work, store)
            finally:
                names.terminate()
                names.wait()


if __name__ == "__main__":
    main()
