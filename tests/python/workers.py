"""Starts workers of a Python program on this machine, as a launcher does."""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import sys
import tempfile

# Whatever else the machine does, a worker that takes longer hangs.
LIMIT_SECONDS = 240


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(program: pathlib.Path, arguments=(), workers: int = 2, environment=None):
    """Starts one Popen per worker, over Gloo. Their output is captured as text."""
    port = free_port()
    started = []
    for rank in range(workers):
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": workers,
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        started.append(subprocess.Popen(
            [sys.executable, program, *map(str, arguments)], text=True, stdin=subprocess.DEVNULL,
            env={**os.environ, **(environment or {}), **{k: str(v) for k, v in place.items()}},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    return started


def finish(started):
    """Waits and returns [(exit status, stdout, stderr)] by rank. After an error, kills the rest."""
    try:
        ends = []
        for process in started:
            out, err = process.communicate(timeout=LIMIT_SECONDS)
            ends.append((process.returncode, out, err))
        return ends
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
                process.wait()


def run(program: pathlib.Path, arguments=(), workers: int = 2, backend: str = "gloo",
        environment=None) -> list[str]:
    """Returns what each worker prints. Every worker must succeed."""
    if backend == "mpi":
        return _mpirun(program, arguments, workers, environment)
    ends = finish(start(program, arguments, workers, environment))
    for rank, (status, out, err) in enumerate(ends):
        if status != 0:
            raise AssertionError(f"worker {rank} of {workers}: {status}\n{out}{err}")
    return [out for _, out, _ in ends]


def _mpirun(program, arguments, workers, environment) -> list[str]:
    # Into files: mpirun may interleave lines that workers print at the same time.
    with tempfile.TemporaryDirectory() as outputs:
        done = subprocess.run(
            ["mpirun", "-n", str(workers), "--oversubscribe", "--bind-to", "none",
             "--mca", "btl", "self,vader", "--mca", "mpi_yield_when_idle", "1",
             "--output-filename", outputs, sys.executable, program, *map(str, arguments)],
            text=True, capture_output=True, timeout=LIMIT_SECONDS, stdin=subprocess.DEVNULL,
            env={**os.environ, **(environment or {}), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                 "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
        if done.returncode != 0:
            raise AssertionError(f"mpirun: {done.returncode}\n{done.stdout}{done.stderr}")
        files = pathlib.Path(outputs).glob("*/rank.*/stdout")
        return [file.read_text() for file in
                sorted(files, key=lambda file: int(file.parent.name.split(".")[1]))]
