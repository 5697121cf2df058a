#!/usr/bin/env python3
"""What the API server accepts as a GangJob and its status, and as amounts of a Queue: called by
manifests_test.sh.

  gang_job_schema_test.py KUBECONFIG [RENZAN]
  gang_job_schema_test.py --pods-of-all KUBECONFIG    are the templates of all GangJobs good pods?

With the program RENZAN, `renzan submit --print-config` judges the same values: the schema and the
job specification have the same bounds and defaults.
"""

import json
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from kube import ApiError, Client

# Pairs of the key in spec and the key of a job specification.
SPECIFIED = {
    "queue": "queue",
    "priority": "priority",
    "replicas": "replicas",
    "retries": "retries",
    "retryBackoff": "retry_backoff",
    "timeout": "timeout",
    "preemptible": "preemptible",
    "grandChallenge": "grand_challenge",
    "checkpoint.onStop": "checkpoint.on_stop",
    "checkpoint.onRequest": "checkpoint.on_request",
    "checkpoint.maxInterval": "checkpoint.max_interval",
    "topology.level": "constraints.topology",
    "topology.required": "constraints.topology_required",
    "template.spec.terminationGracePeriodSeconds": "grace",
}
# Of no use, or not until the user gives more keys.
WITHOUT_DEFAULT = {"topology.level", "topology.required",
                   "template.spec.terminationGracePeriodSeconds"}

DURATIONS = (["0", "0s", "500ms", "90s", "1.5h", "2d", "0010m", "3650d", "3651d"],
             ["", "1", "1.", "10", "1 s", "-1s", "+1s", "1e3s", "1.s", ".5s", "1.2.3s", "5M",
              "1h30m", "1w", " 1s", "1s ", 5])
QUANTITIES = [1, 0, "1", "100m", "0.5", ".5", "32Gi", "1e3", "1E", "5k"]
BAD_QUANTITIES = [-1, "-1", "", "x", "1GiB", "1 Gi", "1kk", "Gi", "1e", True]
CONTAINER = {"name": "main", "image": "x"}

# Key in spec: accepted values, refused values.
VALUES = {
    "queue": (["default", "a", "0", "a.b-c", "q" * 63],
              ["", "q" * 64, "Ads_1", "a/b", "-a", "a b", "ü"]),
    "priority": ([0, -1000000, 1000000], [-1000001, 1000001, 1.5, "high"]),
    "replicas": ([1, 100000], [0, -1, 100001, 1.5, "2..4"]),
    "minReplicas": ([1, 2], [0, -1, 100001, "1"]),
    "retries": ([0, 1000000], [-1, 1000001, 0.5]),
    "retryBackoff": DURATIONS,
    "timeout": DURATIONS,
    "startTimeout": DURATIONS,
    "preemptible": ([True, False], ["sometimes"]),
    "grandChallenge": ([True, False], ["always"]),
    "cancelled": ([True, False], ["soon"]),
    "held": ([True, False], ["soon"]),
    "checkpoint.onStop": ([True, False], ["maybe"]),
    "checkpoint.onRequest": ([True, False], ["maybe"]),
    "checkpoint.maxInterval": (["1ms", "0.5s", "10m", "3650d", "3651d"],
                               ["0", "0s", "0.00h", "", "1", "x", "10"]),
    "topology.level": (["rack", "zone", "host", "A.b_c-d", "l" * 63], ["", "l" * 64, ".a", "a/b"]),
    "topology.required": ([], [True]),  # without a level
    "template.spec.terminationGracePeriodSeconds": ([0, 30, 315360000], [-1, 315360001, "30s"]),
    "template.spec.containers": (
        [[CONTAINER], [CONTAINER, CONTAINER | {"name": "other"}],
         [CONTAINER | {"securityContext": {"privileged": False}}]],
        [[], None, [{"name": "main"}], [{"image": "x"}], [CONTAINER, CONTAINER], "main"]),
    "template.spec.nodeName": ([], ["node-1"]),
    "template.spec.schedulerName": (["renzan"], ["default-scheduler"]),
    "template.spec.restartPolicy": (["Never"], ["OnFailure", "Always"]),
    "template": ([], [None, {}, {"spec": {}}, {"spec": None}, "pod"]),
}
# What the job specification says about values where the two differ, and why that is intended.
DIFFERENCES = {
    # Queues are objects of the API, with its names.
    ("queue", "Ads_1"): True,
    # The workers' range is two fields.
    ("replicas", "2..4"): True,
    # No topology is no object.
    ("topology.level", ""): True,
    # A pod has seconds.
    ("template.spec.terminationGracePeriodSeconds", "30s"): True,
    # Ten years at most: no pattern can say that. The controller holds the job.
    ("retryBackoff", "3651d"): False,
    ("timeout", "3651d"): False,
    ("checkpoint.maxInterval", "3651d"): False,
}


