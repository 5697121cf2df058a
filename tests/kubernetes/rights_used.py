"""That the controller uses every right that it has, as the API server's audit log tells. A part of
controller_test.py."""

import json

from kube import ApiError, Client, wait_until
from world import GANG_JOBS, PODS, expect

AUDIT_POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [
    {"level": "Metadata", "omitStages": ["RequestReceived"],
     "users": ["system:serviceaccount:renzan-system:renzan-controller"]},
    {"level": "None"}]}
# Whoever says that a GangJob may go only after its pods needs a right on it.
STRICT_OWNERS = ["--api=--enable-admission-plugins=OwnerReferencesPermissionEnforcement"]
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/renzan-controller"
JOBS_ROLE = ROLE + "-jobs"


def rights_are_those_that_are_used(world, audit_log):
    granted = set()
    for path in (ROLE, JOBS_ROLE, "/apis/rbac.authorization.k8s.io/v1/namespaces/renzan-system/roles/"
                 "renzan-controller",
                 # Used by machines_are_bought_and_returned.
                 "/apis/rbac.authorization.k8s.io/v1/clusterroles/scale-deployments"):
        for rule in world.client.get(path)["rules"]:
            granted |= {(verb, group, resource) for verb in rule["verbs"]
                        for group in rule["apiGroups"] for resource in rule["resources"]}
    used = set()
    for line in audit_log.read_text().splitlines():
        event = json.loads(line)
        what = event.get("objectRef")
        if not what or "resource" not in what:
            continue
        resource = "/".join(filter(None, [what["resource"], what.get("subresource")]))
        used.add((event["verb"], what.get("apiGroup", ""), resource))
        # machines_are_bought_and_returned withholds that right for a while.
        if resource != "deployments/scale":
            expect(event["responseStatus"]["code"] != 403,
                   f"it asks for what it may not do: {event}")
    expect(used <= granted, f"it does more than its role says: {used - granted}")
    # That right is not used by a request.
    granted.remove(("update", "renzan.dev", "gangjobs/finalizers"))
    expect(granted <= used, f"its role grants what nothing needs: {granted - used}")


def the_right_on_finalizers_is_needed(world):
    controller = Client(world.controller_config)
    world.submit("owner", replicas=1, gpus=1, run_seconds=1)
    job = world.client.get(f"{GANG_JOBS}/owner")
    pod = {"metadata": {"name": "owned", "ownerReferences": [{
               "apiVersion": job["apiVersion"], "kind": job["kind"], "name": "owner",
               "uid": job["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}]},
           "spec": {"containers": [{"name": "main", "image": "trainer"}]}}

    def is_refused():
        try:
            controller.post(f"{PODS}?dryRun=All", pod)
        except ApiError as error:
            expect(error.status == 403 and "blockOwnerDeletion" in error.message, str(error))
            return True
        return False

    expect(not is_refused(), "the controller may not create pods")
    rules = [rule for rule in world.client.get(JOBS_ROLE)["rules"]
             if rule["resources"] != ["gangjobs/finalizers"]]
    world.client.patch(JOBS_ROLE, {"rules": rules})
    wait_until(is_refused, "pods are refused without the right")
