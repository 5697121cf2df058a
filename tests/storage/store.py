#!/usr/bin/env python3
"""A real S3 server, SeaweedFS, for tests: one process with its data in a folder, which may be
killed and started again, and listens on 127.0.0.1 only.

  with Store() as store:                            exits with 77 where it cannot be installed
      store.client().put("test", "key", b"content")
      store.kill()
      store.start()

    tests/storage/store.py run -- COMMAND...        with its environment and a bucket "test"
    tests/storage/store.py serve FOLDER             until it is interrupted
"""

import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import random
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from s3_client import REGION, Client

here = pathlib.Path(__file__).resolve().parent
# Identities: an access key and its secret each. RENEWED may do what ADMIN may; READER may get and
# list; GETTER may get objects whose names it knows.
ADMIN, READER = ("admin-key", "admin-secret"), ("reader-key", "reader-secret")
RENEWED = ("renewed-key", "renewed-secret")
GETTER = ("getter-key", "getter-secret")
IDENTITIES = (ADMIN, READER, RENEWED, GETTER)
EVERYTHING = ["Admin", "Read", "List", "Tagging", "Write"]
BUCKET = "test"
PORTS = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port",
         "filer.port.grpc", "s3.port", "s3.port.grpc")
# Below the ports that systems give to connections, so that they are still free after a kill().
FIRST_PORT, LAST_PORT = 20000, 32000
START_S, ANSWER_S, STOP_S = 60, 2, 2  # limits
LOG_SHOWN = 4000  # characters

# A server ends with the thread that has started it, so that must not be one of a test's threads.
_starter = concurrent.futures.ThreadPoolExecutor(1)


def installed():
    """The path of the server. Exits with 77 where it cannot be installed."""
    setup = subprocess.run([here / "setup-store"], capture_output=True, text=True)
    if setup.returncode == 69:
        print("skipped:", setup.stderr.strip().splitlines()[-1])
        sys.exit(77)
    if setup.returncode != 0:
        raise RuntimeError(f"setup-store: {setup.stderr}")
    return setup.stdout.strip()


def free_ports(count):
    """Finds consecutive free ports."""
    while True:
        first = random.randrange(FIRST_PORT, LAST_PORT - count)
        try:
            for port in range(first, first + count):
                with socket.socket() as each:
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    each.bind(("127.0.0.1", port))
            return range(first, first + count)
        except OSError:
            pass  # one of them is taken


def remove_sockets(first_port):
    """Removes the sockets that a killed server with ports from `first_port` on leaves behind."""
    for port, name in enumerate(PORTS, first_port):
        if name.endswith(".grpc"):
            service = name.partition(".")[0]
            pathlib.Path(f"/tmp/seaweedfs-{service}-grpc-{port}.sock").unlink(missing_ok=True)