def fail(what):
    sys.exit(f"FAILED: {what}")


def expect(condition, what):
    if not condition:
        fail(what)


def put(tree, key, value):
    """Sets what is at a key such as "checkpoint.onStop"."""
    *sections, last = key.split(".")
    branch = tree
    for section in sections:
        branch = branch.setdefault(section, {})
    branch[last] = value
    return tree


def at(tree, key):
    for part in key.split("."):
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


class Cluster:
    JOBS = "/apis/renzan.dev/v1alpha1/namespaces/default/gangjobs"
    QUEUES = "/apis/renzan.dev/v1alpha1/queues"

    def __init__(self, kubeconfig):
        self.client = Client(kubeconfig)

    def refusal(self, path, item):
        """Why the item is refused as invalid; None if it would be accepted. Nothing is kept."""
        try:
            self.client.post(path + "?dryRun=All", item)
            return None
        except ApiError as error:
            expect(error.status in (400, 422), f"{item} is answered by {error}")
            return error.message

    def expect_accepted(self, path, item):
        why = self.refusal(path, item)
        expect(why is None, f"{json.dumps(item)} is refused: {why}")

    def expect_refused(self, path, item):
        expect(self.refusal(path, item) is not None, f"{json.dumps(item)} is accepted")


def job(values=None, name="job"):
    """A job whose spec has these values."""
    spec = {"template": {"spec": {"containers": [CONTAINER]}}}
    for key, value in (values or {}).items():
        put(spec, key, value)
    return {"apiVersion": "renzan.dev/v1alpha1", "kind": "GangJob", "metadata": {"name": name},
            "spec": spec}


def queue(spec=None, name="queue"):
    return {"apiVersion": "renzan.dev/v1alpha1", "kind": "Queue", "metadata": {"name": name},
            "spec": spec or {}}


class JobSpecification:
    """Reads job specifications with the reader that the controller uses, too."""

    def __init__(self, program):
        self.program = program

    def print(self, keys):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            json.dump({"command": ["x"]} | keys, file)
            file.flush()
            return subprocess.run([self.program, "submit", file.name, "--print-config"],
                                  capture_output=True, text=True)

    def accepts(self, key, value):
        # Times of pods are in seconds; numbers of workers are text.
        if key == "template.spec.terminationGracePeriodSeconds" and isinstance(value, int):
            value = f"{value}s"
        elif key == "replicas" and not isinstance(value, str):
            value = str(value)
        ran = self.print(put({}, SPECIFIED[key], value))
        expect(ran.returncode in (0, 78), f"{ran.args}: {ran.stderr}")
        return ran.returncode == 0

    def defaults(self):
        """The defaults by key of a job specification, as text."""
        found, section = {}, ""
        for line in self.print({}).stdout.splitlines():
            if line.lstrip().startswith("#"):
                continue
            key, _, value = line.partition(":")
            if not line.startswith(" "):
                section = key
            name = f"{section}.{key.strip()}" if line.startswith(" ") else key
            found[name] = value.strip().strip('"')
        return found


def test_values(cluster, specification):
    for key, (good, bad) in VALUES.items():
        for value in good:
            cluster.expect_accepted(cluster.JOBS, job({key: value}))
        for value in bad:
            cluster.expect_refused(cluster.JOBS, job({key: value}))
        for value in good + bad if specification and key in SPECIFIED else []:
            expected = DIFFERENCES.get((key, value), value in good)
            expect(specification.accepts(key, value) == expected,
                   f"the schema and job_spec.cc differ about {key}: {value!r}")


