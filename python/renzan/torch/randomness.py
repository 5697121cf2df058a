"""Random state that is a function of what it is for, instead of what was drawn before."""

from __future__ import annotations

import random

import numpy as np
import torch

from renzan.random import key


def seed_all(seed: int, meaning: str, index: int = 0) -> None:
    """Sets the generators of PyTorch, NumPy and Python by a key."""
    value = key(seed, meaning, index)
    # torch.manual_seed would note every call for CUDA devices that are not there.
    torch.default_generator.manual_seed(value & (2 ** 63 - 1))
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(value & (2 ** 63 - 1))
    np.random.seed(value & 0xFFFFFFFF)
    random.seed(value)