class Store:
    def __init__(self, folder=None, bucket=BUCKET):
        """`folder`: for its data; by default one of its own. `bucket`: created first."""
        self._program = installed()
        self._own_folder = None if folder else tempfile.TemporaryDirectory(prefix="store.")
        self.folder = pathlib.Path(folder or self._own_folder.name).absolute()
        self._bucket = bucket
        self._ports = {}  # chosen at the first start, and kept
        self._process = None

    def __enter__(self):
        try:
            self.start()
            if self._bucket:
                self.create_bucket(self._bucket)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.kill()
        if self._own_folder:
            self._own_folder.cleanup()

    # --- What clients are told.

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self._ports['s3.port']}"

    def address(self):
        return "127.0.0.1", self._ports["s3.port"]

    def environment(self, identity=ADMIN):
        return {"AWS_ENDPOINT_URL": self.endpoint, "AWS_ACCESS_KEY_ID": identity[0],
                "AWS_SECRET_ACCESS_KEY": identity[1], "AWS_REGION": REGION}

    def client(self, identity=ADMIN, **others):
        return Client(self.endpoint, *identity, **others)

    def create_bucket(self, name):
        """Creates the bucket unless it exists."""
        answer = self.client().create_bucket(name)
        if answer.status != 200 and answer.code != "BucketAlreadyOwnedByYou":
            raise RuntimeError(f"no bucket {name}: {answer}")

    # --- The process.

    @property
    def pid(self):
        return self._process.pid

    @property
    def log(self):
        return self.folder / "log"

    def start(self):
        """Starts the server and returns when it answers. After a kill() or stop(), it has the same
        endpoint and the same objects."""
        assert not self._process
        tries = 1 if self._ports else 5  # another program may take a port that was free
        for _ in range(tries):
            if tries > 1:
                self._ports = dict(zip(PORTS, free_ports(len(PORTS))))
            self._launch()
            if self._wait_until_ready():
                return
            self.kill()
        raise RuntimeError(f"the store has ended: {self.log.read_text()[-LOG_SHOWN:]}")

    def _launch(self):
        data = self.folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        (self.folder / "identities.json").write_text(json.dumps({"identities": [
            {"name": name, "credentials": [{"accessKey": key, "secretKey": secret}],
             "actions": actions}
            for name, (key, secret), actions in (
                ("admin", ADMIN, EVERYTHING), ("renewed", RENEWED, EVERYTHING),
                ("reader", READER, ["Read", "List"]), ("getter", GETTER, ["Read"]))]}))
        # One master needs no election, and its volumes are small and many.
        command = ["setpriv", "--pdeathsig=KILL", self._program, "-logtostderr=true", "server",
                   "-dir=data", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3",
                   "-s3.config=identities.json", "-s3.iam=false", "-s3.autoCreateBucket=false",
                   "-s3.allowDeleteBucketNotEmpty=false", "-s3.domainName=localhost",
                   "-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.localSocket=s3.sock",
                   "-filer.localSocket=filer.sock", "-master.telemetry=false", "-master.peers=none",
                   "-master.volumeSizeLimitMB=64", "-volume.max=1000", "-volume.preStopSeconds=0",
                   *(f"-{name}={port}" for name, port in self._ports.items())]
        # Nothing of whoever runs the test reaches it: neither keys nor a configuration.
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        with open(self.log, "a") as log:
            self._process = _starter.submit(
                subprocess.Popen, command, cwd=self.folder, env=environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True).result()

    def _wait_until_ready(self):
        """Returns False if the server has ended."""
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            if self._process.poll() is not None:
                return False
            if self._is_ready():
                return True
            time.sleep(0.02)
        raise TimeoutError(f"the store does not answer: {self.log.read_text()[-LOG_SHOWN:]}")

    def _is_ready(self):
        """Whether it answers and the master knows the volumes; without them nothing can be read."""
        master = http.client.HTTPConnection("127.0.0.1", self._ports["master.port"],
                                             timeout=ANSWER_S)
        try:
            master.request("GET", "/dir/status")
            return (json.load(master.getresponse())["Topology"]["Max"] > 0
                    and self.client(timeout_s=ANSWER_S).request("GET", "/").status == 200)
        except (OSError, ValueError, KeyError, http.client.HTTPException):
            return False
        finally:
            master.close()

    def stop(self):
        """Stops it as intended, but cuts short its waits for itself, of 15 s and more."""
        if self._process:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                pass
        self.kill()

    def kill(self):
        if not self._process:
            return
        self._process.kill()
        self._process.wait()
        self._process = None
        remove_sockets(self._ports["master.port"])

    def restart(self):
        self.kill()
        self.start()


def run(command):
    """Runs a command with a store, which ends with it. Returns the command's exit status."""
    with Store() as store:
        process = subprocess.Popen(["setpriv", "--pdeathsig=TERM", *command],
                                   env=os.environ | store.environment())
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _: process.send_signal(number))
        code = process.wait()
    return code if code >= 0 else 128 - code


def serve(folder):
    with Store(folder) as store:
        for name, value in store.environment().items():
            print(f"export {name}={shlex.quote(value)}", flush=True)
        print(f"# the bucket is {BUCKET}; end with ctrl-C", flush=True)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            signal.pause()
        except KeyboardInterrupt:
            pass


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("run").add_argument("command", nargs="+")
    verbs.add_parser("serve").add_argument("folder")
    options = parser.parse_args()
    sys.exit(run(options.command) if options.verb == "run" else serve(options.folder))


if __name__ == "__main__":
    main()
