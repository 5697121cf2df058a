#!/usr/bin/env python3
"""The controller against a control plane in trouble: the API server killed and started again,
watches that find their version compacted, a Lease that is taken away, a storm of conflicts, clocks
that jump, and a leader that wakes up when another one leads.
`conformance_test.py RENZAN`; exits with 77 where there is no control plane."""

import datetime
import http.client
import json
import pathlib
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from api_server import ApiServer  # noqa: E402
from kube import ApiError, wait_until  # noqa: E402
from proxy import start_behind_proxies  # noqa: E402
from wall_clock import WallClock, compiler  # noqa: E402
from world import GANG_JOBS, LEASE, PATIENT, PODS, expect, testing  # noqa: E402


def is_up(world):
    try:
        return world.client.get("/readyz") == "ok"
    except (OSError, http.client.HTTPException, ApiError):
        return False


def a_server_that_is_killed_and_forgets_the_past_loses_nothing(world):
    world.submit("steady", replicas=3, gpus=8, run_seconds=600)
    world.wait_for_workers("steady", 3)
    world.submit("ends-meanwhile", replicas=1, gpus=8, run_seconds=1)
    server = ApiServer(world.run)
    before = world.client.get(PODS)["metadata"]["resourceVersion"]
    world.submit("waits", replicas=1, gpus=8, run_seconds=1)
    server.kill()
    server.compact()
    time.sleep(2)
    server.start()
    wait_until(lambda: is_up(world), "the server is back")
    # The server has forgotten the past: whoever was watching must list again.
    answer = world.client.get(f"{PODS}?watch=1&timeoutSeconds=1&resourceVersion={before}")
    answer = answer if isinstance(answer, dict) else json.loads(answer.splitlines()[0])
    expect(answer["object"].get("code") == 410, f"the watch goes on: {answer}")
    world.submit("after", replicas=1, gpus=8, run_seconds=1)
    for job in "ends-meanwhile", "waits", "after":
        world.wait_for(job, "done")
    expect(world.status("steady")["attempts"] == 1, "a gang was disturbed by that")
    world.cancel("steady")


def who_loses_the_lease_writes_no_more(world):
    world.submit("kept", replicas=2, gpus=8, run_seconds=600)
    world.wait_for_workers("kept", 2)
    wait_until(world.leader, "somebody leads")
    restarts = sum(replica.restarts for replica in world.replicas)
    world.client.patch(LEASE, {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 6}})
    wait_until(lambda: sum(replica.restarts for replica in world.replicas) > restarts,
               "the leader ends")
    # Nobody leads: nothing is decided.
    world.submit("later", replicas=1, gpus=8, run_seconds=1)
    phase = world.status("later").get("phase")
    if world.leader() == "thief":
        expect(phase in (None, "pending"), f"somebody decides: {phase}")
    world.wait_for("later", "done")
    expect(world.leader() not in ("", "thief"), "nobody leads")
    expect(world.status("kept")["attempts"] == 1, "a gang was disturbed by that")
    world.cancel("kept")


def a_storm_of_conflicts_does_not_stop_jobs(world):
    ends = threading.Event()
    writes = [0]

    def touch(job):
        while not ends.is_set():
            writes[0] += 1
            try:
                world.client.patch(f"{GANG_JOBS}/{job}", {"metadata": {"annotations": {
                    "touched": str(writes[0])}}})
            except ApiError:
                pass

    jobs = [f"storm-{i}" for i in range(4)]
    for job in jobs:
        world.submit(job, replicas=2, gpus=4, run_seconds=1)
    threads = [threading.Thread(target=touch, args=[job]) for job in jobs]
    for thread in threads:
        thread.start()
    try:
        for job in jobs:
            world.wait_for(job, "done")
            expect(world.status(job)["attempts"] <= 3, f"{job} has {world.status(job)}")
    finally:
        ends.set()
        for thread in threads:
            thread.join()
    print(f"while {writes[0]} writes came in between; attempts:",
          *(world.status(job)["attempts"] for job in jobs))