def test_defaults(cluster, specification):
    made = cluster.client.post(cluster.JOBS + "?dryRun=All", job())["spec"]
    expected = {"queue": "default", "priority": 0, "replicas": 1, "retries": 0,
                "retryBackoff": "1s", "timeout": "0s", "startTimeout": "30m", "preemptible": True,
                "grandChallenge": False, "cancelled": False, "held": False,
                "checkpoint": {"onStop": False, "onRequest": False, "maxInterval": "10m"},
                "template": {"spec": {"containers": [CONTAINER]}}}
    expect(made == expected, f"the defaults are {made}")
    made = cluster.client.post(cluster.JOBS + "?dryRun=All", job({"topology.level": "rack"}))
    expect(made["spec"]["topology"] == {"level": "rack", "required": False},
           f"the topology becomes {made['spec']['topology']}")
    if specification is None:
        return
    defaults = specification.defaults()
    for key, name in SPECIFIED.items():
        if key not in WITHOUT_DEFAULT:
            value = at(expected, key)
            text = value if isinstance(value, str) else json.dumps(value)
            expect(defaults[name] == text, f"{key} is {text} by default, {name} {defaults[name]}")


def test_names(cluster):
    for name in "a", "a-1", "j" * 49:
        cluster.expect_accepted(cluster.JOBS, job(name=name))
    for name in "1a", "a.b", "a-", "A", "j" * 50:
        cluster.expect_refused(cluster.JOBS, job(name=name))
    cluster.expect_accepted(cluster.QUEUES, queue(name="q" * 63))
    cluster.expect_refused(cluster.QUEUES, queue(name="q" * 64))
    generated = job()
    generated["metadata"] = {"generateName": "job-"}
    cluster.expect_accepted(cluster.JOBS, generated)


def test_quantities(cluster):
    def worker(group, name, value):
        return job({"template.spec.containers": [
            CONTAINER | {"resources": {group: {name: value}}}]})

    for group in "requests", "limits":
        for value in [*QUANTITIES, 0.5]:
            cluster.expect_accepted(cluster.JOBS, worker(group, "cpu", value))
        for value in BAD_QUANTITIES:
            if value is not True:
                cluster.expect_refused(cluster.JOBS, worker(group, "memory", value))
    for group in "guaranteed", "limit":
        for name in "cpu", "memory", "pods", "nvidia.com/gpu", "example.com/nic":
            cluster.expect_accepted(cluster.QUEUES, queue({group: {name: 8}}))
        for value in QUANTITIES:
            cluster.expect_accepted(cluster.QUEUES, queue({group: {"cpu": value}}))
        for value in BAD_QUANTITIES:
            cluster.expect_refused(cluster.QUEUES, queue({group: {"cpu": value}}))
        cluster.expect_refused(cluster.QUEUES, queue({group: {"gpu": 8}}))


def test_unknown_fields(cluster):
    """Fields that the schema does not name are dropped, except in pods."""
    volumes = [{"name": "v", "emptyDir": {"medium": "Memory"}}]
    unknown = {"x": 1, "checkpoint.y": 1, "template.spec.hostNetwork": True,
               "template.spec.volumes": volumes,
               "template.metadata": {"labels": {"team": "ads"}, "name": "mine"}}
    made = cluster.client.post(cluster.JOBS + "?dryRun=All", job(unknown))["spec"]
    expect("x" not in made and "y" not in made["checkpoint"], f"unknown fields are kept: {made}")
    template = made["template"]
    expect(template["metadata"] == {"labels": {"team": "ads"}}, f"metadata: {template}")
    expect(template["spec"]["volumes"] == volumes and template["spec"]["hostNetwork"],
           f"fields of pods are dropped: {template}")


# As StatusObject() in gang_job.cc writes it; every field is different from its default.
STATUS = {
    "phase": "resizing", "attempts": 3, "replicas": 3, "gpus": 24,
    "placement": [{"node": "b", "workers": 2}, {"node": "a", "workers": 1}],
    "target": [{"node": "a", "workers": 4}],
    "reason": "Resizing", "message": "m" * 100000, "stopReason": "resized", "exitCode": 75,
    "startTime": "2026-01-02T03:04:05Z", "completionTime": "2026-01-02T03:04:06Z",
    "observedGeneration": 1,
    "conditions": [{"type": name, "status": status, "reason": "Resizing", "message": "m",
                    "lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": 1}
                   for name, status in (("Running", "True"), ("SpecApplied", "False"))],
    "facts": {"id": 2**53, "movedMs": 1, "startedMs": 1767323045000, "backfilled": True,
              "stoppingFor": 7,
              "waitingSinceMs": 1, "eligibleAtMs": 2, "lastResizeMs": 3, "runMs": 4,
              "attainedWorkerMs": 2**60, "preemptions": 5, "reservationYields": 6, "failures": 7,
              "requeues": 8, "firstStartedMs": 9, "endedMs": 10, "term": 11, "writer": "w",
              "checkpointRequest": "c", "preemptRequest": "p",
              "failedOn": ["d"], "reservation": [{"node": "c", "workers": 1}],
              "runTimeMs": [1, 2, 3, 4, 5], "checkpointCostMs": 12},
}
BAD_STATUSES = {
    "phase": ["unknown", "Running", "", 1], "attempts": [-1, "1"], "replicas": [-1], "gpus": [-1, "8"],
    "placement": [[{"node": "a"}], [{"workers": 1}], [{"node": "a", "workers": 0}], {}],
    "target": [[{"node": "a"}]], "exitCode": ["0"], "startTime": ["yesterday"],
    "observedGeneration": ["1"],
    "conditions": [[{"type": "Running"}],
                   [STATUS["conditions"][0] | {"status": "true"}]],
    "facts": [{"id": "1"}, {"backfilled": 1}, {"runMs": 0.5}],
}


