#!/usr/bin/env python3
"""Who may do what once deploy/kubernetes is applied: called by manifests_test.sh.

  rights_test.py KUBECONFIG [--by-namespace]

Asks the API server about every verb of every resource that it has: the controller may do what it
needs and nothing else.
"""

import sys

sys.dont_write_bytecode = True
from kube import Client, wait_until

READ = {"get", "list", "watch"}
WRITE = {"create", "delete", "deletecollection", "patch", "update"}
# By group and resource.
CONTROLLER = {
    ("renzan.dev", "gangjobs"): READ | {"delete"},
    ("renzan.dev", "gangjobs/status"): {"update"},
    ("renzan.dev", "gangjobs/finalizers"): {"update"},
    ("renzan.dev", "queues"): {"list", "watch"},
    ("renzan.dev", "queues/status"): {"update"},
    ("renzan.dev", "nodepools"): {"list", "watch"},
    ("renzan.dev", "nodepools/status"): {"update"},
    ("renzan.dev", "clusterpolicies"): {"list", "watch"},
    ("renzan.dev", "clusterpolicies/status"): {"update"},
    ("", "pods"): READ | {"create", "delete", "patch"},
    ("", "pods/binding"): {"create"},
    ("", "nodes"): READ | {"patch"},
    ("", "services"): {"get", "create"},
    ("", "persistentvolumeclaims"): {"get"},
    ("", "events"): {"create"},
}
# Where a RoleBinding grants it, with controller-by-namespace.
JOBS = {
    ("renzan.dev", "gangjobs/finalizers"): {"update"},
    ("", "pods"): {"create", "delete", "patch"},
    ("", "pods/binding"): {"create"},
    ("", "services"): {"get", "create"},
    ("", "persistentvolumeclaims"): {"get"},
}
IN_OWN_NAMESPACE = {("coordination.k8s.io", "leases"): {"create"}}
# Only for the Lease by which the replicas elect a leader.
ON_LEASE = {("coordination.k8s.io", "leases"): {"create", "get", "update"}}
# Of what the server may not have: by the role that others are added to.
SCALED = {("cluster.x-k8s.io", "machinedeployments/scale"): {"get", "patch"},
          ("cluster.x-k8s.io", "machinepools/scale"): {"get", "patch"}}
UNSCALED = [("cluster.x-k8s.io", "machinedeployments"), ("apps", "deployments/scale")]
OURS = [("renzan.dev", name) for name in ("gangjobs", "gangjobs/status", "gangjobs/finalizers",
                                          "queues", "queues/status", "nodepools",
                                          "nodepools/status", "clusterpolicies",
                                          "clusterpolicies/status")]


class Rights:
    def __init__(self, client):
        self.client = client

    def allowed(self, user, groups, namespace, group, resource, verb, name=""):
        resource, _, subresource = resource.partition("/")
        answer = self.client.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {
            "user": user, "groups": ["system:authenticated", *groups],
            "resourceAttributes": {"group": group, "resource": resource, "verb": verb,
                                   "subresource": subresource, "namespace": namespace,
                                   "name": name}}})
        return answer["status"]["allowed"]

    def expect(self, rights, resources, user, groups, namespace, name=""):
        """The user must have exactly these rights on these resources."""
        for group, resource in resources:
            for verb in sorted(READ | WRITE):
                expected = verb in rights.get((group, resource), ())
                if self.allowed(user, groups, namespace, group, resource, verb, name) != expected:
                    sys.exit(f"FAILED: {user} {'may not' if expected else 'may'} {verb} "
                             f"{resource} {name} of group '{group}' in '{namespace}'")

    def resources(self):
        """All resources of the server, and rights that are not resources."""
        found = {("renzan.dev", "gangjobs/finalizers")}
        paths = {"": "/api/v1"}
        for group in self.client.get("/apis")["groups"]:
            paths[group["name"]] = "/apis/" + group["preferredVersion"]["groupVersion"]
        for group, path in paths.items():
            found |= {(group, item["name"]) for item in self.client.get(path)["resources"]}
        # Everybody may ask what he may do.
        return sorted(each for each in found if each[0] != "authorization.k8s.io")


def bind(client, namespace, role, user):
    client.post(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings", {
        "metadata": {"name": f"{user}-{role}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": user}]})


