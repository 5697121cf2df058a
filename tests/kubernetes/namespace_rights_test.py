#!/usr/bin/env python3
"""The controller with deploy/kubernetes/controller-by-namespace, on a real control plane: what it
does where it may run jobs, and where not. `namespace_rights_test.py RENZAN`; exits with 77 where
there is no control plane."""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from kube import ApiError, Client  # noqa: E402
from world import DEPLOY, PODS, expect, testing  # noqa: E402


def may_create_pods(world):
    try:
        Client(world.controller_config).post(f"{PODS}?dryRun=All", {
            "metadata": {"name": "probe"},
            "spec": {"containers": [{"name": "main", "image": "x"}]}})
        return True
    except ApiError as error:
        expect(error.status == 403, str(error))
        return False


def applying_it_takes_the_right_away(world):
    expect(may_create_pods(world), "the controller may not create pods")
    world.kubectl("apply", "-k", str(DEPLOY / "1.20/controller-by-namespace"))
    expect(not may_create_pods(world), "the controller may create pods everywhere")


def jobs_wait_for_the_right(world):
    world.start_replica("--rights-by-namespace")
    world.submit("early", replicas=2, gpus=1, run_seconds=1)
    message = world.wait_for_message("early", "has no right")
    expect("the controller has no right to create pods in namespace 'default'" in message, message)
    world.kubectl("create", "rolebinding", "renzan-controller-jobs",
                  "--clusterrole=renzan-controller-jobs",
                  "--serviceaccount=renzan-system:renzan-controller")
    world.wait_for("early", "done")
    expect("orbidden" not in world.leading().said(), "it tried what it may not")


def main():
    with testing(nodes=["--count=1"]) as world:
        for scenario in (applying_it_takes_the_right_away, jobs_wait_for_the_right):
            world.play(scenario, world)


if __name__ == "__main__":
    main()
