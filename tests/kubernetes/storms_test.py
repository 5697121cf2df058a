#!/usr/bin/env python3
"""The controller on a real control plane where everything goes wrong for a while: in each seed,
other jobs and other troubles at other times. When it is calm again, all jobs end; at no time do two
attempts of one run, or more on a node than it has. `storms_test.py RENZAN`; exits with 77 where
there is no control plane. RENZAN_TEST_SEEDS=FIRST..LAST draws other storms; one takes 10 to 20 s.

controller/trouble_test.cc does so a hundred times, with more kinds of trouble, on a pretended
server."""

import http.client
import os
import pathlib
import random
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

NODES, REPLICAS, JOBS = 4, 2, 8
STORM_S = 6
CALM_S = 180  # only ends a test that hangs
ENDS = ("done", "failed", "cancelled", "timeout")
# A replica's requests to the server, as regular expressions.
WRITES = ("POST .*/pods", "POST .*/binding", "PUT .*/status", "DELETE .*/pods/.*")
WATCHES = ("GET /api/v1/pods", "GET /api/v1/nodes", "GET /apis/renzan.dev/v1alpha1/gangjobs")


class Storm:
    def __init__(self, world, clock, seed):
        self.world, self.clock, self.seed = world, clock, seed
        self._draw = random.Random(seed)
        self._later = []  # timers
        self.jobs, self.cancelled = [], set()
        troubles = [self.answers_are_lost, self.requests_are_late, self.a_watch_expires,
                    self.a_leader_is_killed, self.a_leader_is_paused, self.the_lease_is_stolen,
                    self.somebody_writes_to_all_jobs, self.a_pod_is_deleted,
                    self.a_node_is_cordoned, self.a_node_is_announced_to_leave,
                    self.a_job_is_cancelled, self.a_job_is_resized, self.the_server_is_killed,
                    *([self.a_clock_is_set] if clock else [])]
        # Most seeds have some quiet, too.
        self.troubles = self._draw.sample(troubles, 4)

    def name(self):
        return f"seed {self.seed}: {', '.join(each.__name__ for each in self.troubles)}"

    def nothing_is_lost(self):
        acts = [(self._draw.uniform(0, STORM_S), self.submit) for _ in range(JOBS)]
        acts += [(self._draw.uniform(0, STORM_S), trouble)
                 for trouble in self.troubles for _ in range(self._draw.randint(1, 3))]
        begun = time.monotonic()
        for at, act in sorted(acts, key=lambda each: each[0]):
            time.sleep(max(0, begun + at - time.monotonic()))
            act()
        self.calm()
        self.check()

    def calm(self):
        for timer in self._later:
            timer.join()
        for replica in self.world.replicas:
            replica.proxy.calm()

    def check(self):
        world = self.world

        def unfinished():
            phases = {job: world.status(job).get("phase") for job in self.jobs}
            return {job: phase for job, phase in phases.items() if phase not in ENDS}

        try:
            wait_until(lambda: not unfinished(), "all jobs have ended", CALM_S)
        except TimeoutError:
            sys.exit(f"FAILED: {self.name()}: {unfinished()}")
        for job in self.jobs:
            status = world.status(job)
            allowed = ("done", "cancelled") if job in self.cancelled else ("done",)
            expect(status["phase"] in allowed, f"{self.name()}: {job} is {status}")
            if status["phase"] != "done":
                continue
            attempt = str(status["attempts"] - 1)
            ends = {pod["metadata"]["name"]: pod["status"]["phase"] for pod in world.pods_of(job)
                    if pod["metadata"]["labels"]["renzan.dev/attempt"] == attempt}
            # Some are gone: they were told to stop when they had already ended.
            expect(set(ends.values()) <= {"Succeeded"},
                   f"{self.name()}: {job} is done, and its pods are {ends}")
        expect(not world.ledger.wrong, f"{self.name()}: {world.ledger.wrong}")

    # --- Troubles.

    def ask(self, act):
        """Asks the server when it is there. What it refuses is its business, as with any user."""
        def answered():
            try:
                act(self.world.client)
            except ApiError as error:
                return error.status < 500
            except (OSError, http.client.HTTPException):
                return False
            return True
        wait_until(answered, "the server answers")

    def after(self, seconds, act):
        timer = threading.Timer(seconds, act)
        timer.start()
        self._later.append(timer)

    def _leader(self):
        """The leader; None if nobody leads, or if the server does not say."""
        try:
            return self.world.leading_now()
        except (OSError, http.client.HTTPException):
            return None

    def some_proxy(self):
        return self._draw.choice(self.world.replicas).proxy

    def some_job(self):
        return self._draw.choice(self.jobs) if self.jobs else None

    def submit(self):
        name = f"storm-{self.seed}-{len(self.jobs)}"
        draw = self._draw
        facts = {"replicas": draw.randint(1, 4), "gpus": draw.choice((2, 4, 8)),
                 "run_seconds": draw.uniform(0.3, 3), "priority": draw.randint(0, 2)}

        def send(client):
            try:
                client.get(f"{GANG_JOBS}/{name}")  # the answer may have been lost
            except ApiError:
                self.world.submit(name, **facts)
        self.ask(send)
        self.jobs.append(name)

    def answers_are_lost(self):
        self.some_proxy().lose_answer(self._draw.choice(WRITES))

    def requests_are_late(self):
        hold = self.some_proxy().hold(self._draw.choice(WRITES))
        self.after(self._draw.uniform(0.5, 8), hold.may_go.set)

    def a_watch_expires(self):
        proxy = self.some_proxy()
        proxy.stall(self._draw.choice(WATCHES))
        self.after(self._draw.uniform(0.2, 3), proxy.expire)

    def a_leader_is_killed(self):
        leader = self._leader()
        if leader:
            leader.process.kill()

    def a_leader_is_paused(self):
        """Pauses the leader, sometimes for so long that another one takes over."""
        leader = self._leader()
        if leader:
            process = leader.process
            process.send_signal(signal.SIGSTOP)
            self.after(self._draw.uniform(1, 10), lambda: process.send_signal(signal.SIGCONT))

    def the_lease_is_stolen(self):
        self.ask(lambda client: client.patch(LEASE, {"spec": {
            "holderIdentity": "thief", "leaseDurationSeconds": 2}}))

    def somebody_writes_to_all_jobs(self):
        jobs, end = list(self.jobs), time.monotonic() + 2

        def write():
            turn = 0
            while time.monotonic() < end:
                for job in jobs:
                    turn += 1
                    self.ask(lambda client: client.patch(f"{GANG_JOBS}/{job}", {
                        "metadata": {"annotations": {"touched": str(turn)}}}))
        self.after(0, write)

    def a_pod_is_deleted(self):
        def delete(client):
            pods = [pod["metadata"]["name"] for pod in client.get(PODS)["items"]
                    if pod["status"]["phase"] == "Running"]
            if pods:
                client.delete(f"{PODS}/{self._draw.choice(pods)}")
        self.ask(delete)

    def _change_node(self, change, back):
        node = f"/api/v1/nodes/fake-{self._draw.randrange(NODES):03d}"
        self.ask(lambda client: client.patch(node, {"spec": change}))
        self.after(self._draw.uniform(1, 4),
                   lambda: self.ask(lambda client: client.patch(node, {"spec": back})))

    def a_node_is_cordoned(self):
        self._change_node({"unschedulable": True}, {"unschedulable": None})

    def a_node_is_announced_to_leave(self):
        self._change_node({"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "value": "1",
                                       "effect": "NoSchedule"}]}, {"taints": None})

    def _change_job(self, job, spec):
        self.ask(lambda client: client.patch(f"{GANG_JOBS}/{job}", {"spec": spec}))

    def a_job_is_cancelled(self):
        if job := self.some_job():
            self.cancelled.add(job)
            self._change_job(job, {"cancelled": True})

    def a_job_is_resized(self):
        if job := self.some_job():
            self._change_job(job, {"replicas": self._draw.randint(1, 4)})

    def the_server_is_killed(self):
        server = ApiServer(self.world.run)
        server.kill()
        if self._draw.random() < 0.5:
            server.compact()
        time.sleep(self._draw.uniform(0, 3))
        server.start()
        self.ask(lambda client: client.get("/readyz"))

    def a_clock_is_set(self):
        """Sets the clock of all replicas."""
        self.clock.set_ahead(self._draw.choice((-3600, -60, 60, 3600)))
        self.after(self._draw.uniform(0.5, 3), lambda: self.clock.set_ahead(0))


def main():
    first, _, last = os.environ.get("RENZAN_TEST_SEEDS", "0..3").partition("..")
    with testing(up=[PATIENT], nodes=[f"--count={NODES}", "--lease-s=1"]) as world:
        clock = compiler() and WallClock(world.run)
        world.allow_priority(2)
        start_behind_proxies(world, REPLICAS, environment=clock and clock.environment)
        for seed in range(int(first), int(last or first) + 1):
            storm = Storm(world, clock, seed)
            print(storm.name())
            world.play(storm.nothing_is_lost)


if __name__ == "__main__":
    main()
