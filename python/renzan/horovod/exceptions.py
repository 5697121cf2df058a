"""Horovod's exceptions."""

from __future__ import annotations

from renzan.errors import PeerError, Stopped


class HorovodInternalError(PeerError):
    """A worker has died or does not answer. Unlike in Horovod, this process cannot continue: it
    ends (exit status 69), and the launcher starts all workers again."""


class HostsUpdatedInterrupt(Stopped):
    """The run was asked to stop, to continue elsewhere or with other workers (exit status 75).
    Raised by State.commit() and State.check_host_updates(), on all workers alike."""

    def __init__(self, text: str = "asked to stop; the last commit is kept: run it again",
                 exit_status: int | None = None):
        """`exit_status`: None for 75."""
        super().__init__(text, exit_status)
