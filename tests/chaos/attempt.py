"""One attempt at a run: starts the program, injects the planned faults, waits for it to end and
checks how it ended. chaos.py checks the result of the whole run."""

import dataclasses
import json
import os
import random
import re
import subprocess
import time

import processes
from scenario import HUP, INT, KILL, STEPS, TERM, Outage

# An attempt that takes longer counts as hung: beside other work, four workers over MPI on two cores
# may train no more than a step per second.
LONGEST_SECONDS = 600
# Workers check for a stop about every tenth of a second. A request this many steps before the end
# and this many seconds ago must have stopped the run.
STOP_STEPS, STOP_SECONDS = 150, 3
RESUMES = r"resuming from (step-\d+)"
TRAINS = r"checkpoint step-|eval at step|stop requested|trained \d+ steps"


class Failure(Exception):
    pass


@dataclasses.dataclass
class Counts:
    """What happened."""

    attempts: int = 0
    kills: int = 0  # of one worker or of all
    kills_in_write: int = 0  # of those, during the write of a checkpoint that never appeared
    kills_in_model: int = 0  # likewise for the model at the end
    stops: int = 0  # attempts that stopped on request
    restarts: int = 0  # by the launcher
    resumes: int = 0
    from_increments: int = 0  # of those
    corrupt: int = 0
    steps_lost: int = 0
    requests_failed: int = 0  # requests to the store that a test made fail
    outages: int = 0

    def add(self, other):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name) + getattr(other, field.name)
            setattr(self, field.name, value)