def test_controller(rights):
    user = "system:serviceaccount:renzan-system:renzan-controller"
    groups = ["system:serviceaccounts", "system:serviceaccounts:renzan-system"]
    resources = rights.resources()
    missing = {*CONTROLLER, *IN_OWN_NAMESPACE} - {*resources}
    if missing or ("", "secrets") not in resources or ("", "pods/exec") not in resources:
        sys.exit(f"FAILED: the server has not told all its resources: {missing} are missing")
    rights.expect(CONTROLLER, resources, user, groups, "ads")
    rights.expect(CONTROLLER | IN_OWN_NAMESPACE, resources, user, groups, "renzan-system")
    wait_until(lambda: rights.allowed(user, groups, "machines", "cluster.x-k8s.io",
                                      "machinepools/scale", "patch"), "the role gathers others")
    rights.expect(SCALED, [*SCALED, *UNSCALED], user, groups, "machines")
    leases = [("coordination.k8s.io", "leases")]
    rights.expect(ON_LEASE, leases, user, groups, "renzan-system", "renzan-controller")
    rights.expect(IN_OWN_NAMESPACE, leases, user, groups, "renzan-system", "other")


def test_by_namespace(rights):
    """After deploy/kubernetes/controller-by-namespace and a RoleBinding in the namespace ads."""
    user = "system:serviceaccount:renzan-system:renzan-controller"
    groups = ["system:serviceaccounts", "system:serviceaccounts:renzan-system"]
    resources = rights.resources()
    elsewhere = {of: verbs - JOBS.get(of, set()) for of, verbs in CONTROLLER.items()}
    rights.expect(CONTROLLER, resources, user, groups, "ads")
    rights.expect(elsewhere, resources, user, groups, "default")
    rights.expect(elsewhere | IN_OWN_NAMESPACE, resources, user, groups, "renzan-system")


def test_users(rights):
    client = rights.client
    client.post("/api/v1/namespaces", {"metadata": {"name": "ads"}})
    for role, user in ("edit", "alice"), ("view", "bob"), ("admin", "carol"):
        bind(client, "ads", role, user)
    edit = {("renzan.dev", "gangjobs"): READ | WRITE, ("renzan.dev", "gangjobs/status"): READ}
    # Standard roles pick up what is labelled for them after a moment; `admin` comes last.
    wait_until(lambda: rights.allowed("carol", [], "ads", "renzan.dev", "gangjobs", "create"),
               "the role `admin` contains GangJobs")
    for user, may in (("alice", edit), ("carol", edit),
                      ("bob", {("renzan.dev", "gangjobs"): READ,
                               ("renzan.dev", "gangjobs/status"): READ})):
        # Queues have no namespace, so rights in a namespace do not cover them.
        rights.expect(may, OURS[:3], user, [], "ads")
        rights.expect({}, OURS[3:], user, [], "")
        rights.expect({}, OURS, user, [], "default")
        # Nor what belongs to others' jobs: their pods, logs and events.
        # A port of the controller's pods serves the recorded cycles, with everybody's jobs.
        theirs = [("", each) for each in ("pods", "pods/log", "pods/exec", "pods/attach",
                                          "pods/portforward", "pods/proxy", "events", "services",
                                          "services/proxy", "secrets")]
        for namespace in "default", "renzan-system":
            rights.expect({}, theirs, user, [], namespace)
    rights.expect({each: READ | WRITE for each in OURS}, OURS, "root", ["system:masters"], "")


def test_network(client):
    """Anybody may reach the probes; only labelled namespaces the metrics."""
    container = client.get("/apis/apps/v1/namespaces/renzan-system/deployments/renzan-controller")[
        "spec"]["template"]["spec"]["containers"][0]
    served = {option: int(address.rpartition(":")[2]) for option, _, address in (
        word.partition("=") for word in container["command"]) if option in ("--listen", "--metrics")}
    rules = client.get("/apis/networking.k8s.io/v1/namespaces/renzan-system/networkpolicies/"
                       "renzan-controller")["spec"]["ingress"]
    opened = {port["port"]: rule.get("from") for rule in rules for port in rule["ports"]}
    labelled = [{"namespaceSelector": {"matchLabels": {"renzan.dev/metrics": "true"}}}]
    if opened != {served["--listen"]: None, served["--metrics"]: labelled}:
        sys.exit(f"FAILED: {served} are served, and {opened} are open")


def main():
    rights = Rights(Client(sys.argv[1]))
    if "--by-namespace" in sys.argv:
        test_by_namespace(rights)
        return
    test_network(rights.client)
    test_controller(rights)
    test_users(rights)


if __name__ == "__main__":
    main()
