"""Random numbers and orders keyed by their purpose: nothing has state."""

from __future__ import annotations

from ctypes import POINTER, c_int64

import numpy as np

from renzan._native import library

__all__ = ["key", "sample_order"]


def key(seed: int, meaning: str, index: int = 0) -> int:
    """A 64-bit key for one purpose ("dropout"), derived from a seed; stable across versions."""
    value: int = library.renzan_key(seed, meaning.encode(), index)
    return value


def sample_order(seed: int, epoch: int, num_samples: int, begin: int = 0,
                 end: int | None = None) -> np.ndarray:
    """The samples at positions [begin, end) of an epoch, int64: a keyed permutation of all."""
    end = num_samples if end is None else end
    out = np.empty(max(0, end - begin), np.int64)
    library.renzan_sample_order(seed, epoch, num_samples, begin, end,
                                out.ctypes.data_as(POINTER(c_int64)))
    return out