class Attempt:
    def __init__(self, program, directory, number, scenario, plan, watch, storage):
        """Runs in `directory`, which holds config.yaml. `storage`: for checkpoints in a store."""
        self.plan = plan
        self.log = f"{directory}/attempt{number}.log"
        self._program = program
        self._directory = directory
        self._run = f"{directory}/run"
        self._tag = f"{os.getpid()}.{scenario.seed}.{number}"
        self._rng = random.Random(f"targets {scenario.seed} {number}")
        self._watch = watch
        self._checkpoints = watch.checkpoints
        self._stored = scenario.stored
        self._storage = storage
        self._events = []
        # Facts about the injected faults that determine how the attempt may end.
        self._stop_asked = None  # (step, time, signal)
        self._stop_known = False  # whether the launcher knows, which restarts killed workers
        self._worker_kills = 0
        self._all_killed = False
        self._died_of = set()  # signals sent before the program handled them
        self._writing_when_killed = []
        self._outages = []

    def history(self):
        return "; ".join(self._events) or "no faults"

    def run(self, counts):
        """Returns the exit status; negative if a signal ended the attempt."""
        counts.attempts += 1
        self._resumes_from = next((name for name in self._checkpoints.complete()
                                   if not self._checkpoints.is_corrupt(name)), None)
        if self._stored:
            self._storage.begin(self.plan.requests)
            self._events += map(str, self.plan.requests)
        self._start()
        try:
            for fault in self.plan.faults:
                if not self._wait_for(fault.moment):
                    break
                self._inject(fault, counts)
            self._wait_for(None)
        finally:
            if self._process.poll() is None:
                processes.kill_all(self._tag)
                self._process.wait()
            if self._stored:
                counts.requests_failed += self._storage.settle()
        status = self._process.returncode
        self._watch.look()
        self._count(counts)
        self._judge(status)
        return status

    def text(self):
        with open(self.log, errors="replace") as file:
            return file.read()

    def _start(self):
        place = self.plan.placement
        command = [
            self._program, "train", "config.yaml", "--run-dir", "run",
            "--workers", str(place.workers), "--threads", str(place.threads),
            "--backend", place.backend,
            "--set", f"elastic.max_restarts={self.plan.max_restarts}",
            "--set", "elastic.min=1", "--set", "elastic.backoff_seconds=0.05",
        ]
        self._events.append(f"{place}, {self.plan.max_restarts} restarts")
        # The program knows no store but the test's.
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("AWS_", "RENZAN_S3_"))}
        environment[processes.TAG] = self._tag
        environment["TMPDIR"] = self._directory  # a killed mpirun leaves files there
        if self._stored:
            environment |= self._storage.environment(self._stored)
        self._began = time.monotonic()
        with open(self.log, "w") as log:
            self._process = subprocess.Popen(
                command, cwd=self._directory, env=environment, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True)

    def _wait_for(self, moment):
        """Waits until the moment. Returns False if the attempt ended first. None: waits for the
        end."""
        since = time.time()
        old = self._checkpoints.partial()
        seen_at = base = None
        while self._process.poll() is None:
            now = time.monotonic()
            if now - self._began > LONGEST_SECONDS:
                raise Failure(f"it has not ended after {LONGEST_SECONDS} s")
            status = self._watch.look()
            if moment is None:
                time.sleep(2 * self._checkpoints.POLL_S)
                continue
            if moment.kind == "start":
                reached = now - self._began >= moment.value
            elif moment.kind == "step":
                if base is None and status and status["updated"] > since:
                    base = status["step"]
                reached = base is not None and status["step"] >= base + moment.value
            else:
                seen = (os.path.exists(f"{self._run}/.model.partial")
                        if moment.kind == "model"
                        else self._checkpoints.partial() - old)
                seen_at = (seen_at or now) if seen else None
                reached = seen_at is not None and now - seen_at >= moment.value
            if reached:
                return True
            time.sleep(self._checkpoints.POLL_S)
        return False

    def _inject(self, fault, counts):
        if isinstance(fault, Outage):
            self._events.append(f"{fault} (step {self._watch.step})")
            counts.outages += 1
            self._outages.append(fault)
            self._storage.disturb(fault)
            return
        pid = self._target(fault.target)
        if pid is None:
            return
        step = self._watch.step
        writing = self._checkpoints.partial()
        model = os.path.exists(f"{self._run}/.model.partial")
        self._events.append(f"{fault} (step {step}{', writing' if writing else ''})")
        number = fault.signal
        if number == KILL:
            counts.kills += 1
            self._writing_when_killed.append((writing, model))
        if fault.target == "all" or (number == KILL and pid == self._process.pid):
            self._all_killed = True
            processes.kill_all(self._tag)
            return
        if number == KILL:
            self._worker_kills += 1
        elif not processes.handles(pid, number):
            self._died_of.add(number)
            self._worker_kills += pid != self._process.pid
        if number in (TERM, INT, HUP):
            self._stop_asked = self._stop_asked or (step, time.monotonic(), number)
            self._stop_known |= pid == self._process.pid
        processes.send(pid, number)
        if fault.twice:
            time.sleep(self._rng.uniform(0, 0.2))
            if self._process.poll() is None:
                processes.send(pid, number)

    def _target(self, target):
        """Returns the processes to hit, or None if the attempt has ended."""
        while self._process.poll() is None:
            if target != "worker" or self.plan.placement.workers == 1:
                return self._process.pid
            found = processes.workers(self._tag, self._program, self._process.pid)
            if found:
                return self._rng.choice(found)
            time.sleep(0.001)
        return None

    def _count(self, counts):
        text = self.text()
        counts.restarts += text.count("restarting with")
        for name in re.findall(RESUMES, text):
            counts.resumes += 1
            counts.from_increments += self._watch.kinds.of(name) == "incremental"
        appeared = self._checkpoints.appeared()
        for writing, model in self._writing_when_killed:
            if any(writer not in appeared for _, writer in writing):
                counts.kills_in_write += 1
            if model and not os.path.exists(f"{self._run}/model"):
                counts.kills_in_model += 1
        if self._process.returncode in (75, 130):
            counts.stops += 1

    def _judge(self, status):
        self._events.append(f"exit {status}")
        allowed = {0} | {-number for number in self._died_of}
        if self._stop_asked:
            allowed |= {75} | ({130} if self._stop_asked[2] == INT else set())
        if self._worker_kills > self.plan.max_restarts or (self._worker_kills and self._stop_asked):
            allowed.add(69)
        if self._all_killed:
            allowed.add(-KILL)
        allowed |= {outage.status for outage in self.lasting_outages()}
        if status not in allowed:
            raise Failure(f"exit status {status}, expected one of {sorted(allowed)}")
        if left := processes.wait_until_gone(self._tag, 3):
            processes.kill_all(self._tag)
            raise Failure(f"processes {left} were left behind")
        # If the worker that got the request was killed before a control sync, the request is lost.
        if status == 0 and (self._stop_known or self._stop_asked and not self._worker_kills):
            step, moment, _ = self._stop_asked
            if step < STEPS - STOP_STEPS and time.monotonic() - moment > STOP_SECONDS:
                raise Failure(f"it trained to the end although a stop was requested at step {step}")
        if status == 75 and not self._worker_kills:
            self._judge_stop()
        self._judge_resume()
        if self._stored:
            self._judge_store()

    def _judge_resume(self):
        """The run must have resumed from the newest valid checkpoint."""
        text = self.text().partition("restarting with")[0]
        found = re.search(f"{RESUMES}|{TRAINS}", text)
        if found and found[1] != self._resumes_from:
            raise Failure(f"it resumed from {found[1]} instead of {self._resumes_from}")

    def lasting_outages(self):
        """Returns the outages that last longer than requests are repeated."""
        return [outage for outage in self._outages if outage.status]

    def _judge_store(self):
        text = self.text()
        if "another run still writes here" in text:
            raise Failure("it waited for a process of this machine that has ended")
        if "could not be written" in text and not self.lasting_outages():
            raise Failure("a checkpoint failed, although requests only had to be repeated")

    def _judge_stop(self):
        """A stop must not lose steps."""
        text = self.text()
        stopped = re.search(r"stopped at step (\d+) of", text)
        if not stopped:
            # Once the model is saved, a stop may still end mpirun before its workers' exit does.
            if re.search(rf"{STEPS} steps of", text) and "model sha256" not in text:
                raise Failure("it stopped during training without logging the step")
            return
        step = int(stopped.group(1))
        if self.lasting_outages() and f"step-{step:08} could not be written" in text:
            return
        newest = self._checkpoints.complete()[:1]
        if step > 0 and (not newest or int(newest[0][len("step-"):]) < step):
            raise Failure(f"stopped at step {step}, but the newest checkpoint is {newest}")
        with open(f"{self._run}/status.json") as file:
            if json.load(file)["state"] != "stopped":
                raise Failure("status.json does not say 'stopped'")
