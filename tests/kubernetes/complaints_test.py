#!/usr/bin/env python3
"""What users of other systems complain about, and cannot happen here, on a real control plane with
fake nodes. Each scenario is named after what it shows; its first line names the complaint.
`complaints_test.py RENZAN`; exits with 77 where there is no control plane.

controller/complaints_test.cc shows the same, and more, second by second on a pretended server."""

import http.client
import pathlib
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from api_server import ApiServer  # noqa: E402
from kube import ApiError, wait_until  # noqa: E402
from proxy import start_behind_proxies  # noqa: E402
from world import GANG_JOBS, PATIENT, PODS, expect, testing  # noqa: E402

SERVICES = "/api/v1/namespaces/default/services"
# A hundred workers with one GPU each fit, and not many more.
NODES, GPUS = 13, 8
FOR_EVER = 600  # seconds, for workers that the test ends


class History:
    """Every version of the objects at some paths that watches show from now on, in the order in
    which the server wrote them (their resource versions). Only while the server lives: what a later
    list lacks seems to have gone all at once."""

    def __init__(self, world, *paths):
        self._world, self._paths = world, paths
        self._changes = []  # (version, path, name, object or None)
        self._last = {path: {} for path in paths}  # name -> version
        for path in paths:
            threading.Thread(target=self._follow, args=[path], daemon=True).start()

    def _follow(self, path):
        for change, item in self._world.client.changes(path):
            name, version = item["metadata"]["name"], int(item["metadata"]["resourceVersion"])
            self._changes.append((version, path, name, None if change == "DELETED" else item))
            if change == "DELETED":
                self._last[path].pop(name, None)
            else:
                self._last[path][name] = version

    def _has_seen(self, path):
        items = self._world.client.get(path)["items"]
        return self._last[path] == {item["metadata"]["name"]:
                                    int(item["metadata"]["resourceVersion"]) for item in items}

    def changes(self):
        """[(path, name, object; None: deleted)] up to now."""
        for path in self._paths:
            wait_until(lambda path=path: self._has_seen(path), f"the watch of {path} shows all")
        return [change[1:] for change in sorted(self._changes, key=lambda change: change[0])]


def runs(pod):
    return pod["status"]["phase"] == "Running" and not any(
        "terminated" in status["state"] for status in pod["status"]["containerStatuses"])


def conditions(job):
    return {each["type"]: each["status"] for each in job["status"].get("conditions", [])}


def wait_for_attempt(world, job, attempts, workers):
    """Waits until the workers of that attempt run, and no other pod of the job is still ending."""
    wait_until(lambda: world.status(job).get("attempts") == attempts, f"{job} runs again")
    world.wait_for_workers(job, workers)


def the_size_of_a_waiting_job_can_be_changed(world):
    """kubeflow/trainer 3995: that of a suspended job cannot."""
    world.submit("large", replicas=NODES + 1, gpus=GPUS, run_seconds=FOR_EVER)
    world.wait_for_message("large", "on the empty cluster")
    world.client.patch(f"{GANG_JOBS}/large", {"spec": {"replicas": 2}})
    world.wait_for_workers("large", 2)
    expect(world.status("large")["attempts"] == 1, world.status("large"))
    world.cancel("large")


