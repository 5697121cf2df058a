#!/usr/bin/env python3
"""The controller on a real control plane with fake nodes: gangs, waiting, preemption, replicas that
are killed, a server that hangs, nodes that are taken away and nodes that die. `controller_test.py
RENZAN`; exits with 77 where there is no control plane."""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from kube import wait_until  # noqa: E402
from machines import machines_are_bought_and_returned  # noqa: E402
from proxy import start_behind_proxies  # noqa: E402
from rights_used import (AUDIT_POLICY, STRICT_OWNERS, rights_are_those_that_are_used,  # noqa: E402
                         the_right_on_finalizers_is_needed)
from world import GANG_JOBS, PODS, expect, kind, testing  # noqa: E402

POLICIES = "/apis/renzan.dev/v1alpha1/clusterpolicies"
QUEUES = "/apis/renzan.dev/v1alpha1/queues"
GPU = "nvidia.com/gpu"


def a_gang_runs_to_its_end(world):
    world.submit("gang", replicas=6, gpus=4, run_seconds=2)
    # Until an API server has discovered the new kinds, seconds after they were made, it refuses
    # pods that they own: then the next attempt is the one that runs.
    attempt = world.wait_for("gang", "done")["attempts"] - 1
    names = {pod["metadata"]["name"] for pod in world.client.get(PODS)["items"]}
    expect(names >= {f"gang-{attempt}-{rank}" for rank in range(6)}, f"the pods are {names}")
    out = world.kubectl("wait", "--for=condition=Complete", "gangjob/gang", "--timeout=5s")
    expect("condition met" in out, out)
    expect("Started" in world.kubectl("describe", "gangjob", "gang"), "no event tells its start")


def who_waits_says_why(world):
    world.submit("huge", replicas=9, gpus=8, run_seconds=1)
    message = world.wait_for_message("huge")
    expect("on the empty cluster" in message, message)
    expect(message in world.kubectl("get", "gangjobs"), "kubectl get does not show it")
    expect(not any(pod["metadata"]["name"].startswith("huge")
                   for pod in world.client.get(PODS)["items"]), "a waiting job has pods")
    world.client.delete(f"{GANG_JOBS}/huge")


def a_higher_priority_preempts(world):
    world.submit("low", replicas=4, gpus=8, run_seconds=600)
    world.wait_for("low", "running")
    world.allow_priority(5)
    world.submit("high", replicas=4, gpus=8, run_seconds=2, priority=5)
    world.wait_for("high", "done")
    status = world.wait_for("low", "running")
    expect(status["attempts"] == 2, f"low has {status['attempts']} attempts")
    world.cancel("low")
    world.client.delete(f"{POLICIES}/default")


def users_ask_for_checkpoints_stops_and_sizes(world):
    world.submit("asked", replicas=2, gpus=4, run_seconds=600)
    world.wait_for("asked", "running")
    world.kubectl("annotate", "gangjob", "asked", "renzan.dev/request-checkpoint=now")
    # It is running by its status before its pods exist.
    wait_until(lambda: any("renzan.dev/checkpoint-request" in pod["metadata"]["annotations"]
                           for pod in world.client.get(PODS)["items"]
                           if pod["metadata"]["name"] == "asked-0-1"), "the pods are asked")
    world.kubectl("annotate", "gangjob", "asked", "renzan.dev/request-preempt=now")
    wait_until(lambda: world.status("asked")["attempts"] == 2, "it is stopped, and starts again")
    world.wait_for("asked", "running")
    world.client.patch(f"{GANG_JOBS}/asked", {"spec": {"replicas": 3}})
    wait_until(lambda: world.status("asked")["replicas"] == 3, "it has another size")
    world.wait_for("asked", "running")
    services = world.client.get("/api/v1/namespaces/default/services")["items"]
    expect("asked-workers" in {each["metadata"]["name"] for each in services}, "no service")
    world.cancel("asked")


def a_killed_leader_is_replaced(world):
    world.submit("kept", replicas=2, gpus=8, run_seconds=600)
    world.wait_for_workers("kept", 2)
    leader = world.leader()
    world.leading().process.kill()
    world.submit("meanwhile", replicas=2, gpus=8, run_seconds=1)
    begun = time.monotonic()
    world.wait_for("meanwhile", "done")
    expect(world.leader() != leader, "nobody else leads")
    print(f"a killed leader was replaced, and a job done, in {time.monotonic() - begun:.1f} s")
    expect(world.status("kept")["attempts"] == 1, "a gang was disturbed by that")
    world.cancel("kept")


