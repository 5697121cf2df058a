#!/usr/bin/env python3
"""Nodes without machines: creates Node objects with pretended GPUs and plays their kubelets.

  fake_nodes.py --count 200 [OPTION...]      with KUBECONFIG or --kubeconfig FILE

Prints "ready" when all are Ready, then runs until SIGTERM or SIGINT, or until the kubeconfig is
gone, as after `down`. The nodes are PREFIX-000 and so on, with the label fake-nodes/prefix=PREFIX.

A pod bound to such a node becomes Running after --start-s, or Failed with the reason OutOfRESOURCE
where the node has not enough left, as kubelet does; an image that begins with nowhere/ cannot be
pulled. The pod's annotations say the rest:
  fake-nodes/run-seconds     it ends by itself after so long (default: it runs until deleted)
  fake-nodes/exit-code       with this code
  fake-nodes/end-now         given while it runs: it ends at once, with this code
  fake-nodes/stop-seconds    how long it takes to end when deleted (default 0); after the grace
                             period it is killed, code 137
  fake-nodes/stop-code       the code it then ends with (default 143)

A node with the annotation fake-nodes/dead=true is a machine without power: its Lease ages and its
pods do nothing until the annotation is taken away.
"""

import argparse
import collections
import heapq
import itertools
import os
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True
import kube

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
DEAD = "fake-nodes/dead"


class Agenda:
    """Makes calls at their times, in a few threads. A call that fails is repeated after a
    second."""

    def __init__(self, num_threads):
        self._calls, self._order = [], itertools.count()
        self._changed = threading.Condition()
        for _ in range(num_threads):
            threading.Thread(target=self._run, daemon=True).start()

    def add(self, seconds, call, *arguments):
        with self._changed:
            entry = time.monotonic() + seconds, next(self._order), call, arguments
            heapq.heappush(self._calls, entry)
            self._changed.notify()

    def _next(self):
        with self._changed:
            while True:
                wait_s = self._calls[0][0] - time.monotonic() if self._calls else None
                if wait_s is not None and wait_s <= 0:
                    return heapq.heappop(self._calls)[2:]
                self._changed.wait(wait_s)

    def _run(self):
        while True:
            call, arguments = self._next()
            try:
                call(*arguments)
            except Exception as error:
                # A call for something that is gone (404), or was replaced by another of the same
                # name (409), is done.
                if isinstance(error, kube.ApiError) and error.status in (404, 409):
                    continue
                print(f"fake_nodes: {call.__name__}: {error!r}", file=sys.stderr, flush=True)
                self.add(1, call, *arguments)


class Pod:
    def __init__(self, item, address):
        metadata, spec = item["metadata"], item["spec"]
        self.path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        self.uid, self.node = metadata["uid"], spec["nodeName"]
        self.containers = [(c["name"], c.get("image", "")) for c in spec["containers"]]
        self.address = f"10.99.{address // 250 % 250}.{address % 250 + 1}"
        self.started_at = kube.now()
        self.is_running = self.is_stopping = self.has_ended = False
        self.needs_room = True
        self.lock = threading.Lock()  # protects what was reported
        self._annotations = metadata.get("annotations") or {}
        self.requests = collections.Counter(pods=1)
        for container in spec["containers"]:
            for name, text in container["resources"].get("requests", {}).items():
                self.requests[name] += kube.quantity(text)

    def number(self, name, default=None):
        text = self._annotations.get("fake-nodes/" + name)
        return default if text is None else float(text)


