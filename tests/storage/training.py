"""Small training runs of the real program, whose checkpoints lie in a store.

  with Renzan(program) as renzan:
      renzan("checkpoint", "list", "s3://test/here", store=store)
      run = renzan.start("run-1", "s3://test/here", store=store, workers=2)
      run.wait_for("checkpoint step-")
      run.kill()

Nothing of whoever runs the test reaches the program: neither keys nor a configuration. What it says
is searched for secrets, and for words that no user should see.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from checks import expect, expect_equal
from faults import delay
from store import IDENTITIES

LIMIT_S = 300  # only ends a test that hangs
STEPS = 330
# Its largest table is uploaded in two parts; an increment is a fifth of a full checkpoint.
CONFIG = {
    "seed": 3,
    "data": {"train": {"path": "data", "rows": [0, 3000]},
             "eval": {"path": "data", "rows": [3000, 4000]}},
    "model": {"embedding_dim": 128, "bottom_mlp": [16], "top_mlp": [16, 8]},
    "training": {"batch_size": 256, "log_every": 4, "epochs": STEPS // 11,
                 "max_steps": STEPS},
    "optimizer": {"dense": {"learning_rate": 0.05}, "sparse": {"learning_rate": 0.05}},
    "checkpoint": {"every": "0", "every_steps": 40},
    "elastic": {"backoff_seconds": 0.05},
}
# For a request that does not end before the test does.
HANG = delay(3600)
FOREVER = {"training.max_steps": 100_000_000, "training.epochs": 1_000_000}
WRONG_SECRET = "not-the-secret"
SECRETS = (*(secret for _, secret in IDENTITIES), WRONG_SECRET)
OF_PROGRAMMERS = ("Traceback", "terminate called", "internal error", "std::")


def wait_until(condition, what):
    """Waits until the condition is true, and returns its value."""
    end = time.monotonic() + LIMIT_S
    while not (found := condition()):
        expect(time.monotonic() < end, f"waited in vain: {what}")
        time.sleep(0.02)
    return found


def environment_of_programs(folder, variables):
    """Without anything of whoever runs the test that says where stores, caches and files are.
    `variables`: those that are None are removed."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("AWS_", "RENZAN_", "XDG_"))}
    wanted = kept | {"HOME": str(folder / "home"), "TMPDIR": str(folder)} | variables
    return {name: value for name, value in wanted.items() if value is not None}


def check_words(text, where):
    for word in (*SECRETS, *OF_PROGRAMMERS):
        expect(word not in text, f"'{word}' in what {where} says:\n{text}")


def descendants(pid):
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []  # it has just ended
    found = []
    for thread in threads:
        try:
            children = pathlib.Path(f"/proc/{pid}/task/{thread}/children").read_text().split()
        except OSError:
            continue  # this one has ended
        for child in map(int, children):
            found += [child, *descendants(child)]
    return found


def is_alive(pid):
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return re.search(r"^State:\s+[ZX]", status, re.MULTILINE) is None


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # it has ended


