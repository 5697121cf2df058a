"""The random state of PyTorch, NumPy and Python, for a program that runs alone without VirtualStep.
VirtualStep keys it by step and needs none of this."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch


def get_random_state() -> dict[str, Any]:
    """The state of all three generators, in types that a checkpoint can hold."""
    version, words, gauss = random.getstate()
    of_numpy: Any = np.random.get_state()
    name, key, *rest = of_numpy
    return {"torch": torch.get_rng_state(), "python": [version, np.array(words, np.int64), gauss],
            "numpy": [name, key.astype(np.int64), *rest]}


def set_random_state(state: dict[str, Any]) -> None:
    """The reverse."""
    torch.set_rng_state(state["torch"])
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words.tolist()), gauss))
    name, key, *rest = state["numpy"]
    of_numpy: Any = (name, key.astype(np.uint32), *rest)
    np.random.set_state(of_numpy)
