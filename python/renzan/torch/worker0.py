"""Runs work on worker 0 only, with one outcome on all workers."""

from __future__ import annotations

import json
import threading
from typing import Any, Callable

import numpy as np

from renzan._native import error
from renzan.communicator import Communicator
from renzan.errors import Error

# How often the others hear that worker 0 still works, so that they do not presume it dead.
_HEARTBEAT_SECONDS = 1.0


def on_worker_0(communicator: Communicator, work: Callable[[], Any]) -> Any:
    """Runs work() on worker 0 and returns what it returns (JSON) on all workers. An exception there
    is an Error with the same text and exit status on all."""
    if communicator.world_size == 1:
        return work()
    outcome: dict[str, Any] = {}
    if communicator.rank == 0:
        # In another thread: this one has to tell the others that it still works.
        thread = threading.Thread(target=lambda: outcome.update(_outcome(work)))
        thread.start()
        while True:
            thread.join(_HEARTBEAT_SECONDS)
            finished = not thread.is_alive()
            communicator.broadcast(np.array([finished]))
            if finished:
                break
    else:
        while not communicator.broadcast(np.array([False]))[0]:
            pass
    outcome = json.loads(communicator.broadcast_bytes(json.dumps(outcome).encode()))
    raise_first([outcome.get("error")])
    return outcome["result"]


def agree(communicator: Communicator, work: Callable[[], None]) -> None:
    """Runs work() on all workers. If it fails on any, it is an Error on all: that of the first."""
    if communicator.world_size == 1:
        return work()
    mine = _outcome(work).get("error")
    every = [json.loads(outcome) for outcome in communicator.gather_bytes(json.dumps(mine).encode())]
    raise_first(every)


def raise_first(failures: list[list[Any] | None]) -> None:
    """Raises the first failure [exit status, text], if there is one."""
    for failure in failures:
        if failure is not None:
            raise error(*failure)


def failure_of(exception: BaseException) -> list[Any]:
    """[exit status, text] of an exception."""
    if isinstance(exception, Error):
        return [exception.exit_status, str(exception)]
    status = 71 if isinstance(exception, (MemoryError, OSError)) else 70
    return [status, f"{type(exception).__name__}: {exception}"]


def _outcome(work: Callable[[], Any]) -> dict[str, Any]:
    try:
        return {"result": work()}
    except BaseException as exception:  # pylint: disable=broad-except
        return {"error": failure_of(exception)}
