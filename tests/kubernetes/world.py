"""The world of a test on a real control plane: fake nodes, deploy/kubernetes, replicas of the
controller with the rights of its account, and a ledger of its own of what pods do.

  with testing(up=["--user=ann"]) as world:      the program is the first argument of the command
      world.start_replicas(2)
      world.play(a_scenario, world)

Exits with 77 where there is no control plane. Whatever fails, the replicas' logs come before it.
"""

import base64
import collections
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from kube import ApiError, Client, wait_until

here = pathlib.Path(__file__).resolve().parent
DEPLOY = here.parent.parent / "deploy/kubernetes"
CACHE = os.environ.get("RENZAN_KUBERNETES") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "renzan-kubernetes")
GANG_JOBS = "/apis/renzan.dev/v1alpha1/namespaces/default/gangjobs"
PODS = "/api/v1/namespaces/default/pods"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/renzan-system/leases/renzan-controller"
GPU = "nvidia.com/gpu"
LOG_SHOWN = 4000  # characters
# For `up`: no node is lost while a server starts, on the slowest machine.
PATIENT = "--manager=--node-monitor-grace-period=300s"


def expect(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def kind(name):
    return {"apiVersion": "renzan.dev/v1alpha1", "kind": name}


class Replica:
    """A replica of the controller, restarted when it ends with 75 or is killed, as a kubelet would
    do. It runs in a folder of its own, to which paths among its options are relative."""

    def __init__(self, world, number, options=(), kubeconfig=None, environment=None):
        self.name = f"replica-{number}"
        self.folder = pathlib.Path(world.run) / self.name
        self.folder.mkdir()
        self.log = self.folder / "log"
        self.wrong = ""
        self.restarts = 0
        self._command = [world.program, "cluster", "kubernetes", "run", "--listen=127.0.0.1:0",
                         "--debug-port=0", *options]
        self._environment = os.environ | (environment or {}) | {
            "KUBECONFIG": kubeconfig or world.controller_config, "POD_NAME": self.name}
        self._ended = False
        self._lock = threading.Lock()  # protects what says whether it is to run
        self._start()
        self._thread = threading.Thread(target=self._supervise, daemon=True)
        self._thread.start()

    def _start(self):
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(self._command, cwd=self.folder, stdout=log, stderr=log,
                                            env=self._environment)

    def _supervise(self):
        while True:
            code = self.process.wait()
            with self._lock:
                if self._ended:
                    return
                if code not in (75, -signal.SIGKILL):
                    self.wrong = f"{self.name} has ended with {code}; see its log"
                    return
                self.restarts += 1
                self._start()

    def said(self):
        return self.log.read_text()

    def url(self, what):
        """The last address at which it says that `what` is."""
        return wait_until(lambda: re.findall(rf"{what} at (\S+)", self.said()),
                          f"{self.name} says where its {what} are")[-1]

    def fetch(self, what, path):
        """Fetches from the server at that address: the status and the bytes."""
        server = re.match(r"\w+://[^/]+", self.url(what))[0]
        try:
            with urllib.request.urlopen(server + path, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def stop(self):
        """Stops it. Returns what it said from then on."""
        said = len(self.said())
        with self._lock:
            self._ended = True
            self.process.terminate()
        self._thread.join()
        # It may have lost the Lease at this moment.
        expect(not self.wrong and self.process.returncode in (0, 75),
               self.wrong or f"{self.name} has ended with {self.process.returncode}")
        return self.said()[said:]

    def kill(self):
        """Kills it, even if a signal has stopped it."""
        with self._lock:
            self._ended = True
            self.process.kill()
        self._thread.join()


class Ledger:
    """Records what pods did, whatever the controller says: there must never be two attempts of one
    job at a time, or more on a node than it has."""

    def __init__(self, client):
        self.client = client
        self.running = collections.defaultdict(set)  # job -> pods
        self.wrong = []
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        for change, pod in self.client.changes("/api/v1/pods", "labelSelector=renzan.dev/job"):
            labels, name = pod["metadata"]["labels"], pod["metadata"]["name"]
            job = f"{pod['metadata']['namespace']}/{labels['renzan.dev/job']}"
            attempt = labels["renzan.dev/attempt"]
            if pod["status"].get("reason", "").startswith("OutOf"):
                self.wrong.append(f"{name} did not fit: {pod['status']['reason']}")
            runs = change != "DELETED" and pod["status"]["phase"] == "Running" and not any(
                "terminated" in status["state"]
                for status in pod["status"].get("containerStatuses", []))
            (self.running[job].add if runs else self.running[job].discard)((attempt, name))
            if len({each[0] for each in self.running[job]}) > 1:
                self.wrong.append(f"two attempts of {job} run: {sorted(self.running[job])}")


class World:
    def __init__(self, program, run):
        self.program, self.run = program, run
        self.client = Client(f"{run}/kubeconfig")
        self.controller_config = f"{run}/kubeconfig-controller"
        self.environment = os.environ | {"KUBECONFIG": f"{run}/kubeconfig",
                                         "PATH": f"{CACHE}/bin:{os.environ['PATH']}"}
        self.replicas = []
        self.ledger = None  # of tests

    def command(self, *arguments, stdin=None):
        """Runs a command. Returns its exit status and what it printed."""
        done = subprocess.run(arguments, env=self.environment, input=stdin, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def kubectl(self, *arguments):
        code, out = self.command("kubectl", *arguments)
        expect(code == 0, f"kubectl {' '.join(arguments)}: {out}")
        return out

    def install(self, overlay="1.20"):
        """Installs the manifests, also again after somebody has removed parts of them."""
        self.kubectl("apply", "-k", str(DEPLOY / overlay))
        self.kubectl("wait", "--for=condition=Established", "--timeout=180s",
                     *(f"crd/{name}.renzan.dev"
                       for name in ("gangjobs", "queues", "nodepools", "clusterpolicies")))

    def become(self, account, path):
        """Writes a kubeconfig with exactly the rights of a service account of renzan-system."""
        at = f"/api/v1/namespaces/renzan-system/serviceaccounts/{account}"
        secret = wait_until(lambda: self.client.get(at).get("secrets"), "a token")[0]["name"]
        secret = self.client.get(f"/api/v1/namespaces/renzan-system/secrets/{secret}")
        config = json.loads(pathlib.Path(f"{self.run}/kubeconfig").read_text())
        token = base64.b64decode(secret["data"]["token"]).decode()
        config["users"][0]["user"] = {"token": token}
        pathlib.Path(path).write_text(json.dumps(config))

    # --- Replicas.

    def start_replica(self, *options, **others):
        self.replicas.append(Replica(self, len(self.replicas), options, **others))
        return self.replicas[-1]

    def start_replicas(self, count, *options):
        for _ in range(count):
            self.start_replica(*options)

    def leader(self):
        """The holder of the Lease; "" if there is none."""
        try:
            return self.client.get(LEASE)["spec"].get("holderIdentity", "")
        except ApiError:
            return ""

    def leading(self):
        """The leading replica, once there is one."""
        return wait_until(self.leading_now, "a replica leads")

    def leading_now(self):
        """The leading replica; None if nobody leads."""
        name = self.leader()
        return next((each for each in self.replicas if name.startswith(each.name)), None)

    def stop_replicas(self):
        said = "".join(replica.stop() for replica in self.replicas)
        # On a busy machine the server may not have answered in time: then the replica says so.
        expect(self.leader() == "" or "the lease is not released" in said,
               f"the lease was not released: {self.leader()} has it")

    def server_answered(self):
        """Whether the server answered all requests in time, by what the replicas say."""
        return not any("no answer in time" in replica.said() for replica in self.replicas)

    # --- Jobs.

    def allow_priority(self, most):
        """Lets jobs have a priority of up to `most`, where their queue does not say otherwise."""
        self.client.post("/apis/renzan.dev/v1alpha1/clusterpolicies", {
            **kind("ClusterPolicy"), "metadata": {"name": "default"},
            "spec": {"limits": {"maxPriority": most}}})

    def submit(self, name, replicas, gpus, run_seconds, priority=0, saves=True, selector=None,
               image="trainer", **others):
        """Submits a job. `others`: further keys of its spec."""
        self.client.post(GANG_JOBS, {
            **kind("GangJob"), "metadata": {"name": name},
            "spec": {"replicas": replicas, "priority": priority, "checkpoint": {"onStop": saves},
                     **others, "template": {
                         "metadata": {"annotations": {
                             "fake-nodes/run-seconds": str(run_seconds),
                             "fake-nodes/stop-seconds": "0.5",
                             "fake-nodes/stop-code": "75" if saves else "143"}},
                         "spec": {"nodeSelector": selector or {}, "containers": [{
                             "name": "main", "image": image,
                             "resources": {"limits": {GPU: str(gpus)}}}]}}}})

    def status(self, name):
        return self.client.get(f"{GANG_JOBS}/{name}").get("status", {})

    def wait_for(self, name, phase):
        try:
            return wait_until(
                lambda: self.status(name) if self.status(name).get("phase") == phase else None,
                f"{name} is {phase}")
        except TimeoutError as error:
            sys.exit(f"FAILED: {error}; it is {self.status(name)}")

    def wait_for_message(self, name, pattern="."):
        try:
            return wait_until(
                lambda: re.search(pattern, self.status(name).get("message", ""))
                and self.status(name)["message"], f"{name} says {pattern}")
        except TimeoutError as error:
            sys.exit(f"FAILED: {error}; it is {self.status(name)}")

    def pods_of(self, name):
        return self.client.get(f"{PODS}?labelSelector=renzan.dev/job%3D{name}")["items"]

    def wait_for_workers(self, name, count):
        """Waits for the workers' pods: by its status, a job is running before its pods exist."""
        wait_until(lambda: sum(pod["status"]["phase"] == "Running"
                               for pod in self.pods_of(name)) == count,
                   f"{name} has {count} workers")

    def end_worker(self, pod, code):
        """Makes the worker's program end with `code`."""
        self.client.patch(f"{PODS}/{pod}", {"metadata": {"annotations": {
            "fake-nodes/end-now": str(code)}}})

    def cancel(self, name):
        self.client.patch(f"{GANG_JOBS}/{name}", {"spec": {"cancelled": True}})
        self.wait_for(name, "cancelled")

    def nodes_of(self, name):
        return {share["node"] for share in self.status(name)["placement"]}

    # --- Scenarios.

    def play(self, scenario, *arguments):
        begun = time.monotonic()
        scenario(*arguments)
        print(f"{scenario.__name__}: {time.monotonic() - begun:.1f} s")
        for replica in self.replicas:
            expect(not replica.wrong, replica.wrong)
        expect(not self.ledger.wrong, self.ledger.wrong)


@contextlib.contextmanager
def control_plane(run, *flags):
    """`up` with these flags, and `down` at the end. Exits with 77 if that is not possible."""
    up = subprocess.run([here / "up", *flags, run], capture_output=True, text=True)
    if up.returncode == 69:
        print("skipped:", up.stderr.strip().splitlines()[-1])
        sys.exit(77)
    expect(up.returncode == 0, up.stderr)
    try:
        yield
    finally:
        subprocess.run([here / "down", run])


@contextlib.contextmanager
def fake_nodes(run, *flags):
    """Starts fake nodes. Yields the process that plays their kubelets."""
    process = subprocess.Popen([here / "fake_nodes.py", "--kubeconfig", f"{run}/kubeconfig",
                                "--label=renzan.dev/pool=gpu", *flags],
                               stdout=subprocess.PIPE, text=True)
    try:
        expect(process.stdout.readline().strip() == "ready", "no fake nodes")
        yield process
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def world_in(run, program, up=(), nodes=("--count=4",), overlay="1.20"):
    """Yields a World with fake nodes and manifests, but no replica yet. `run`: a folder for
    `up`."""
    with control_plane(run, *up), fake_nodes(run, *nodes) as kubelets:
        world = World(program, str(run))
        try:
            world.kubelets = kubelets
            world.install(overlay)
            world.become("renzan-controller", world.controller_config)
            yield world
            world.stop_replicas()
        except BaseException:
            for log in sorted(pathlib.Path(run).glob("replica-*/log")):
                print(f"--- {log.parent.name}\n{log.read_text()[-LOG_SHOWN:]}", file=sys.stderr)
            raise
        finally:
            for replica in world.replicas:
                replica.kill()


@contextlib.contextmanager
def testing(**options):
    """world_in() a folder of its own, with a ledger."""
    # Output before a failure is printed before the failure.
    sys.stdout.reconfigure(line_buffering=True)
    with tempfile.TemporaryDirectory() as folder:
        with world_in(f"{folder}/run", os.path.abspath(sys.argv[1]), **options) as world:
            world.ledger = Ledger(world.client)
            yield world
