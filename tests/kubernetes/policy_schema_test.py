#!/usr/bin/env python3
"""What the API server accepts as a Queue, a NodePool, a ClusterPolicy and their status: called by
manifests_test.sh.

  policy_schema_test.py KUBECONFIG
"""

import sys

sys.dont_write_bytecode = True
from gang_job_schema_test import BAD_QUANTITIES, DURATIONS, QUANTITIES, at, expect, fail, put
from kube import ApiError, Client

API = "/apis/renzan.dev/v1alpha1"
POSITIVE_DURATIONS = (["1ms", "0.5s", "3m", "3651d"], ["0", "0s", "", "1", "x", 5])
SCALE = {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDeployment",
         "namespace": "machines", "name": "gpu"}
CAP = {"namespace": "ads", "maxGpus": 8}
RACK = {"level": "rack", "label": "example.com/rack"}

# By plural: the kind, the least spec, and by key of spec the values that are accepted and refused.
KINDS = {
    "clusterpolicies": ("ClusterPolicy", {}, {
        "scheduling.order": (["least_attained_service", "gittins", "first_come"], ["random", ""]),
        "scheduling.serviceLevels": ([[], ["1h"], ["1h", "2d"]], [["0s"], ["soon"], "1h", [1]]),
        "scheduling.minBetweenResizes": DURATIONS,
        "scheduling.maxCheckpointInterval": POSITIVE_DURATIONS,
        "scheduling.overdueAfter": DURATIONS,
        "userCaps": ([[], [CAP], [CAP | {"maxGpus": 0}, CAP | {"namespace": "b"}]],
                     [[CAP, CAP], [{"namespace": "ads"}], [CAP | {"maxGpus": -1}],
                      [CAP | {"namespace": "Ads"}], [CAP | {"maxGpus": 1000000001}]]),
        "overrides": ([[{"namespace": "ads", "until": "2026-02-03T04:05:06Z"}],
                       [CAP | {"until": "2026-02-03T04:05:06Z"}] * 2],
                      [[CAP], [CAP | {"until": "tomorrow"}], [CAP | {"until": 5}]]),
        "limits.maxPriority": ([-1000000, 0, 1000000], [1000001, -1000001, "high"]),
        "limits.maxPendingJobs": ([0, 1000000000], [-1, 1000000001]),
        "limits.notPreemptible": ([True, False], ["maybe"]),
        "limits.grandChallenge": ([True, False], [1]),
        "limits.exemptNamespaces": ([[], ["ads", "b"]], [["ads", "ads"], ["Ads"], [""]]),
        "budgetPerHour": ([0, 12.5, 1e12], [-1, 1e13, "much"]),
        "topology": ([[], [RACK], [RACK, {"level": "row", "label": "row"}]],
                     [[{"level": "rack"}], [RACK | {"level": "a/b"}], [RACK | {"label": "a b"}]]),
        "spotNotice": DURATIONS,
        "retention.keepEndedFor": DURATIONS,
    }),
    "queues": ("Queue", {}, {
        "guaranteed": ([{}, {"cpu": 8}], ["much"]),
        "limit": ([{}, {"nvidia.com/gpu": "8"}], ["much"]),
        "parent": (["research"], ["", "a" * 64, 5, ["research"]]),
        "notPreemptible": ([True, False], ["maybe"]),
        "maxPriority": ([-1000000, 0, 1000000], [1000001, -1000001, "high"]),
        "members": ([{"users": ["ann", "system:serviceaccount:ads:trainer"]}, {"groups": ["ml"]},
                     {"namespaces": ["ads"]}, {"users": ["ann"], "groups": ["ml", "vision"]}],
                    [{}, {"users": []}, {"groups": []}, {"namespaces": []}, {"users": [""]},
                     {"users": "ann"}, {"users": ["ann", "ann"]}, {"namespaces": ["Ads"]}, "ann"]),
    }),
    "nodepools": ("NodePool", {}, {
        "capacity": ([{"cpu": each} for each in QUANTITIES] + [{"nvidia.com/gpu": 8}],
                     [{"cpu": each} for each in BAD_QUANTITIES] + [{"gpu": 8}]),
        "labels": ([{}, {"a": "b"}], [{"a": 1}, {"a": "b" * 64}]),
        "taints": ([[], [{"key": "a", "effect": "NoSchedule"}],
                    [{"key": "a", "value": "b", "effect": "NoExecute"}]],
                   [[{"key": "a"}], [{"key": "a", "effect": "Never"}], [{"effect": "NoExecute"}]]),
        "spot": ([True, False], ["often"]),
        "pricePerHour": ([0, 9.5, 1000000], [-1, 1000001]),
        "boot": POSITIVE_DURATIONS,
        "idle": DURATIONS,
        "interruptionsPerHour": ([0, 0.1, 3600], [-1, 3601]),
        "minNodes": ([0, 100000], [-1, 100001, 0.5]),
        "maxNodes": ([0, 100000], [-1, 100001]),
        "scaleRef": ([], [SCALE, SCALE | {"name": ""}]),  # without capacity and maxNodes
    }),
}
DEFAULTS = {
    "clusterpolicies": {
        "scheduling": {"order": "least_attained_service",
                       "serviceLevels": ["1h", "4h", "16h", "64h", "256h"],
                       "minBetweenResizes": "10m", "maxCheckpointInterval": "10m",
                       "overdueAfter": "24h"},
        "limits": {"maxPriority": 0, "maxPendingJobs": 10000, "notPreemptible": True,
                   "grandChallenge": False},
        "topology": [{"level": "zone", "label": "topology.kubernetes.io/zone"},
                     {"level": "rack", "label": "renzan.dev/rack"}],
        "spotNotice": "2m", "retention": {"keepEndedFor": "0s"}},
    "queues": {"notPreemptible": True},
    "nodepools": {"spot": False, "pricePerHour": 0, "boot": "3m", "idle": "10m",
                  "interruptionsPerHour": 0, "minNodes": 0},
}
CONDITION = {"type": "Accepted", "status": "False", "reason": "Invalid", "message": "m",
             "lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": 1}