class Fleet:
    def __init__(self, options):
        self._options = options
        self._client = kube.Client(options.kubeconfig)
        self._agenda = Agenda(options.threads)
        self._names = [f"{options.prefix}-{i:03d}" for i in range(options.count)]
        self._selector = "labelSelector=fake-nodes/prefix%3D" + options.prefix
        self._resources = {"cpu": options.cpus, "memory": options.memory, "pods": "110",
                           "ephemeral-storage": "1Ti"}
        if options.gpus:
            self._resources["nvidia.com/gpu"] = str(options.gpus)
        self._pods = {name: {} for name in self._names}  # by node and uid
        self._addresses = itertools.count()
        self._dead = set()
        self._waiting = collections.defaultdict(list)  # calls of dead nodes
        self._log = open(options.log, "w", buffering=1) if options.log else None

    def run(self):
        """Creates the nodes. Returns when all of them are usable."""
        for name in self._names:
            self._agenda.add(0, self._create, name)
        for loop in self._follow_nodes, self._follow_pods:
            threading.Thread(target=loop, daemon=True).start()
        # The controller manager removes a new node's taint once it has seen that the node is Ready.
        kube.wait_until(self._are_usable, "all nodes are Ready and without taints")

    def _are_usable(self):
        nodes = self._client.get("/api/v1/nodes?" + self._selector)["items"]
        taints = [taint for node in nodes for taint in node["spec"].get("taints", [])]
        return len(nodes) >= len(self._names) and not any(
            taint["key"].startswith("node.kubernetes.io/") for taint in taints)

    # Nodes

    def _create(self, name):
        labels = {"fake-nodes/prefix": self._options.prefix, "kubernetes.io/hostname": name,
                  "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        labels.update(label.split("=", 1) for label in self._options.label)
        self._create_once("/api/v1/nodes", {
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": [parse_taint(text) for text in self._options.taint]}})
        self._create_once(LEASES, {"metadata": {"name": name}, "spec": {
            "holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": kube.now(micro=True)}})
        self._report_node(name, capacity=self._resources, allocatable=self._resources, addresses=[
            {"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}])
        self._agenda.add(self._options.lease_s, self._renew, name)

    def _create_once(self, path, item):
        try:
            self._client.post(path, item)
        except kube.ApiError as error:
            if error.status != 409:
                raise

    def _report_node(self, name, **status):
        """Reports the node as Ready, with further fields of its status."""
        conditions = []
        for kind, value, reason in (
                ("Ready", "True", "KubeletReady"), ("MemoryPressure", "False", "Fake"),
                ("DiskPressure", "False", "Fake"), ("PIDPressure", "False", "Fake")):
            conditions.append({"type": kind, "status": value, "reason": reason,
                               "lastHeartbeatTime": kube.now(), "lastTransitionTime": kube.now()})
        self._client.patch(f"/api/v1/nodes/{name}/status",
                           {"status": {"conditions": conditions, **status}}, kube.STRATEGIC)

    def _renew(self, name):
        if name not in self._dead:
            self._renew_now(name)
        self._agenda.add(self._options.lease_s, self._renew, name)

    def _renew_now(self, name):
        self._client.patch(f"{LEASES}/{name}", {"spec": {"renewTime": kube.now(micro=True)}})

    def _follow_nodes(self):
        for kind, item in self._client.changes("/api/v1/nodes", self._selector):
            name = item["metadata"]["name"]
            if kind == "DELETED" or name not in self._pods:
                continue
            if item["metadata"].get("annotations", {}).get(DEAD) == "true":
                self._dead.add(name)
                continue
            if name in self._dead:
                self._dead.discard(name)
                self._agenda.add(0, self._renew_now, name)
                for call in self._waiting.pop(name, []):
                    self._agenda.add(0, *call)
            # Even if it was only the controller manager that thought so, on a busy machine.
            if any(condition["type"] == "Ready" and condition["status"] == "Unknown"
                   for condition in item["status"].get("conditions", [])):
                self._agenda.add(0, self._report_node, name)

    # Pods

    def _follow_pods(self):
        for kind, item in self._client.changes("/api/v1/pods", "fieldSelector=spec.nodeName!%3D"):
            pods = self._pods.get(item["spec"]["nodeName"])
            if pods is None:
                continue
            uid = item["metadata"]["uid"]
            if kind == "DELETED":
                pods.pop(uid, None)
                continue
            if uid not in pods:
                if item["status"].get("phase") in ("Succeeded", "Failed"):
                    continue
                if self._log:
                    metadata = item["metadata"]
                    print(f"{time.time():.3f} {metadata['namespace']}/{metadata['name']}",
                          file=self._log)
                self._admit(Pod(item, next(self._addresses)), pods)
            code = item["metadata"].get("annotations", {}).get("fake-nodes/end-now")
            if code is not None:
                self._agenda.add(0, self._end, pods[uid], int(code))
            if "deletionTimestamp" in item["metadata"]:
                self._stop(pods[uid], item["metadata"].get("deletionGracePeriodSeconds") or 0)

    def _admit(self, pod, pods):
        used = sum((other.requests for other in pods.values() if other.needs_room),
                   collections.Counter())
        pods[pod.uid] = pod
        for name, wanted in pod.requests.items():
            if wanted + used[name] > kube.quantity(self._resources.get(name, "0")):
                pod.has_ended, pod.needs_room = True, False
                self._agenda.add(0, self._refuse, pod, name)
                return
        self._agenda.add(self._options.start_s, self._start, pod)

    def _stop(self, pod, grace_s):
        if pod.is_stopping:
            return
        pod.is_stopping = True
        stop_s = pod.number("stop-seconds", 0)
        code = 137 if stop_s > grace_s else pod.number("stop-code", 143)
        self._agenda.add(min(stop_s, grace_s), self._end, pod, int(code))

    def _must_wait(self, pod, *call):
        """Whether the pod's node is without power; then the call is made when power is back."""
        if pod.node in self._dead:
            self._waiting[pod.node].append(call)
        return pod.node in self._dead  # asked again: power may have come back just before

    def _refuse(self, pod, resource):
        if not self._must_wait(pod, self._refuse, pod, resource):
            self._patch_status(pod, {"phase": "Failed", "reason": "OutOf" + resource,
                                     "message": f"the node has not enough {resource} left"})

    def _start(self, pod):
        if self._must_wait(pod, self._start, pod):
            return
        with pod.lock:
            if pod.is_running or pod.has_ended:
                return
            pod.started_at = kube.now()
            if any(image.startswith("nowhere/") for _, image in pod.containers):
                self._report(pod, "Pending", {"waiting": {
                    "reason": "ErrImagePull", "message": "no such image"}})
                return
            self._report(pod, "Running", {"running": {"startedAt": pod.started_at}})
            pod.is_running = True
        run_s = pod.number("run-seconds")
        if run_s is not None:
            self._agenda.add(run_s, self._end, pod, int(pod.number("exit-code", 0)))

    def _end(self, pod, code):
        if self._must_wait(pod, self._end, pod, code):
            return
        with pod.lock:
            if not pod.has_ended:
                # Before the server knows, and with it whoever binds the next pod.
                pod.needs_room = False
                self._report(pod, "Failed" if code else "Succeeded", {"terminated": {
                    "exitCode": code, "reason": "Error" if code else "Completed",
                    "startedAt": pod.started_at, "finishedAt": kube.now(),
                    "containerID": "fake://" + pod.uid}})
                pod.has_ended = True
        if pod.is_stopping:
            self._agenda.add(self._options.lag_s, self._remove, pod)

    def _remove(self, pod):
        if not self._must_wait(pod, self._remove, pod):
            self._client.delete(
                pod.path, {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid}})

    def _report(self, pod, phase, state):
        is_ready = "running" in state
        conditions = [{"type": kind, "status": str(value), "lastTransitionTime": kube.now()}
                      for kind, value in (("Initialized", True), ("PodScheduled", True),
                                          ("Ready", is_ready), ("ContainersReady", is_ready))]
        containers = [{"name": name, "image": image, "imageID": image, "restartCount": 0,
                       "containerID": "fake://" + pod.uid, "ready": is_ready, "started": is_ready,
                       "state": state} for name, image in pod.containers]
        self._patch_status(pod, {
            "phase": phase, "startTime": pod.started_at, "hostIP": "127.0.0.1",
            "podIP": pod.address, "podIPs": [{"ip": pod.address}],
            "conditions": conditions, "containerStatuses": containers})

    def _patch_status(self, pod, status):
        # The uid is a precondition: another pod of the same name answers 409.
        self._client.patch(pod.path + "/status",
                           {"metadata": {"uid": pod.uid}, "status": status}, kube.STRATEGIC)


def parse_taint(text):
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", default=os.environ.get("KUBECONFIG"))
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--prefix", default="fake")
    parser.add_argument("--cpus", default="64")
    parser.add_argument("--memory", default="512Gi")
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--label", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--taint", action="append", default=[], metavar="KEY=VALUE:EFFECT")
    parser.add_argument("--lease-s", type=float, default=10, help="renewal of a node's Lease")
    parser.add_argument("--start-s", type=float, default=0.2, help="from bound to Running")
    parser.add_argument("--lag-s", type=float, default=0,
                        help="from a deleted pod's end to its removal; kubelet 1.20 takes 3 to 10")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--log", metavar="FILE", help="a line for each pod that was bound, when that "
                        "is seen: seconds since 1970, NAMESPACE/NAME")
    options = parser.parse_args()
    if not options.kubeconfig:
        parser.error("neither --kubeconfig nor KUBECONFIG")
    # Blocked in all threads, so that sigtimedwait() gets them.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    try:
        Fleet(options).run()
    except (OSError, ValueError, kube.ApiError) as error:
        sys.exit(f"fake_nodes: {error}")
    print("ready", flush=True)
    while os.path.exists(options.kubeconfig):
        if signal.sigtimedwait({signal.SIGTERM, signal.SIGINT}, 1):
            break


if __name__ == "__main__":
    main()
