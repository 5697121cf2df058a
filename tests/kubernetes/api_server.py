"""The API server of a testbed: killed, started again, and made to forget."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request

from kube import wait_until

here = pathlib.Path(__file__).resolve().parent


def has_ended(pid):
    """Whether the process has ended, even if nobody has waited for it yet."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    return re.search(r"^State:\s+[ZX]", status, re.MULTILINE) is not None


def is_free(port):
    """Whether a server could listen on this port of the loopback."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class ApiServer:
    """The API server of the testbed in the folder `run`."""

    def __init__(self, run):
        self.run = pathlib.Path(run)

    def kill(self):
        pid = self._pid()
        os.kill(pid, signal.SIGKILL)
        # Its first thread may be a zombie while others still hold the port, on which the next
        # server would then find no room, and end.
        wait_until(lambda: has_ended(pid) and is_free(self._port()), "the server has left its port")

    def start(self):
        """Returns once it listens. If it ends instead, it is started again, as kubelet would."""
        for _ in range(3):
            subprocess.run([here / "start", self.run, "api"], check=True)
            pid = self._pid()
            wait_until(lambda pid=pid: has_ended(pid) or listens(self._port()),
                       "the server listens")
            if not has_ended(pid):
                return
            log = (self.run / "logs/api.log").read_text(errors="replace")
            print("the API server ended:", *log.splitlines()[-5:], sep="\n  ")
        raise RuntimeError("the API server ends as soon as it begins")

    def _pid(self):
        return int((self.run / "api.pid").read_text().split()[0])

    def _port(self):
        return int(self._flag("--secure-port"))

    def _flag(self, name):
        command = (self.run / "api.command").read_text().split("\0")
        return next(each for each in command if each.startswith(name + "=")).partition("=")[2]

    def compact(self):
        """Makes the server's store forget the whole past."""
        url = self._flag("--etcd-servers")

        def ask(path, body):
            request = urllib.request.Request(url + path, json.dumps(body).encode())
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            return json.load(opener.open(request, timeout=10))

        revision = ask("/v3/kv/range", {"key": "AA=="})["header"]["revision"]
        try:
            ask("/v3/kv/compaction", {"revision": revision, "physical": True})
        except urllib.error.HTTPError as error:
            if error.code != 400:  # it has been compacted so far
                raise