class Run:
    """One `renzan train` in the background."""

    def __init__(self, name, command, environment, folder):
        self.directory, self._log = folder / name, folder / f"{name}.log"
        with open(self._log, "w") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig=KILL", *command], cwd=folder, env=environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    @property
    def pid(self):
        return self._process.pid

    def workers(self):
        """The workers' process ids; the run's own if it has only one worker."""
        program = os.readlink(f"/proc/{self.pid}/exe")
        found = []
        for pid in descendants(self.pid):
            try:
                if os.readlink(f"/proc/{pid}/exe") == program:
                    found.append(pid)
            except OSError:
                pass  # it has just ended
        return found or [self.pid]

    def log(self):
        return self._log.read_text(errors="replace")

    def fail(self, what):
        expect(False, f"{what}; {self._log.name}:\n{self.log()}")

    def count(self, pattern):
        """How many lines match the regular expression."""
        return sum(re.search(pattern, line) is not None for line in self.log().splitlines())

    def wait_for(self, pattern, count=1):
        """Waits until so many lines of its log match the regular expression."""
        def is_there():
            ended = not self.is_running()
            if self.count(pattern) >= count:
                return True
            return ended and self.fail(f"ended without '{pattern}'")

        wait_until(is_there, f"'{pattern}' in\n{self.log()}")
        return self

    def wait_for_fault(self, rule):
        """Waits until a FaultyStore's rule has hit."""
        wait_until(lambda: rule.hits or not self.is_running(), f"{rule.fault.name}: {rule.path}")
        if not rule.hits:
            self.fail(f"ended before {rule.fault.name}: {rule.path}")
        return self

    def is_running(self):
        return self._process.poll() is None

    def status(self):
        return json.loads((self.directory / "status.json").read_text())

    def wait_for_steps(self, more=1):
        """Waits until it has trained so many more steps."""
        def step():
            expect(self.is_running(), f"ended early:\n{self.log()}")
            try:
                status = self.status()
            except FileNotFoundError:
                return 0
            return status["step"] if status["state"] == "running" else 0

        first = step()
        wait_until(lambda: step() >= first + more, f"{more} more steps")
        return self

    def signal(self, number):
        send(self.pid, number)

    def pause(self):
        for pid in (self.pid, *descendants(self.pid)):
            send(pid, signal.SIGSTOP)

    def go_on(self):
        for pid in (*descendants(self.pid), self.pid):
            send(pid, signal.SIGCONT)

    def kill(self):
        """Kills it without warning, with all its workers: as in a power cut, none sees another
        die."""
        everyone = [self.pid, *descendants(self.pid)]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in everyone:
                send(pid, number)
        self._process.wait()
        wait_until(lambda: not any(map(is_alive, everyone)), "the end of what was killed")

    def end(self, code=0):
        """Waits for its end."""
        try:
            status = self._process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.fail("does not end")
        if status != code:
            self.fail(f"exit {status} instead of {code}")
        check_words(self.log(), self._log.name)
        return self

    def sha256(self):
        """The sha256 of the model that it has trained."""
        found = re.search(rf"model {re.escape(self.directory.name)}/model sha256 (\w{{64}})",
                          self.log())
        return found[1] if found else self.fail("no model")

    def checkpoints(self):
        """The steps of the checkpoints that it has reported."""
        return [int(step) for step in re.findall(r"checkpoint step-(\d+): ", self.log())]


class Renzan:
    def __init__(self, program):
        self.program = os.path.realpath(program)
        self._temporary = tempfile.TemporaryDirectory(prefix="checkpoints.")
        self.folder = pathlib.Path(self._temporary.name)
        self.expected = ""  # the model's sha256, of a run on disk that nothing has disturbed
        self._runs = []

    def __enter__(self):
        try:
            (self.folder / "home").mkdir()
            (self.folder / "config.json").write_text(json.dumps(CONFIG))
            self("data", "synth", "--format", "dataset", "--seed", "7", "--rows", "4000",
                 "--features", "3", "--output", "data")
            self.expected = self.train("reference", "", keys={"checkpoint.every_steps": 0}).sha256()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for run in self._runs:
            if run.is_running():
                run.kill()
        self._temporary.cleanup()

    def environment(self, store=None, **variables):
        """`store`: a Store or a FaultyStore, or the variables that say where one is."""
        place = store if isinstance(store, dict) else store.environment() if store else {}
        return environment_of_programs(self.folder, place | variables)

    def __call__(self, *words, code=0, store=None, **variables):
        """Runs the program. Returns what it prints: one line about the error, if there is one."""
        done = subprocess.run([self.program, *words], cwd=self.folder, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S,
                              env=self.environment(store, **variables))
        said = f"renzan {' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        expect_equal(done.returncode, code, said)
        check_words(done.stdout + done.stderr, "renzan " + " ".join(words))
        if code > 1:
            expect_equal(len(done.stderr.splitlines()), 1, f"lines of {said}")
        return done.stderr if code > 1 else done.stdout

    def train_words(self, run, checkpoints, workers=1, keys=None):
        keys = {"checkpoint.dir": checkpoints} | (keys or {})
        return ["train", "config.json", "--run-dir", run, "--workers", str(workers), "--threads",
                "1", *(word for key, value in keys.items() for word in ("--set", f"{key}={value}")),
                *(["--backend", "gloo"] if workers > 1 else [])]

    def start(self, run, checkpoints, store=None, workers=1, keys=None, **variables):
        """`run`: the name of a new directory. `checkpoints`: their directory. `keys`: keys of the
        configuration, with their values."""
        words = self.train_words(run, checkpoints, workers, keys)
        self._runs.append(Run(run, [self.program, *words], self.environment(store, **variables),
                              self.folder))
        return self._runs[-1]

    def train(self, *arguments, code=0, **others):
        """Trains to the end."""
        return self.start(*arguments, **others).end(code)

    def expect_trained(self, run):
        """Waits for its end; its model must be that of an undisturbed run."""
        run.end()
        if run.sha256() != self.expected:
            run.fail(f"not the model {self.expected}")
        return run