def a_server_that_hangs_loses_nothing(world):
    world.submit("steady", replicas=3, gpus=8, run_seconds=600)
    world.wait_for_workers("steady", 3)
    server = int(pathlib.Path(f"{world.run}/api.pid").read_text().split()[0])
    os.kill(server, 19)
    time.sleep(12)  # longer than the leader may go without renewing its Lease
    os.kill(server, 18)
    world.submit("after", replicas=1, gpus=8, run_seconds=1)
    world.wait_for("after", "done")
    expect(world.status("steady")["attempts"] == 1, "a gang was disturbed by that")
    world.cancel("steady")


def a_node_that_is_taken_away_is_left(world):
    world.submit("moves", replicas=2, gpus=4, run_seconds=600)
    world.wait_for("moves", "running")
    node = next(iter(world.nodes_of("moves")))
    world.kubectl("taint", "nodes", node, "aws-node-termination-handler/spot-itn=:NoSchedule")
    wait_until(lambda: world.status("moves")["attempts"] == 2
               and world.status("moves")["phase"] == "running", "moves has moved")
    expect(node not in world.nodes_of("moves"), "it went back there")
    world.kubectl("taint", "nodes", node, "aws-node-termination-handler/spot-itn-")
    world.cancel("moves")


def a_node_that_dies_is_replaced(world):
    world.submit("lost", replicas=2, gpus=8, run_seconds=600)
    world.wait_for("lost", "running")
    node = sorted(world.nodes_of("lost"))[0]
    world.client.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {
        "fake-nodes/dead": "true"}}})
    wait_until(lambda: world.status("lost")["attempts"] == 2
               and world.status("lost")["phase"] == "running", "lost runs again")
    expect(node not in world.nodes_of("lost"), "it went back there")
    world.client.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {
        "fake-nodes/dead": None}}})
    world.cancel("lost")


def answers_that_are_lost_do_no_harm(world):
    """The request was carried out, and nobody knows."""
    proxy, jobs = world.leading().proxy, [f"lost-{i}" for i in range(4)]
    before = len(proxy.passed)
    requests = ("PUT .*/gangjobs/lost-./status", "POST .*/services", "POST .*/default/pods",
                "POST .*/pods/lost-.-.-./binding")
    for request in requests:
        proxy.lose_answer(request)
    for job in jobs:
        world.submit(job, replicas=2, gpus=4, run_seconds=1)
    for job in jobs:
        status = world.wait_for(job, "done")
        expect(status["facts"].get("failures", 0) == 0, f"it counts as a failure: {status}")
    for request in requests:
        answer = proxy.status_of(request, before)
        expect(answer in (200, 201), f"{request} was not carried out: {answer}")


def a_binding_whose_answer_is_lost_costs_no_attempt(world):
    proxy, before = world.leading().proxy, len(world.leading().proxy.passed)
    request = "POST .*/pods/once-0-1/binding"
    proxy.lose_answer(request)
    world.submit("once", replicas=2, gpus=4, run_seconds=1)
    expect(world.wait_for("once", "done")["attempts"] == 1, "it started again")
    expect(proxy.status_of(request, before) == 201, "it was not carried out")


def a_pod_that_no_watch_has_shown_is_missed(world):
    proxy = world.leading().proxy
    proxy.stall("GET /api/v1/pods")
    world.submit("unseen", replicas=1, gpus=8, run_seconds=600)
    world.wait_for("unseen", "running")
    wait_until(lambda: proxy.count("POST .*/pods/unseen-0-0/binding"), "its pod is bound")
    world.client.delete(f"{PODS}/unseen-0-0", {"gracePeriodSeconds": 0})
    proxy.expire()
    wait_until(lambda: world.status("unseen")["attempts"] == 2
               and world.status("unseen")["phase"] == "running", "it runs again")
    world.cancel("unseen")


