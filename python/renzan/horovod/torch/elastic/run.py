"""elastic.run: a training function that resumes at its last commit."""

from __future__ import annotations

import functools
from typing import Any, Callable, TypeVar

from renzan._signals import serve_signals
from renzan.horovod.torch import _basics
from renzan.horovod.torch.elastic.state import State

Result = TypeVar("Result")


def run(func: Callable[..., Result]) -> Callable[..., Result]:
    """Decorates func(state, ...), which must contain all of the training: workers that are started
    later would miss earlier exchanges.

    If an earlier attempt has committed, `state` is as it was then on all workers, and its reset
    callbacks are called; otherwise it is worker 0's. If a worker dies, the others raise
    HorovodInternalError and end (exit status 69); if the run was asked to stop (SIGTERM), the next
    commit() raises HostsUpdatedInterrupt on all of them (75).
    """
    @functools.wraps(func)
    def wrapper(state: State, *args: Any, **kwargs: Any) -> Result:
        _basics.init()
        serve_signals()
        resumed = state.load()
        state.sync()
        if resumed:
            state.on_reset()
        return func(state, *args, **kwargs)
    return wrapper
