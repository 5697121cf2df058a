"""Runs a training program as a worker that obeys the launch contract (docs/cluster.md)."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Callable, NoReturn

import torch

import renzan
from renzan._signals import serve_signals
from renzan.communicator import place_from_environment
from renzan.errors import Error, Stopped, UsageError
from renzan.torch.activity import activity
from renzan.torch.status import status


def run(main: Callable[[], None], *, threads: int = 1, backend: str = "auto",
        timeout: float = 300.0) -> None:
    """Runs main() as one of the workers that a launcher has started, or alone.

    What it does before: renzan.init(backend, timeout); it fixes what makes PyTorch's results differ
    from run to run and from machine to machine: torch.set_num_threads(threads), since sums are split
    by threads, torch.use_deterministic_algorithms(True), cuDNN's choice of algorithms by timing off
    and CUBLAS_WORKSPACE_CONFIG.

    While main() runs, SIGTERM, SIGINT and SIGHUP ask it to stop, and SIGUSR1 to save a checkpoint:
    State.commit() does both after a step that all workers agree on. A second Ctrl-C kills. Processes
    that it forks ignore these signals. Worker 0 keeps status.json in RENZAN_RUN_DIR up to date.

    When main() returns, every State that it made saves its last step. A program that was stopped ends
    with exit status 75 (run it again), one with an Error with its status and one line on stderr, one
    with any other exception with a traceback and status 1. When a worker dies, the others end with
    status 69 and a line that names it. A main() that makes a VirtualStep or a State and returns
    without a step is an error.
    """
    serve_signals()
    place = place_from_environment()
    prefix = f"[worker {place.rank}] " if place.world_size > 1 else ""
    try:
        status.begin(place.rank)
        _make_deterministic(threads)
        renzan.init(backend, timeout)
        _call(main)
        _check_trained()
        for state in activity.states:
            state.finish()
        status.change("done")
    except Stopped as stopped:
        if place.rank == 0:
            print(f"renzan: {stopped}", file=sys.stderr, flush=True)
        status.change("stopped")
        # All workers are here: the communicator can be left in order.
        renzan.finalize()
        sys.exit(stopped.exit_status)
    except Error as problem:
        print(f"{prefix}error: {problem}", file=sys.stderr)
        _end(problem.exit_status)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(f"{prefix}{end.code}", file=sys.stderr)
        _end(end.code if isinstance(end.code, int) else 1)
    except BaseException:  # pylint: disable=broad-except
        lines = traceback.format_exc().splitlines()
        print("\n".join(prefix + line for line in lines), file=sys.stderr)
        _end(1)


def _call(main: Callable[[], None]) -> None:
    try:
        main()
    except SystemExit as end:
        if end.code not in (None, 0):
            raise


def _make_deterministic(threads: int) -> None:
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False


def _check_trained() -> None:
    states = activity.states
    commits = sum(state.commits for state in states)
    if activity.steps > 0 and states and commits == 0:
        raise UsageError(f"{activity.steps} steps were made, but state.commit() was never called: "
                         "nothing was saved; call it after each step")
    if (activity.prepared and activity.steps == 0 and commits == 0
            and not any(state.resumed_from for state in states)):
        raise UsageError("main() returned without a training step: for each batch call the step and "
                         "state.commit() (is the data empty?)")


def _end(exit_status: int) -> NoReturn:
    """Ends immediately: exit handlers could wait for workers that are gone."""
    status.change("failed")
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    os._exit(exit_status)