def a_missing_claim_is_named(world):
    world.client.post(GANG_JOBS, {
        **kind("GangJob"), "metadata": {"name": "claims"}, "spec": {"template": {
            "metadata": {"annotations": {"fake-nodes/run-seconds": "1"}},
            "spec": {"containers": [{"name": "main", "image": "trainer"}], "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "clicks"}}]}}}})
    message = world.wait_for_message("claims", "clicks")
    expect("there is no PersistentVolumeClaim clicks in the namespace default" in message, message)
    expect(not any(pod["metadata"]["name"].startswith("claims")
                   for pod in world.client.get(PODS)["items"]), "it takes room all the same")
    world.client.post("/api/v1/namespaces/default/persistentvolumeclaims", {
        "metadata": {"name": "clicks"}, "spec": {
            "accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}})
    world.wait_for("claims", "done")


def operators_see_what_happened(world):
    leading = world.leading()
    following = next(each for each in world.replicas if each is not leading)
    expect(following.fetch("recorded cycles", "/debug/cycles")[0] == 503, "a follower has cycles")
    # Whoever may scrape metrics must not see everybody's jobs.
    expect(leading.fetch("probes and metrics", "/debug/cycles")[0] == 404, "cycles at the probes")
    status, recording = leading.fetch("recorded cycles", "/debug/cycles")
    expect(status == 200, f"no recorded cycles: {status}")
    path = pathlib.Path(world.run) / "cycles.zst"
    path.write_bytes(recording)

    def replay(path, *arguments):
        done = subprocess.run([world.program, "cluster", "replay", path, *arguments],
                              capture_output=True, text=True)
        expect(done.returncode == 0, f"replay: {done.returncode} {done.stdout} {done.stderr}")
        return done.stdout

    # Includes earlier processes' logs.
    for file in pathlib.Path(world.run).glob("replica-*/cycles.zst*"):
        print(file.parent.name, file.name, replay(file).splitlines()[-1])
    cycles = json.loads(replay(path, "--json"))["cycles"]
    print(f"{len(cycles)} cycles replayed, {len(recording)} bytes")
    expect(any(cycle["decisions"] for cycle in cycles), "they have decided nothing")
    story = replay(path, "--explain", "default/moves")
    expect("node leaving" in story, f"it does not say why moves has moved: {story}")

    told = collections.defaultdict(set)
    for replica in world.replicas:
        for line in (replica.folder / "decisions").read_text().splitlines():
            decision = json.loads(line)
            expect({"time", "cycle", "decision", "cause"} <= decision.keys(), line)
            of = decision["job"]["name"] if "job" in decision else decision["pool"]
            told[of].add((decision["decision"], decision["cause"]["reason"]))
    expect(("start", "fits") in told["gang"], f"of gang the log tells {told['gang']}")
    expect(("stop", "preempted") in told["low"], f"of low the log tells {told['low']}")
    expect(any(kind == "wait" for kind, _ in told["huge"]), "it does not say why huge waits")
    expect({("scale_out", "demand"), ("scale_in", "idle")} <= told["bought"], told["bought"])

    metrics = leading.fetch("probes and metrics", "/metrics")[1].decode()
    sample = re.compile(r'# (HELP|TYPE) \w+ .+|\w+(\{(\w+="[^"\\\n]*",?)+\})? [-+0-9.e]+(Inf)?')
    for line in metrics.splitlines():
        expect(sample.fullmatch(line), f"not of Prometheus: {line}")
    for name in ("renzan_leads 1", 'renzan_attempts_total{end="cancelled"}',
                 'renzan_api_requests_total{verb="bind",code="2xx"}', "renzan_recorded_cycles "):
        expect(name in metrics, f"no {name} in the metrics: {metrics}")


def a_policy_caps_and_limits_and_is_relaxed(world):
    def apply(spec):
        world.client.patch(f"{POLICIES}/default", {"spec": spec})

    world.client.post(POLICIES, {**kind("ClusterPolicy"), "metadata": {"name": "default"}, "spec": {
        "userCaps": [{"namespace": "default", "maxGpus": 8}], "limits": {"maxPriority": 5}}})
    world.kubectl("wait", "--for=condition=Accepted", "clusterpolicy/default", "--timeout=180s")
    world.submit("first", replicas=1, gpus=8, run_seconds=600)
    world.wait_for("first", "running")
    world.submit("capped", replicas=1, gpus=8, run_seconds=1)
    world.wait_for_message("capped")
    expect(world.status("capped")["reason"] == "UserCap", world.status("capped"))
    apply({"userCaps": [{"namespace": "default", "maxGpus": 16}]})
    world.wait_for("capped", "done")
    world.submit("urgent", replicas=1, gpus=1, run_seconds=1, priority=6)
    message = world.wait_for_message("urgent")
    expect("priority 6" in message and "maxPriority" in message, message)
    # One that cannot be used changes nothing.
    twice = {"level": "rack", "label": "rack"}
    apply({"limits": {"maxPriority": 6}, "topology": [twice, twice]})
    world.kubectl("wait", "--for=condition=Accepted=false", "clusterpolicy/default",
                  "--timeout=180s")
    expect(world.status("urgent")["phase"] == "pending", "a wrong policy counts")
    apply({"topology": [twice], "retention": {"keepEndedFor": "1s"}})
    wait_until(lambda: "urgent" not in world.kubectl("get", "gangjobs"),
               "what has ended is deleted")
    apply({"retention": None})
    world.cancel("first")
    world.client.delete(f"{POLICIES}/default")


def queues_say_what_holds_and_what_is_used(world):
    def expect_condition(name):
        world.kubectl("wait", f"--for=condition={name}", "queues.renzan.dev/default",
                      "--timeout=180s")

    world.client.post(QUEUES, {**kind("Queue"), "metadata": {"name": "default"},
                               "spec": {"guaranteed": {GPU: 8}, "limit": {GPU: "16"}}})
    expect_condition("Accepted")
    expect_condition("Guaranteed")
    world.submit("counted", replicas=2, gpus=6, run_seconds=600)
    # What has been written of the job: a leader that comes after counts it, too.
    world.wait_for("counted", "running")
    status = wait_until(lambda: (status := world.client.get(f"{QUEUES}/default")["status"])
                        and status["running"] == 1 and status, "the job is counted")
    expect((status["used"][GPU], status["borrowed"][GPU]) == ("12", "4"), status)
    row = world.kubectl("get", "queues.renzan.dev", "--no-headers").split()
    expect(row[:-1] == ["default", "True", "8", "16", "12", "4", "0", "1"], row)
    world.client.patch(f"{QUEUES}/default", {"spec": {"guaranteed": {GPU: 24}}})
    expect_condition("Accepted=false")
    status = world.client.get(f"{QUEUES}/default")["status"]
    expect("spec.limit only 16" in status["message"] and status["guaranteed"] == {GPU: "8"}, status)
    world.client.patch(f"{QUEUES}/default", {"spec": {"guaranteed": {GPU: 10000}, "limit": None}})
    expect_condition("Guaranteed=false")
    expect_condition("Accepted")
    message = world.client.get(f"{QUEUES}/default")["status"]["message"]
    expect("guaranteed 10000 nvidia.com/gpu, but there are only" in message, message)
    world.client.delete(f"{QUEUES}/default")
    world.cancel("counted")


def main():
    with tempfile.TemporaryDirectory() as folder:
        policy, audit_log = (pathlib.Path(folder) / name for name in ("policy.json", "audit.log"))
        policy.write_text(json.dumps(AUDIT_POLICY))
        with testing(up=["--manager=--node-monitor-grace-period=20s",
                         "--manager=--node-monitor-period=1s",
                         f"--api=--audit-policy-file={policy}",
                         f"--api=--audit-log-path={audit_log}", *STRICT_OWNERS],
                     nodes=["--count=4", "--lease-s=1"]) as world:
            start_behind_proxies(world, 2, "--decision-log=decisions", "--record=cycles.zst")
            for scenario in (
                    a_gang_runs_to_its_end, who_waits_says_why, a_higher_priority_preempts,
                    users_ask_for_checkpoints_stops_and_sizes,
                    a_policy_caps_and_limits_and_is_relaxed,
                    queues_say_what_holds_and_what_is_used, machines_are_bought_and_returned,
                    a_killed_leader_is_replaced, a_server_that_hangs_loses_nothing,
                    a_node_that_is_taken_away_is_left, a_node_that_dies_is_replaced,
                    answers_that_are_lost_do_no_harm,
                    a_binding_whose_answer_is_lost_costs_no_attempt,
                    a_pod_that_no_watch_has_shown_is_missed,
                    a_missing_claim_is_named, operators_see_what_happened):
                world.play(scenario, world)
            world.stop_replicas()
            world.play(rights_are_those_that_are_used, world, audit_log)
            world.play(the_right_on_finalizers_is_needed, world)


if __name__ == "__main__":
    main()
