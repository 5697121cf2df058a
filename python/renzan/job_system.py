"""The job system (docs/cluster.md), as the `renzan` program knows it: this machine's daemon or a
Kubernetes cluster, as RENZAN_CLUSTER says. The program is the one that RENZAN names, else the one
on PATH. An error of the program is a renzan.Error with its exit status and text.

    job = renzan.submit(["python3", "train.py"], replicas="2..8", gpus=1, checkpoints=True)
    print(renzan.explain(job).why)
    assert renzan.wait(job).exit_code == 0
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Mapping, Sequence, Union

from renzan._native import error
from renzan.errors import NoInputError, PeerError, UsageError

JobId = Union[int, str]
"""A job's number; on Kubernetes also "NAME" or "NAMESPACE/NAME"."""

_ENDED = {"done", "failed", "cancelled", "timeout"}
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_MAX_ABSENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Progress:
    """What a running job reports about itself."""

    step: int | None
    steps: int | None
    samples_per_second: float | None
    eta_seconds: float | None


@dataclass(frozen=True)
class Job:
    """A job at the time of the call. None: not (yet) known."""

    id: int | None
    name: str
    queue: str
    user: str
    priority: int
    state: str
    """pending, running, stopping, resizing, collecting, done, failed, cancelled or timeout."""
    reason: str | None
    """Why it is pending, in a word; explain() says more."""
    workers: int
    """How many run now."""
    min_workers: int
    max_workers: int
    cpu: float
    """For each worker, like the next two."""
    memory_mib: int
    gpu: int
    nodes: list[str]
    submitted: datetime
    started: datetime | None
    ended: datetime | None
    exit_code: int | None
    attempts: int
    failures: int
    preemptions: int
    progress: Progress | None

    @property
    def has_ended(self) -> bool:
        """Whether it is done, failed, cancelled, or ran out of time."""
        return self.state in _ENDED


@dataclass(frozen=True)
class Explanation:
    """Why a job is in its state."""

    state: str
    why: str
    would_start_with: list[str]
    """For a pending job: each of these changes would start it."""
    queue_position: int | None
    """For a pending job: counted from 1."""
    estimated_start: datetime | None
    """For a pending job: by then it has started in half of all cases."""
    estimated_start_p90: datetime | None
    """And by then in 9 of 10."""
    estimate_rests_on: str
    warning: str
    note: str
    """What could not be found out, if anything."""


