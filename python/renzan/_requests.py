"""Requests to this process (the launch contract): how often a stop and a checkpoint were requested.

Signal handlers count them; they are read between two steps.
"""

from __future__ import annotations


class Requests:
    """Counts since the process began."""

    def __init__(self) -> None:
        self.stops = 0
        self.checkpoints = 0

    def counts(self) -> tuple[int, int]:
        """(stops, checkpoints)."""
        return self.stops, self.checkpoints


requests = Requests()
