"""What this process has done so far; renzan.torch.run detects with it a script that never
trains."""

from __future__ import annotations

from typing import Any


class Activity:
    """Counted since the process began."""

    def __init__(self) -> None:
        self.prepared = False
        """Whether a VirtualStep or a State has been made."""
        self.steps = 0
        """Steps of VirtualStep."""
        self.states: list[Any] = []
        """Every State."""


activity = Activity()