def finished_jobs_do_not_run_again(world):
    """kubeflow/trainer 3737, 2991: they do when what they have left is removed."""
    world.submit("finished", replicas=2, gpus=2, run_seconds=0.5)
    world.wait_for("finished", "done")
    for pod in world.pods_of("finished"):
        world.client.delete(f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
    world.client.delete(f"{SERVICES}/finished-workers")
    ApiServer(world.run).compact()
    world.leading().process.kill()  # the next one lists what is there
    world.submit("next", replicas=1, gpus=1, run_seconds=0.5)
    world.wait_for("next", "done")
    status = world.status("finished")
    expect(status["phase"] == "done" and status["attempts"] == 1, status)
    expect(not world.pods_of("finished"), "it has pods again")


def a_job_that_runs_again_says_what_is_true(world):
    """kubeflow/sdk 803: a resumed job reports Created for its whole run."""
    history = History(world, GANG_JOBS, PODS)
    world.submit("resumed", replicas=NODES, gpus=GPUS, run_seconds=FOR_EVER)
    world.wait_for_workers("resumed", NODES)
    world.allow_priority(5)
    world.submit("urgent", replicas=NODES, gpus=GPUS, run_seconds=0.5, priority=5)
    world.wait_for("urgent", "done")
    wait_for_attempt(world, "resumed", 2, NODES)
    for rank in range(NODES):
        world.end_worker(f"resumed-1-{rank}", 0)
    world.wait_for("resumed", "done")
    job, pods, seen = None, {}, []
    for path, name, item in history.changes():
        if path == PODS:
            pods[name] = item
        elif name == "resumed" and "status" in item:
            job = item
        if not job:
            continue
        phase, said = job["status"]["phase"], conditions(job)
        running = [name for name, pod in pods.items()
                   if name.startswith("resumed-") and pod and runs(pod)]
        # In the reverse order, a pod may be about to start, or may have just ended.
        expect(phase in ("running", "stopping") or not running, f"{phase}, and {running} run")
        expect(said.get("Running") == ("True" if phase == "running" else "False"),
               f"{phase}, and its conditions are {said}")
        expect(said.get("Complete") == ("True" if phase == "done" else None),
               f"{phase}, and its conditions are {said}")
        if [phase] != seen[-1:]:
            seen.append(phase)
    begins = ["pending"] if seen[0] == "pending" else []
    expect(seen == begins + ["running", "stopping", "pending", "running", "done"], seen)


def a_hundred_workers_restart_after_one_fails(world):
    """kubeflow/trainer 2000: 100 pods, and no successful restart."""
    world.submit("hundred", replicas=100, gpus=1, run_seconds=FOR_EVER, retries=1)
    world.wait_for_workers("hundred", 100)
    world.end_worker("hundred-0-42", 1)
    wait_for_attempt(world, "hundred", 2, 100)
    expect(world.status("hundred")["facts"]["failures"] == 1, world.status("hundred"))
    world.cancel("hundred")


def a_gang_that_is_created_in_part_is_deleted_whole(world):
    """kubeflow/trainer 1282: 99 workers run, one pends."""
    server = ApiServer(world.run)

    def bound(job):
        return sum("nodeName" in pod["spec"] for pod in world.pods_of(job))

    attempts = []
    for job, late, is_time in (
            ("created", "POST .*/default/pods", lambda: len(world.pods_of("created")) >= 30),
            ("bound", "POST .*/pods/bound-.*/binding", lambda: bound("bound") >= 30)):
        hold = world.leading().proxy.hold(late)
        world.submit(job, replicas=100, gpus=1, run_seconds=FOR_EVER)
        wait_until(is_time, f"{job} is there in part")
        server.kill()
        hold.may_go.set()
        server.start()
        wait_until(lambda job=job: is_whole(world, job), f"all of {job} run, and nothing else")
        attempts.append(world.status(job)["attempts"])
        world.cancel(job)
    expect(max(attempts) > 1, f"the server died too late: {attempts}")


def is_whole(world, job):
    try:
        attempt = str(world.status(job)["attempts"] - 1)
        pods = world.pods_of(job)
    except (OSError, http.client.HTTPException, ApiError):
        return False  # the server starts
    left = [pod for pod in pods if pod["metadata"]["labels"]["renzan.dev/attempt"] != attempt
            and pod["status"]["phase"] in ("Pending", "Running")]
    return not left and sum(runs(pod) for pod in pods
                            if pod["status"]["phase"] == "Running") == 100


def workers_do_not_take_the_room_of_their_own_gang(world):
    """kuberay PR 3592: workers starve their own head."""
    history = History(world, PODS)
    for job in "one", "two":
        world.submit(job, replicas=60, gpus=1, run_seconds=FOR_EVER)
    wait_until(lambda: {world.status(job).get("phase") for job in ("one", "two")}
               == {"running", "pending"}, "one of them runs")
    first, second = sorted(("one", "two"), key=lambda job: world.status(job)["phase"] != "running")
    world.wait_for_workers(first, 60)
    world.wait_for_message(second, f"room now for {NODES * GPUS - 60} ")
    early = {name for _, name, _ in history.changes() if name.startswith(second)}
    expect(not early, f"{second} waits, and has had pods: {early}")
    world.cancel(first)
    world.wait_for_workers(second, 60)
    world.cancel(second)


def the_service_of_a_gang_lives_as_long_as_its_job(world):
    """kuberay 4643: the pod group is deleted while its cluster lives."""
    history = History(world, SERVICES)
    world.submit("served", replicas=2, gpus=2, run_seconds=FOR_EVER, retries=1)
    world.wait_for_workers("served", 2)
    world.end_worker("served-0-1", 1)
    wait_for_attempt(world, "served", 2, 2)
    versions = [item for _, name, item in history.changes() if name == "served-workers"]
    expect(versions and all(versions), "it was deleted")
    expect(len({item["metadata"]["uid"] for item in versions}) == 1, "it was replaced")
    world.client.delete(f"{GANG_JOBS}/served")
    wait_until(lambda: "served-workers" not in {
        each["metadata"]["name"] for each in world.client.get(SERVICES)["items"]},
        "it goes with its job")


def a_waiting_job_names_the_constraint(world):
    """volcano 4311: "pod group is not ready" is all that users see."""
    world.submit("full", replicas=NODES, gpus=GPUS - 1, run_seconds=FOR_EVER)
    world.wait_for("full", "running")
    for name, reason, facts in (
            ("room", f"room now for {NODES} ", {"replicas": NODES + 1, "gpus": 1}),
            ("size", "needs 9 GPUs on one node", {"replicas": 1, "gpus": GPUS + 1}),
            ("label", "gpu-type", {"replicas": 1, "gpus": 1, "selector": {"gpu-type": "new"}})):
        world.submit(name, run_seconds=1, **facts)
        message = world.wait_for_message(name, reason)
        row = world.kubectl("get", "gangjob", name)
        expect(message in row, f"kubectl get says {row}, not {message}")
        world.cancel(name)
    world.cancel("full")


def what_runs_is_bound(world):
    """kueue 9482, 7433: admitted, and still gated. Here answers to bindings are lost."""
    proxy, jobs = world.leading().proxy, [f"gated-{i}" for i in range(6)]
    before = len(proxy.passed)
    for job in jobs:
        proxy.lose_answer(f"POST .*/pods/{job}-0-0/binding")
    for job in jobs:
        world.submit(job, replicas=3, gpus=4, run_seconds=FOR_EVER)

    def all_run():
        for job in jobs:
            attempt = world.status(job).get("attempts", 0) - 1
            running = [pod for pod in world.pods_of(job) if pod["status"]["phase"] == "Running"
                       and pod["metadata"]["labels"]["renzan.dev/attempt"] == str(attempt)]
            if world.status(job).get("phase") != "running" or len(running) < 3:
                return False
        return True

    wait_until(all_run, "all that runs is bound")
    for job in jobs:
        answer = proxy.status_of(f"POST .*/pods/{job}-0-0/binding", before)
        expect(answer == 201, f"the lost answer was {answer}")
        world.cancel(job)


def a_job_that_cannot_start_gives_its_room_back(world):
    """volcano 5330: a stuck job holds its quota."""
    world.submit("stuck", replicas=NODES, gpus=GPUS, run_seconds=1, image="nowhere/trainer",
                 startTimeout="10s", retries=1)
    message = world.wait_for_message("stuck", "ErrImagePull")
    world.submit("next-one", replicas=NODES, gpus=GPUS, run_seconds=0.5)
    world.wait_for("next-one", "done")
    status = world.wait_for("stuck", "failed")
    print(message)
    expect(status["attempts"] == 2 and "ErrImagePull" in status["message"], status)
    said = conditions({"status": status})
    expect(said["Failed"] == "True" and said["Running"] == "False" and "Complete" not in said, said)


def main():
    with testing(up=[PATIENT],
                 nodes=[f"--count={NODES}", f"--gpus={GPUS}", "--lease-s=5"]) as world:
        start_behind_proxies(world, 2)
        for scenario in (
                the_size_of_a_waiting_job_can_be_changed, finished_jobs_do_not_run_again,
                a_job_that_runs_again_says_what_is_true, a_hundred_workers_restart_after_one_fails,
                a_gang_that_is_created_in_part_is_deleted_whole,
                workers_do_not_take_the_room_of_their_own_gang,
                the_service_of_a_gang_lives_as_long_as_its_job,
                a_waiting_job_names_the_constraint, what_runs_is_bound,
                a_job_that_cannot_start_gives_its_room_back):
            world.play(scenario, world)


if __name__ == "__main__":
    main()
