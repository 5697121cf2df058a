"""Finds libraries that hold tables: installed ones, or those of `bench/setup-peers tables`."""

from __future__ import annotations

import importlib
import os
import pathlib
import sys
from types import ModuleType


def _site_packages() -> pathlib.Path:
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    peers = os.environ.get("RENZAN_PEERS", str(cache / "renzan" / "peers"))
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    return pathlib.Path(peers + "-tables") / "lib" / version / "site-packages"


def add_to_path() -> None:
    """Before NumPy is imported, because they need theirs."""
    if _site_packages().exists():
        sys.path.insert(0, str(_site_packages()))


def library(name: str) -> ModuleType | None:
    """None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
