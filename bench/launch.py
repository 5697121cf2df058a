"""Starts a PyTorch program on several workers, and reads what worker 0 prints as JSON."""
import json
import os
import shlex
import socket
import subprocess
import sys
import time

from commands import ROOT

WORKERS = ROOT / "bench/pytorch_workers"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def environment(**more):
    """The environment of a worker, which finds Renzan's package in the source tree."""
    return {**os.environ, "RENZAN_LIBRARY": str(ROOT / "build/release/lib/librenzan.so"),
            "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1", **{name: str(value) for name, value in more.items()}}


def over_gloo(command, workers=2, address="127.0.0.1", on_host=lambda rank, command: command):
    """`on_host`: turns a worker's command into one that runs on its host; worker 0's is `address`."""
    ports = {"MASTER_PORT": free_port(), "BENCH_TORCH_PORT": free_port()}
    command = [str(word) for word in command]
    started = [subprocess.Popen(
        on_host(rank, command), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=workers, MASTER_ADDR=address,
                        **ports)) for rank in range(workers)]
    try:
        # Whatever a worker says stays far below what a pipe holds.
        while any(p.poll() is None for p in started):
            if any(p.returncode for p in started):  # the others would wait for it
                break
            time.sleep(0.05)
        failed = [rank for rank, p in enumerate(started) if p.returncode]
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
    said = [process.communicate() for process in started]
    for rank in failed:
        sys.exit(f"{shlex.join(command)}: worker {rank} ended with {started[rank].returncode}:\n"
                 f"{said[rank][1]}")
    return json.loads(said[0][0])


def over_mpi(command, workers=2):
    command = ["mpirun", "-n", str(workers), "--oversubscribe", "--bind-to", "none", "--mca", "btl",
               "self,vader", "--mca", "mpi_yield_when_idle", "1", *map(str, command)]
    done = subprocess.run(command, text=True, capture_output=True, stdin=subprocess.DEVNULL,
                          check=False, env=environment(OMPI_ALLOW_RUN_AS_ROOT=1,
                                                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1))
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)