def submit(command: Sequence[str] | os.PathLike[str], *, replicas: int | str | None = None,
           gpus: int | None = None, cpus: float | None = None, memory: str | None = None,
           name: str | None = None, queue: str | None = None, priority: int | None = None,
           retries: int | None = None, timeout: str | None = None, artifacts: str | None = None,
           checkpoints: bool = False, settings: Mapping[str, Any] | None = None,
           image: str | None = None,
           pod_template: str | os.PathLike[str] | None = None) -> JobId:
    """Submits a job, and returns its id. A job that could never run is a ConfigError.

    command       its words, ["python3", "train.py"], or the path of a job file (pathlib.Path)
    replicas      workers: 4, or "2..8" if it is elastic; default 1
    gpus, cpus, memory    of each worker; memory as "32GiB"
    retries       further attempts after failures; timeout of the total running time: "2h"
    artifacts     a directory to keep when the job ends
    checkpoints   it saves its work on SIGTERM and exits with 75: it can be stopped without loss
    settings      other keys of the job: {"environment": {"A": "1"}, "checkpoint.on_request": True}
    image, pod_template   on Kubernetes: the image that has the program, and a file with the rest of
                  the pod

    Defaults are those of `renzan submit --print-config`. The job runs in the working directory of
    this process, unless settings have a "working_directory", and with its environment, unless they
    have an "export".
    """
    words = ["submit", "--json"]
    for flag, value in (("--replicas", replicas), ("--gpus", gpus), ("--cpus", cpus),
                        ("--memory", memory), ("--name", name), ("--queue", queue),
                        ("--priority", priority), ("--retries", retries), ("--timeout", timeout),
                        ("--artifacts", artifacts), ("--image", image),
                        ("--pod-template", pod_template)):
        if value is not None:
            words.append(f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    if checkpoints:
        words.append("--checkpoints")
    for key, value in (settings or {}).items():
        words.append(f"--set={key}={json.dumps(value)}")
    if isinstance(command, os.PathLike):
        words += [os.fspath(command)]
    elif isinstance(command, str):
        raise UsageError('a command is a list of words, ["python3", "train.py"]: '
                         '["sh", "-c", TEXT] for one of the shell')
    else:
        words += ["--", *command]
    answer = _ask(*words)
    if answer["id"] is not None:
        return int(answer["id"])
    return f"{answer['namespace']}/{answer['name']}" if "namespace" in answer else answer["name"]


def jobs(*, all: bool = False, limit: int | None = None, queue: str | None = None,  # noqa: A002
         user: str | None = None, state: str | None = None) -> list[Job]:
    """The jobs that are pending or running, or ended in the last hour (with `all`: ever), by
    number. `limit`: how many ended ones, the newest; default 1000."""
    words = ["jobs", "--json"] + ["--all"] * all
    for flag, value in (("--limit", limit), ("--queue", queue), ("--user", user),
                        ("--state", state)):
        if value is not None:
            words.append(f"{flag}={value}")
    return [_job(document) for document in _ask(*words)["jobs"]]


def job(id: JobId) -> Job:  # noqa: A002
    """One job."""
    return _job(_ask("job", "show", "--json", "--", str(id)))


def explain(id: JobId) -> Explanation:  # noqa: A002
    """Why a job is pending, what would start it, and when it may start; or where it is."""
    about = _ask("job", "explain", "--json", "--", str(id))
    return Explanation(
        state=about["state"], why=about.get("why") or "",
        would_start_with=about.get("would_start_with") or [],
        queue_position=about.get("queue_position") or None,
        estimated_start=_time(about.get("estimated_start")),
        estimated_start_p90=_time(about.get("estimated_start_p90")),
        estimate_rests_on=about.get("estimate_rests_on") or "",
        warning=about.get("warning") or "", note=about.get("note") or "")


def wait(id: JobId, timeout: float | None = None) -> Job:  # noqa: A002
    """Waits until a job has ended, in whatever state: see its state and exit_code. Keeps waiting
    while the daemon restarts. TimeoutError after `timeout` seconds; the job continues."""
    pause = _FIRST_PAUSE
    began = last_answer = time.monotonic()
    while True:
        try:
            now = job(id)
            last_answer = time.monotonic()
            if now.has_ended:
                return now
        except PeerError:
            if time.monotonic() - last_answer > _MAX_ABSENCE_SECONDS:
                raise
        left = float("inf") if timeout is None else began + timeout - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"job {id} has not ended within {timeout:g} s")
        time.sleep(min(pause, left))
        pause = min(1.5 * pause, _LONGEST_PAUSE)


def cancel(id: JobId) -> str | None:  # noqa: A002
    """Ends a job for good: its workers get SIGTERM, and SIGKILL after its grace period. Returns its
    state afterwards; None if that is not known yet."""
    state: str | None = _ask("job", "cancel", "--json", "--", str(id))["state"]
    return state


def _ask(*words: str) -> Any:
    """What the program prints, as JSON."""
    program = os.environ.get("RENZAN") or "renzan"
    try:
        done = subprocess.run([program, *words], stdin=subprocess.DEVNULL, capture_output=True)
    except OSError as failure:
        raise NoInputError(f"the program {program} cannot be started ({failure.strerror}): install "
                           "it, or name it by the environment variable RENZAN") from failure
    said = done.stderr.decode(errors="replace")
    if done.returncode != 0:
        text = said.strip() or f"{program} ended with {done.returncode}"
        raise error(done.returncode, text[len("error: "):] if text.startswith("error: ") else text)
    sys.stderr.write(said)  # warnings
    return json.loads(done.stdout)


def _job(about: Mapping[str, Any]) -> Job:
    resources, progress = about["resources"], about["progress"]
    return Job(
        id=about["id"], name=about["name"], queue=about["queue"], user=about["user"],
        priority=about["priority"], state=about["state"], reason=about["reason"],
        workers=about["workers"], min_workers=about["min_workers"],
        max_workers=about["max_workers"], cpu=resources["cpu"], memory_mib=resources["memory_mib"],
        gpu=resources["gpu"], nodes=about["nodes"],
        submitted=datetime.fromtimestamp(about["submitted"] / 1000, timezone.utc),
        started=_time(about["started"]), ended=_time(about["ended"]),
        exit_code=about["exit_code"], attempts=about["attempts"], failures=about["failures"],
        preemptions=about["preemptions"],
        progress=None if progress is None else Progress(
            progress.get("step"), progress.get("steps"), progress.get("samples_per_second"),
            progress.get("eta_seconds")))


def _time(unix_ms: int | None) -> datetime | None:
    return None if unix_ms is None else datetime.fromtimestamp(unix_ms / 1000, timezone.utc)
