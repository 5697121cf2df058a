"""A real control plane for benchmarks (tests/kubernetes), with a controller and fake kubelets, and
what its processes use."""
import os
import pathlib
import re
import sys
import time

from commands import ROOT

sys.path.insert(0, str(ROOT / "tests/kubernetes"))
from kube import wait_until  # noqa: E402
from world import world_in  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")


def samples(text):
    """Prometheus's text: {(name, (("label", "value"), ...)): value}."""
    found = {}
    for name, labels, value in re.findall(r"^([a-z_:]+)(?:\{(.*)\})? (\S+)$", text, re.MULTILINE):
        found[name, tuple(re.findall(r'([a-zA-Z_]+)="([^"]*)"', labels))] = float(value)
    return found


class ControlPlane:
    """A context manager. `run` is a folder that it may fill. Exits with 77 if this machine has no
    control plane."""

    def __init__(self, renzan, run, nodes, gpus):
        self._run, self._gpus = pathlib.Path(run), nodes * gpus
        self.bound_log = self._run / "bound.log"
        # Leases of so many nodes would be a load of their own: they are renewed rarely.
        self._context = world_in(
            self._run, str(renzan.resolve()), up=["--manager=--node-monitor-grace-period=1h"],
            nodes=[f"--count={nodes}", f"--gpus={gpus}", "--lease-s=600",
                   f"--log={self.bound_log}"])

    def __enter__(self):
        self._world = self._context.__enter__()
        try:
            self.client = self._world.client
            self._controller = self._world.start_replica()
            wait_until(lambda: self.controller_metrics().get(("renzan_gpus", ())) == self._gpus,
                       "the controller has seen all nodes", 60)
        except BaseException:
            if not self._context.__exit__(*sys.exc_info()):
                raise
        return self

    def __exit__(self, *failure):
        return self._context.__exit__(*failure)

    def settle(self):
        """Waits until the API server is idle: new definitions keep it busy for seconds."""
        def is_idle():
            before = self.cpu_seconds()["API server"]
            time.sleep(1)
            return self.cpu_seconds()["API server"] - before < 0.1
        try:
            wait_until(is_idle, "the API server is idle", 20)
        except TimeoutError:
            pass  # on a small or busy machine it never is

    def controller_metrics(self):
        if self._controller.restarts or self._controller.wrong:
            sys.exit("the controller has ended")
        try:
            return samples(self._controller.fetch("probes and metrics", "/metrics")[1].decode())
        except OSError:
            return {}

    def requests(self):
        """Requests answered by the API server so far: {"POST pods/binding": 7}."""
        counts = {}
        for (name, labels), value in samples(self.client.get("/metrics")).items():
            if name != "apiserver_request_total":
                continue
            labels = dict(labels)
            what = "/".join(filter(None, (labels["resource"], labels.get("subresource"))))
            key = f"{labels['verb']} {what}"
            counts[key] = counts.get(key, 0) + value
        return counts

    def pids(self):
        named = {"API server": "api", "etcd": "etcd", "controller manager": "manager"}
        pids = {name: int((self._run / f"{file}.pid").read_text().split()[0])
                for name, file in named.items()}
        return {**pids, "fake kubelets": self._world.kubelets.pid,
                "controller": self._controller.process.pid}

    def cpu_seconds(self):
        """CPU seconds of each process, and of this one."""
        used = {"submitting": sum(os.times()[:2])}
        for name, pid in self.pids().items():
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used[name] = (int(fields[11]) + int(fields[12])) / TICKS
        return used

    def peak_mib(self):
        peaks = {}
        for name, pid in self.pids().items():
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            peaks[name] = int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024
        return peaks