def who_wakes_up_when_another_leads_writes_nothing(world):
    """A replica has asked whether it leads, and has sent a write that arrives when another one
    leads."""
    world.stop_replicas()
    start_behind_proxies(world, 2)
    world.submit("undisturbed", replicas=2, gpus=8, run_seconds=600)
    world.wait_for_workers("undisturbed", 2)
    stopped = world.leading()
    proxy, restarts = stopped.proxy, stopped.restarts
    late = proxy.hold("POST .*/default/pods")
    # One worker: with two, the other's pod may or may not have been sent as well.
    world.submit("late", replicas=1, gpus=8, run_seconds=600)
    expect(late.has_come.wait(60), "no pod is created")
    stopped.process.send_signal(signal.SIGSTOP)
    try:
        wait_until(lambda: world.leader() and not world.leader().startswith(stopped.name),
                   "another one leads")
        # That replica removes what was partly done, and starts afresh.
        wait_until(lambda: world.status("late")["attempts"] == 2, "it is started again")
        world.wait_for("late", "running")
        done_before = len(proxy.writes())
        late.may_go.set()
        expect(late.answered.wait(60) and late.status == 201, f"the server says {late.status}")
    finally:
        stopped.process.send_signal(signal.SIGCONT)
    wait_until(lambda: stopped.restarts > restarts, "it ends")
    wait_until(lambda: all(pod["metadata"]["labels"]["renzan.dev/attempt"] == "1"
                           for pod in world.pods_of("late")), "what it has written is removed")
    expect(len(proxy.writes()) == done_before + 1, f"it has written {proxy.writes()[done_before:]}")
    for pod in world.pods_of("late"):
        world.end_worker(pod["metadata"]["name"], 0)
    expect(world.wait_for("late", "done")["attempts"] == 2, "another attempt was needed")
    expect(world.status("undisturbed")["attempts"] == 1, "a gang was disturbed by that")
    world.cancel("undisturbed")


def seconds_ahead(world):
    """How far ahead the clock of the leading replica is."""
    renewed = world.client.get(LEASE)["spec"]["renewTime"]
    renewed = datetime.datetime.strptime(renewed, "%Y-%m-%dT%H:%M:%S.%f%z")
    return renewed.timestamp() - time.time()


def a_clock_that_jumps_disturbs_nothing(world, clock):
    world.submit("ticking", replicas=2, gpus=8, run_seconds=600, timeout="30m")
    world.wait_for("ticking", "running")
    leader, hour = world.leader(), 3600
    for ahead in hour, -hour, 0:
        clock.set_ahead(ahead)
        name = f"at{ahead}".replace("-", "minus")
        world.submit(name, replicas=2, gpus=8, run_seconds=1)
        expect(world.wait_for(name, "done")["attempts"] == 1, f"{name} was disturbed by that")
        wait_until(lambda: abs(seconds_ahead(world) - ahead) < hour / 4,
                   f"the leader's clock is {ahead} s ahead")
    expect(world.leader() == leader or not world.server_answered(), "another one leads")
    expect(world.status("ticking")["attempts"] == 1, "a gang was disturbed by that")
    world.cancel("ticking")


def main():
    with testing(up=[PATIENT], nodes=["--count=4", "--lease-s=1"]) as world:
        clock = compiler() and WallClock(world.run)
        for _ in range(2):
            world.start_replica(environment=clock and clock.environment)
        if clock:
            world.play(a_clock_that_jumps_disturbs_nothing, world, clock)
        else:
            print("a_clock_that_jumps_disturbs_nothing: skipped, there is no C compiler")
        for scenario in (a_storm_of_conflicts_does_not_stop_jobs,
                         who_loses_the_lease_writes_no_more,
                         a_server_that_is_killed_and_forgets_the_past_loses_nothing,
                         who_wakes_up_when_another_leads_writes_nothing):
            world.play(scenario, world)


if __name__ == "__main__":
    main()
