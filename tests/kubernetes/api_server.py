"""The API server of a testbed: killed, started again, and made to forget."""

import json
import os
import pathlib
import re
import signal
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


class ApiServer:
    """The API server of the testbed in the folder `run`."""

    def __init__(self, run):
        self.run = pathlib.Path(run)

    def kill(self):
        pid = int((self.run / "api.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: has_ended(pid), "the server has left its port")

    def start(self):
        subprocess.run([here / "start", self.run, "api"], check=True)

    def compact(self):
        """Makes the server's store forget the whole past."""
        command = (self.run / "api.command").read_text().split("\0")
        url = next(each for each in command if each.startswith("--etcd-servers="))
        url = url.partition("=")[2]

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
