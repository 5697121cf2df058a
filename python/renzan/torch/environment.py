"""Properties of PyTorch and the machine that may change the last bits of a result."""

from __future__ import annotations

import re

import torch


def describe_environment() -> dict[str, str]:
    """By name, for the run map of a checkpoint."""
    return {"torch": str(torch.__version__), "torch.threads": str(torch.get_num_threads()),
            "torch.cpu": cpu_capability()}


def cpu_capability() -> str:
    """The instruction set that PyTorch uses: "AVX2", say."""
    if hasattr(torch.backends, "cpu"):
        return torch.backends.cpu.get_cpu_capability()
    found = re.search(r"CPU capability usage: (\S+)", torch.__config__.show())
    return found.group(1) if found else "unknown"