def test_status(cluster):
    client, path = cluster.client, cluster.JOBS + "/status-test"
    made = client.post(cluster.JOBS, job(name="status-test") | {"status": STATUS})
    expect("status" not in made, "whoever creates a job sets its status")
    expect(made["metadata"]["generation"] == 1, "the generation begins elsewhere")
    # As the controller writes it: the whole object, with the version that it has seen.
    written = client.put(path + "/status", made | {"status": STATUS, "spec": {"priority": 5}
                                                   | made["spec"] | {"retries": 5}})
    expect(written["status"] == STATUS, f"of the status is left: {written['status']}")
    expect(written["spec"] == made["spec"], "the status subresource changes the spec")
    expect(written["metadata"]["generation"] == 1, "a status changes the generation")
    again = client.put(path, written | {"status": {"phase": "done"}})
    expect(again["status"] == STATUS, "the main resource changes the status")
    merged = client.patch(path, {"status": {"phase": "done"}, "spec": {"cancelled": True}})
    expect(merged["status"] == STATUS, "a patch of the main resource changes the status")
    expect(merged["metadata"]["generation"] == 2, "a spec does not change the generation")
    try:
        client.put(path + "/status", written)
        fail("a status is written over a newer version")
    except ApiError as error:
        expect(error.status == 409, f"an old version is answered by {error}")
    for key, values in BAD_STATUSES.items():
        for value in values:
            try:
                client.patch(path + "/status", {"status": {key: value}})
                fail(f"status.{key} = {value} is accepted")
            except ApiError as error:
                expect(error.status == 422, f"status.{key} = {value} is answered by {error}")
    for phase in ("pending", "running", "stopping", "resizing", "collecting", "done", "failed",
                  "cancelled", "timeout"):
        client.patch(path + "/status", {"status": {"phase": phase}})
    pruned = client.patch(path + "/status", {"status": {"facts": {"new": 1}}})
    expect("new" not in pruned["status"]["facts"], "unknown facts are kept")
    client.delete(path)


def test_descriptions(client):
    """Every field has a description for `kubectl explain`, except those of pods."""
    def check(schema, path):
        expect(".template." in path or schema.get("description"), f"{path} lacks its text")
        for name, field in schema.get("properties", {}).items():
            check(field, f"{path}.{name}")
        if "items" in schema:
            for name, field in schema["items"].get("properties", {}).items():
                check(field, f"{path}[].{name}")

    for name, sections in ("gangjobs", ("spec", "status")), ("queues", ("spec",)):
        definition = client.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
                                f"{name}.renzan.dev")
        fields = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        for section in sections:
            check(fields[section], f"{name}.{section}")


def test_pods_of_all(client):
    jobs = client.get("/apis/renzan.dev/v1alpha1/gangjobs")["items"]
    expect(jobs, "there are no GangJobs")
    for each in jobs:
        template = each["spec"]["template"]
        spec = template["spec"] | {"schedulerName": "renzan", "restartPolicy": "Never"}
        client.post("/api/v1/namespaces/default/pods?dryRun=All", {
            "metadata": template.get("metadata", {}) | {"name": each["metadata"]["name"] + "-0-0"},
            "spec": spec})


def main():
    if sys.argv[1] == "--pods-of-all":
        test_pods_of_all(Client(sys.argv[2]))
        return
    cluster = Cluster(sys.argv[1])
    test_descriptions(cluster.client)
    specification = JobSpecification(sys.argv[2]) if len(sys.argv) > 2 else None
    test_defaults(cluster, specification)
    test_values(cluster, specification)
    test_names(cluster)
    test_quantities(cluster)
    test_unknown_fields(cluster)
    test_status(cluster)


if __name__ == "__main__":
    main()