# As policies.cc, queue_keeper.cc and pool_keeper.cc write them.
STATUSES = {
    "clusterpolicies": {"observedGeneration": 1, "message": "m", "holds": "{}",
                        "conditions": [CONDITION]},
    "queues": {"observedGeneration": 1, "pending": 1, "running": 2, "guaranteed": {"cpu": "8"},
               "used": {"cpu": "1500m", "memory": "3Gi"}, "borrowed": {"cpu": "0"}, "message": "m",
               "holds": "{}", "conditions": [CONDITION, CONDITION | {"type": "Guaranteed"},
                              CONDITION | {"type": "HasParent"}]},
    "nodepools": {"observedGeneration": 1, "nodes": 3, "ready": 2, "booting": 1, "wanted": 4,
                  "message": "m", "conditions": [CONDITION, CONDITION | {"type": "Scalable"}],
                  "facts": {"bootingSinceMs": [1767323045000],
                            "idleSinceMs": {"gpu-1": 1767323045000}}},
}


def item(plural, spec, name="default"):
    return {"apiVersion": "renzan.dev/v1alpha1", "kind": KINDS[plural][0],
            "metadata": {"name": name}, "spec": spec}


def refusal(client, plural, spec):
    try:
        client.post(f"{API}/{plural}?dryRun=All", item(plural, spec))
        return None
    except ApiError as error:
        expect(error.status in (400, 422), f"{spec} is answered by {error}")
        return error.message


def test_values(client, plural):
    for key, (good, bad) in KINDS[plural][2].items():
        for value in good:
            why = refusal(client, plural, put({}, key, value))
            expect(why is None, f"{plural} {key}: {value!r} is refused: {why}")
        for value in bad:
            expect(refusal(client, plural, put({}, key, value)) is not None,
                   f"{plural} {key}: {value!r} is accepted")


def test_scaled_pools(client):
    """The machines to be bought have to be known beforehand."""
    whole = {"scaleRef": SCALE, "capacity": {"cpu": 8}, "maxNodes": 3}
    expect(refusal(client, "nodepools", whole) is None, "a scaled pool is refused")
    for key in "capacity", "maxNodes":
        part = {name: value for name, value in whole.items() if name != key}
        expect(refusal(client, "nodepools", part) is not None, f"a pool without {key} is accepted")
    for key, value in (("apiVersion", "a b"), ("kind", "machine"), ("name", "A"),
                       ("namespace", "A"), ("resource", "")):
        expect(refusal(client, "nodepools", whole | {"scaleRef": SCALE | {key: value}}) is not None,
               f"scaleRef.{key} = {value!r} is accepted")


def test_defaults(client, plural):
    made = client.post(f"{API}/{plural}?dryRun=All", item(plural, {}))["spec"]
    expect(made == DEFAULTS[plural], f"the defaults of {plural} are {made}")


def test_status(client, plural):
    path = f"{API}/{plural}"
    made = client.post(path, item(plural, {}) | {"status": STATUSES[plural]})
    expect("status" not in made, "whoever creates it sets its status")
    written = client.put(f"{path}/default/status", made | {"status": STATUSES[plural]})
    expect(written["status"] == STATUSES[plural], f"of the status is left: {written['status']}")
    expect(written["metadata"]["generation"] == 1, "a status changes the generation")
    try:
        client.put(f"{path}/default/status", made | {"status": {"conditions": [{"type": "A"}]}})
        fail("a condition without a value is accepted")
    except ApiError as error:
        expect(error.status in (409, 422), f"a bad status is answered by {error}")
    client.delete(f"{path}/default")


def test_descriptions(client, plural):
    def check(schema, path):
        expect(schema.get("description"), f"{path} lacks its text")
        for name, field in schema.get("properties", {}).items():
            check(field, f"{path}.{name}")

    definition = client.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
                            f"{plural}.renzan.dev")
    fields = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    for section in "spec", "status":
        check(at(fields, section), f"{plural}.{section}")


def main():
    client = Client(sys.argv[1])
    for plural in KINDS:
        test_descriptions(client, plural)
        test_defaults(client, plural)
        test_values(client, plural)
        test_status(client, plural)
    test_scaled_pools(client)


if __name__ == "__main__":
    main()
