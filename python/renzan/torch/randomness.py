"""Random state that is a function of its purpose, instead of what was drawn before."""

from __future__ import annotations

import random

import numpy as np
import torch

from renzan.random import key


def seed_all(seed: int, meaning: str, index: int = 0) -> None:
    """Seeds the generators of PyTorch, NumPy and Python with a key."""
    value = key(seed, meaning, index)
    # torch.manual_seed would also record every call for CUDA devices that do not exist.
    torch.default_generator.manual_seed(value & (2 ** 63 - 1))
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(value & (2 ** 63 - 1))
    np.random.seed(value & 0xFFFFFFFF)
    random.seed(value)
