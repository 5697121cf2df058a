"""Machines that the controller buys and returns, and whoever owns them. A part of
controller_test.py."""

import http.client
import subprocess
import threading
import time

from kube import ApiError, wait_until
from world import GPU, expect, here, kind

POOLS = "/apis/renzan.dev/v1alpha1/nodepools"
MACHINES = "/apis/apps/v1/namespaces/machines/deployments/machines"


class Machines:
    """Plays whoever owns machines: as many nodes of the pool "bought" as a Deployment has
    replicas."""

    def __init__(self, client, run):
        self.client, self.run = client, run
        self.kubelets, self.made, self.most, self.ended = {}, 0, 0, False
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def nodes(self):
        return self.client.get("/api/v1/nodes?labelSelector=renzan.dev/pool%3Dbought")["items"]

    def work(self):
        while not self.ended:
            try:
                self.look()
            except (OSError, http.client.HTTPException, ApiError):
                pass  # the server is busy: looks again
            time.sleep(0.3)

    def look(self):
        wanted = self.client.get(MACHINES)["spec"]["replicas"]
        self.most = max(self.most, wanted)
        while len(self.kubelets) < wanted:
            name = f"bought-{self.made}"
            self.made += 1
            self.kubelets[f"{name}-000"] = subprocess.Popen(
                [here / "fake_nodes.py", "--kubeconfig", f"{self.run}/kubeconfig", "--count", "1",
                 "--prefix", name, "--label", "renzan.dev/pool=bought", "--lease-s", "1"],
                stdout=subprocess.DEVNULL)
        if len(self.kubelets) > wanted:
            chosen = [node["metadata"]["name"] for node in self.nodes()
                      if any(taint["key"] == "renzan.dev/returning"
                             for taint in node["spec"].get("taints", []))]
            self.remove((chosen or sorted(self.kubelets))[0])

    def remove(self, name):
        self.kubelets[name].terminate()
        self.kubelets[name].wait()
        try:
            self.client.delete(f"/api/v1/nodes/{name}")
        except ApiError as error:
            if error.status != 404:  # an answer that was lost
                raise
        del self.kubelets[name]

    def end(self):
        self.ended = True
        self.thread.join()
        for name in list(self.kubelets):
            self.remove(name)


def machines_are_bought_and_returned(world):
    world.client.post("/api/v1/namespaces", {"metadata": {"name": "machines"}})
    world.client.post(MACHINES.rpartition("/")[0], {
        "metadata": {"name": "machines"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "machine"}}, "template": {
            "metadata": {"labels": {"app": "machine"}},
            # Nobody binds its pods: only the number of replicas counts.
            "spec": {"schedulerName": "nobody",
                     "containers": [{"name": "main", "image": "machine"}]}}}})
    pool = {**kind("NodePool"), "metadata": {"name": "bought"}, "spec": {
        "capacity": {"cpu": "64", "memory": "256Gi", GPU: "8"}, "maxNodes": 3, "boot": "5s",
        "idle": "3s", "scaleRef": {"apiVersion": "apps/v1", "kind": "Deployment",
                                   "namespace": "machines", "name": "machines"}}}
    world.client.post(POOLS, pool)
    world.kubectl("wait", "--for=condition=Scalable=false", "nodepool/bought", "--timeout=180s")
    conditions = world.client.get(f"{POOLS}/bought")["status"]["conditions"]
    why = next(each["message"] for each in conditions if each["type"] == "Scalable")
    expect('cannot get resource "deployments/scale"' in why and "grant this right" in why, why)
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    world.client.post(roles, {
        "metadata": {"name": "scale-deployments",
                     "labels": {"renzan.dev/aggregate-to-controller-scale": "true"}},
        "rules": [{"apiGroups": ["apps"], "resources": ["deployments/scale"],
                   "verbs": ["get", "patch"]}]})
    wait_until(lambda: any(rule["apiGroups"] == ["apps"] for rule in world.client.get(
        f"{roles}/renzan-controller-scale").get("rules") or []), "the role gathers the other one")
    # Restarted, because it rarely looks again for what it may not read.
    world.client.delete(f"{POOLS}/bought")
    world.client.post(POOLS, pool)
    machines = Machines(world.client, world.run)
    try:
        world.kubectl("wait", "--for=condition=Scalable", "nodepool/bought", "--timeout=180s")
        world.submit("buyer", replicas=2, gpus=8, run_seconds=2,
                     selector={"renzan.dev/pool": "bought"})
        world.wait_for("buyer", "done")
        expect(machines.most == 2, f"{machines.most} machines were bought")
        wait_until(lambda: not machines.nodes(), "the machines are returned")
        expect(world.client.get(MACHINES)["spec"]["replicas"] == 0, "replicas stay")
        status = wait_until(
            lambda: world.client.get(f"{POOLS}/bought")["status"].get("nodes") == 0 and
            world.client.get(f"{POOLS}/bought")["status"], "the pool says so")
        expect(status["wanted"] == 0 and status["booting"] == 0, status)
    finally:
        machines.end()
    world.client.delete(f"{POOLS}/bought")
