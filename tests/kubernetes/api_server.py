"""The API server of a testbed: killed, started again, and made to forget."""

import json
import os
import pathlib
import signal
import subprocess
import urllib.error
import urllib.request


class ApiServer:
    """Of the testbed in the folder `run`."""

    def __init__(self, run):
        self.run = run
        self.pid_file = pathlib.Path(f"{run}/api.pid")
        pid = int(self.pid_file.read_text().split()[0])
        self.command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
        environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")[:-1]
        self.environment = dict(each.split(b"=", 1) for each in environment)

    def kill(self):
        os.kill(int(self.pid_file.read_text().split()[0]), signal.SIGKILL)

    def start(self):
        # `down` ends what its pid file names: a process and when it was started.
        process = subprocess.Popen(
            self.command, cwd=self.run, env=self.environment, start_new_session=True,
            stdout=open(f"{self.run}/logs/api-again.log", "ab"), stderr=subprocess.STDOUT)
        fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        self.pid_file.write_text(f"{process.pid} {fields[19]}\n")

    def compact(self):
        """All that the server's store has of the past."""
        url = next(each for each in self.command if each.startswith(b"--etcd-servers="))
        url = url.decode().partition("=")[2]

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
