"""A daemon with simulated nodes: start, kill, and requests over its socket."""

import http.client
import json
import os
import signal
import socket
import subprocess
import time


class Refused(Exception):
    """The daemon responded with an error."""

    def __init__(self, status, message):
        super().__init__(f"HTTP {status}: {message}")
        self.status = status


class Unanswered(Exception):
    """No response: the request may or may not have been executed."""


class _Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Daemon:
    def __init__(self, program, work, environment, options):
        self.state, self.socket, self.log = f"{work}/state", f"{work}/socket", f"{work}/daemon.log"
        self.process = None
        self._environment = environment
        self._command = [program, "cluster", "up", "--foreground", "--state", self.state,
                         "--socket", self.socket, *options]

    def start(self):
        """Starts the daemon without waiting until it is ready."""
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(
                self._command, env=self._environment, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True)

    def wait_until_ready(self, seconds=20):
        """Returns False if the daemon ended instead."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                return False
            try:
                return self.get("/v1/status")["pid"] == self.process.pid
            except Unanswered:
                time.sleep(0.002)
        raise TimeoutError(f"the daemon did not respond within {seconds} s")

    def freeze(self):
        """Stops the daemon, so that it does nothing more before it is killed."""
        os.kill(self.process.pid, signal.SIGSTOP)

    def kill(self):
        """Kills only the daemon's process, which may have ended already. Returns its exit
        status."""
        self.process.kill()
        return self.process.wait()

    def get(self, target):
        return json.loads(self.get_text(target))

    def get_text(self, target):
        return self._ask("GET", target, None).decode()

    def post(self, target, body=None):
        return json.loads(self._ask("POST", target, json.dumps(body or {})))

    def _ask(self, method, target, body):
        connection = _Connection(self.socket)
        try:
            connection.request(method, target, body)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unanswered(str(error)) from error
        finally:
            connection.close()
        if answer.status >= 400:
            raise Refused(answer.status, text.decode(errors="replace"))
        return text
