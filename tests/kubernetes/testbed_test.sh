#!/usr/bin/env bash
# What the tests on Kubernetes rely on: fake nodes, real nodes where this machine can have them,
# bindings, a custom resource, users, and that nothing is left when two clusters have gone.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
fake_nodes=""
trap '[ -z "$fake_nodes" ] || kill "$fake_nodes" || true
  "$here/down" "$work/a"; "$here/down" "$work/b"; rm -rf "$work"' EXIT
cd "$work"

fail() { echo "FAILED: $*" >&2; exit 1; }

# up_with NODES: starts cluster a. Status 1 if that is not possible; the reason is in skip.txt.
up_with() {
  local status=0
  "$here/up" --nodes "$1" --user alice --manager=--node-monitor-grace-period=8s \
    --manager=--node-monitor-period=1s a >a.txt 2>a.log || status=$?
  [ $status -ne 69 ] || { tail -n 1 a.log >skip.txt; return 1; }
  [ $status -eq 0 ] || { cat a.log >&2; fail "cluster a does not start"; }
}

# left ID RUNDIR: prints what that cluster has left on the machine.
left() {
  local run=$2 controller
  grep -lsF "HOME=$run/home" /proc/[0-9]*/environ || true
  grep -sF "$run" /proc/mounts || true
  [ ! -e "/sys/class/net/$1" ] || echo "bridge $1"
  awk '$3 ~ /^cgroup/ { print $2 }' /proc/mounts | while read -r controller; do
    [ ! -e "$controller/$1" ] || echo "$controller/$1"
  done
  find "$run" -mindepth 1 -maxdepth 1 ! -name logs
}
# What the nodes' programs would make if they were not kept from it.
built_in_paths() { ls -d /var/lib/{kubelet,cni} /var/log/pods /run/containerd 2>&1 || true; }
paths_before=$(built_in_paths)

"$here/up" b >b.txt 2>b.log &
b=$!
nodes=1
if ! up_with 1; then
  nodes=0
  why=$(<skip.txt)
  up_with 0 || { wait $b || true; echo "skipped: $(<skip.txt)"; exit 77; }
  echo "without a real node: $why"
fi
wait $b || { cat b.log >&2; fail "cluster b does not start"; }
[ "$(cat a.txt)" = "export KUBECONFIG=$work/a/kubeconfig" ] || fail "up prints: $(cat a.txt)"
b_id=$(<b/id)
"$here/down" b  # a does not notice
[ -z "$(left "$b_id" "$work/b")" ] || fail "cluster b has left: $(left "$b_id" "$work/b")"

"$here/fake_nodes.py" --kubeconfig a/kubeconfig --count 20 --lease-s 1 --taint "own=x:NoSchedule" \
  >fake_nodes.txt &
fake_nodes=$!
export PYTHONPATH=$here PYTHONDONTWRITEBYTECODE=1
python3 - "$work/a" $nodes <<'PYTHON'
import sys
from kube import ApiError, Client, JSON_PATCH, wait_until

run, num_real = sys.argv[1], int(sys.argv[2])
client = Client(run + "/kubeconfig")
PODS = "/api/v1/namespaces/default/pods"


def expect(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def expect_refused(status, call, *arguments):
    try:
        call(*arguments)
    except ApiError as error:
        return expect(error.status == status, f"{error} instead of {status}")
    expect(False, f"{arguments} is not refused with {status}")


def create(name, gpus=0, command="", **annotations):
    """A pod with a scheduler's name that nobody serves."""
    client.post(PODS, {
        "metadata": {"name": name, "annotations": {
            "fake-nodes/" + key.replace("_", "-"): value for key, value in annotations.items()}},
        "spec": {"schedulerName": "nobody", "restartPolicy": "Never", "containers": [{
            "name": "main", "image": "localhost/busybox:1", "command": ["sh", "-c", command],
            "resources": {"limits": {"nvidia.com/gpu": str(gpus)} if gpus else {}}}]}})


def bind(name, node):
    client.post(f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": {
        "apiVersion": "v1", "kind": "Node", "name": node}})


def status(name):
    return client.get(f"{PODS}/{name}")["status"]


def wait_for_phase(name, phase, seconds=30):
    return wait_until(lambda: status(name) if status(name)["phase"] == phase else None,
                      f"pod {name} is {phase}", seconds)


def exit_code(pod_status):
    return pod_status["containerStatuses"][0]["state"]["terminated"]["exitCode"]


def is_gone(name):
    return all(item["metadata"]["name"] != name for item in client.get(PODS)["items"])


