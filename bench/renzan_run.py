"""Controls a run of `renzan train` for benchmarks: timestamped log lines, signals, exit status and
the checkpoints it wrote."""
import json
import os
import pathlib
import re
import subprocess
import threading
import time

CHECKPOINT_LINE = re.compile(r"checkpoint (?P<name>step-\d+): (?P<megabytes>[\d.]+) MB, "
                             r"(?P<kind>full|incremental), in [\d.]+ s, "
                             r"training waited (?P<waited_ms>\d+) ms")
TIMEOUT_SECONDS = 180


class Run:
    """`overrides` become --set options. The run starts immediately; leaving the `with` block
    kills it."""

    def __init__(self, renzan, config, run_dir, **overrides):
        self.dir = pathlib.Path(run_dir)
        command = [str(renzan), "train", str(config), "--run-dir", str(run_dir)]
        for key, value in overrides.items():
            command += ["--set", f"{key.replace('__', '.')}={value}"]
        # Variables of a scheduler or launcher would change the run.
        names = ("RENZAN_", "OMPI_", "PMI", "SLURM_", "MASTER_")
        environment = {k: v for k, v in os.environ.items()
                       if not k.startswith(names) and k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
        self.started = time.monotonic()
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                         text=True)
        self._lines, self._read, self._ended = [], 0, False
        self._more = threading.Condition()
        self._reader = threading.Thread(target=self._collect, daemon=True)
        self._reader.start()

    def _collect(self):
        for line in self._process.stderr:
            with self._more:
                self._lines.append((time.monotonic(), line.rstrip()))
                self._more.notify()
        with self._more:
            self._ended = True
            self._more.notify()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._process.stderr.close()

    def wait_for(self, pattern):
        """Waits for the next line that matches `pattern`. Returns (time, match)."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        with self._more:
            while True:
                while self._read < len(self._lines):
                    when, line = self._lines[self._read]
                    self._read += 1
                    if match := re.search(pattern, line):
                        return when, match
                if self._ended or not self._more.wait(deadline - time.monotonic()):
                    raise RuntimeError(f"no line with '{getattr(pattern, 'pattern', pattern)}' "
                                       "from renzan train:\n" + self.log())

    @property
    def pid(self):
        return self._process.pid

    def log(self):
        return "\n".join(line for _, line in self._lines)

    def signal(self, number):
        """Returns the time at which it was sent."""
        now = time.monotonic()
        self._process.send_signal(number)
        return now

    def wait_for_exit(self, status):
        """Returns the time at which it exited, which must be with `status`."""
        ended = self._process.wait()
        now = time.monotonic()
        self._reader.join()
        if ended != status:
            raise RuntimeError(f"renzan train ended with {ended}, not {status}:\n{self.log()}")
        return now

    def report_times(self):
        """Unix time of every report so far, by step."""
        try:
            lines = (self.dir / "metrics.jsonl").read_text().splitlines(keepends=True)
        except FileNotFoundError:
            return {}
        records = [json.loads(line) for line in lines if line.endswith("\n")]
        return {record["step"]: record["time"] for record in records}

    def wait_for_report(self, step):
        while step not in self.report_times():
            if self._process.poll() is not None:
                raise RuntimeError(f"renzan train ended before step {step}:\n{self.log()}")
            time.sleep(0.05)

    def checkpoint_lines(self):
        return [match for _, line in self._lines if (match := CHECKPOINT_LINE.search(line))]

    def checkpoint(self, name):
        return Checkpoint(self.dir / "checkpoints" / name)

    def newest_checkpoint(self):
        return Checkpoint(max((self.dir / "checkpoints").glob("step-*")))


class Checkpoint:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        manifest = json.loads((self.path / "manifest.json").read_text())
        self.kind = manifest["kind"]
        self.files = [self.path / file["name"] for file in manifest["files"]]
        self.bytes = sum(file["bytes"] for file in manifest["files"])
        # Only in an incremental one: the rows that it replaces.
        self.rows = sum(tensor["shape"][0] for file in manifest["files"]
                        for tensor in file["tensors"] if tensor["key"].endswith(".rows"))

    def write_seconds(self):
        """From the creation of its directory to its rename, in milliseconds; the log has only
        tenths of a second."""
        out = subprocess.run(["stat", "-c", "%.9W %.9Z", self.path], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
        born, renamed = (float(x) for x in out.split())
        if born == 0:
            raise RuntimeError(f"{self.path}: this file system does not record when a directory "
                               "was made; use ext4, xfs or btrfs")
        return renamed - born