def node_is_ready(name):
    conditions = client.get("/api/v1/nodes/" + name)["status"].get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def test_fake_nodes():
    nodes = wait_until(lambda: client.get(
        "/api/v1/nodes?labelSelector=fake-nodes/prefix%3Dfake")["items"][19:], "20 fake nodes")
    wait_until(lambda: node_is_ready("fake-019") and node_is_ready("fake-000"), "they are Ready")
    expect(nodes[0]["spec"]["taints"][0]["key"] == "own", "the fake nodes have no taint")
    allocatable = client.get("/api/v1/nodes/fake-019")["status"]["allocatable"]
    expect(allocatable["nvidia.com/gpu"] == "8", f"allocatable is {allocatable}")
    client.patch("/api/v1/nodes/fake-019", {"metadata": {"annotations": {
        "fake-nodes/dead": "true"}}})

    create("good", gpus=6, run_seconds="1")
    create("bad", run_seconds="0", exit_code="3")
    create("large", gpus=3)
    create("slow", stop_seconds="1", stop_code="75")
    expect(status("good")["phase"] == "Pending", "a pod does not wait for its binding")
    for name in "good", "bad", "slow":
        bind(name, "fake-000")
    expect_refused(409, bind, "good", "fake-001")
    wait_for_phase("good", "Running")
    bind("large", "fake-000")
    expect(wait_for_phase("large", "Failed")["reason"] == "OutOfnvidia.com/gpu",
           "a pod that does not fit is not refused")
    expect(exit_code(wait_for_phase("good", "Succeeded")) == 0, "good has an exit code")
    expect(exit_code(wait_for_phase("bad", "Failed")) == 3, "bad has another exit code")
    wait_for_phase("slow", "Running")
    client.delete(f"{PODS}/slow", {"gracePeriodSeconds": 20})
    expect(status("slow")["phase"] == "Running", "slow ends at once")
    wait_until(lambda: is_gone("slow"), "slow is gone")


def test_dead_node():
    """It lost its power in test_fake_nodes."""
    wait_until(lambda: not node_is_ready("fake-019"), "a dead node is not Ready")
    client.patch("/api/v1/nodes/fake-019", {"metadata": {"annotations": {
        "fake-nodes/dead": None}}})
    wait_until(lambda: node_is_ready("fake-019"), "with its power back it is Ready")


def test_custom_resource():
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    schema = {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}}
    client.post(definitions, {"metadata": {"name": "things.test.renzan"}, "spec": {
        "group": "test.renzan", "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
        "versions": [{"name": "v1", "served": True, "storage": True,
                      "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}]}})

    def is_established():
        seen = client.get(definitions + "/things.test.renzan")["status"]
        return any(c["type"] == "Established" and c["status"] == "True"
                   for c in seen.get("conditions") or [])

    def thing(name, size):
        return {"apiVersion": "test.renzan/v1", "kind": "Thing", "metadata": {"name": name},
                "spec": {"size": size}, "status": {"phase": "x"}}

    things = "/apis/test.renzan/v1/namespaces/default/things"
    wait_until(is_established, "the custom resource is established")
    expect_refused(422, client.post, things, thing("bad", 0))
    expect("status" not in client.post(things, thing("good", 2)), "a status at creation is kept")
    both = client.patch(things + "/good/status", {"spec": {"size": 3}, "status": {"phase": "y"}})
    expect((both["spec"], both["status"]) == ({"size": 2}, {"phase": "y"}),
           "the status subresource sets more than the status")
    kind, item = next(client.changes(things))
    expect((kind, item["metadata"]["name"]) == ("ADDED", "good"), f"the watch begins with {kind}")


def test_users():
    alice = Client(run + "/kubeconfig-alice")
    expect_refused(403, alice.get, PODS)
    rights = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    client.post(rights + "/roles", {"metadata": {"name": "reader"}, "rules": [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]})
    client.post(rights + "/rolebindings", {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "User", "name": "alice"}]})

    def may_list():
        try:
            return alice.get(PODS)
        except ApiError:
            return None

    wait_until(may_list, "alice lists pods")
    expect_refused(403, alice.delete, PODS + "/good")


def test_real_node(node):
    # kubelet keeps a capacity that it does not know.
    client.patch(f"/api/v1/nodes/{node}/status", [
        {"op": "add", "path": "/status/capacity/nvidia.com~1gpu", "value": "4"}], JSON_PATCH)
    wait_until(lambda: client.get("/api/v1/nodes/" + node)["status"]["allocatable"].get(
        "nvidia.com/gpu") == "4", "pretended GPUs are allocatable")
    create("real", gpus=2, command="echo hello; exit 3")
    bind("real", node)
    ended = wait_for_phase("real", "Failed", 60)
    expect(exit_code(ended) == 3, f"a real pod ended with {ended}")
    log = client.get(f"{PODS}/real/log")
    expect(log == "hello\n", f"its log is {log!r}")


test_fake_nodes()
test_custom_resource()
test_users()
for n in range(num_real):
    test_real_node(f"127.0.0.{n + 1}")
test_dead_node()
PYTHON
[ "$(cat fake_nodes.txt)" = ready ] || fail "the fake nodes did not become ready"

if [ $nodes -gt 0 ]; then
  # Loss of power: not one process of the node survives.
  tasks=$(pgrep -f "$work/a/node1") || fail "the node has no processes"
  # kubelet removes the groups of pods that have ended, perhaps just now.
  tasks+=" $(find /sys/fs/cgroup/*/"$(<a/id)" -name tasks -exec cat {} + 2>/dev/null || true)"
  kill -KILL "$(cut -d' ' -f1 a/node1.pid)"
  for pid in $tasks; do
    for ((i = 0; i < 200; i++)); do
      grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$pid/status" || continue 2
      sleep 0.05
    done
    fail "process $pid outlives its node"
  done
fi

kill $fake_nodes
wait $fake_nodes || fail "the fake nodes end with $?"
fake_nodes=""
a_id=$(<a/id)
"$here/down" a
[ -z "$(left "$a_id" "$work/a")" ] || fail "cluster a has left: $(left "$a_id" "$work/a")"
[ "$(built_in_paths)" = "$paths_before" ] || fail "there is now: $(built_in_paths)"
