"""The communicator of a torch.distributed group: its workers find each other through the group's
Store."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from datetime import timedelta

import torch.distributed as dist

from renzan._native import Place
from renzan.communicator import Communicator, place_from_environment
from renzan.errors import PeerError

_POLL_SECONDS = 0.002
_MOST_SECONDS = 1e6


def connect(store: dist.Store, key: str, rank: int, size: int, timeout: timedelta,
            backend: str | None = None) -> Communicator:
    """Returns once all `size` workers have called it with the same key, which is used only once.

    `backend`: "mpi" for all workers of an mpirun, else None."""
    seconds = min(max(timeout.total_seconds(), 0.001), _MOST_SECONDS)
    place = Place(rank=rank, world_size=size, local_rank=rank)
    if backend is None and size == 1:
        backend = "local"
    if backend is not None:
        return Communicator(backend, seconds, place=place)
    with contextlib.ExitStack() as reserved:
        if rank == 0:
            host = _own_address(store)
            port = reserved.enter_context(_reserve_port(host))
            _publish(store, key, f"{host} {port.getsockname()[1]}")
        host, number = _read(store, key, seconds).split()
        place.master_addr, place.master_port = host.encode(), int(number)
        communicator = Communicator("gloo", seconds, place=place)
    return communicator


def is_world_of_mpirun(rank: int, size: int) -> bool:
    """Whether the group being created is that of all workers of an mpirun."""
    if dist.is_initialized():
        return False
    place = place_from_environment()
    return bool(place.under_mpirun) and (place.rank, place.world_size) == (rank, size)


def _reserve_port(host: str) -> socket.socket:
    # Bound but not listening: nobody else is given the port, and the communicator can still bind
    # it.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind((host, 0))
    return bound


def _own_address(store: dist.Store) -> str:
    """This host's address, as used to reach the host that serves the Store."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    master = getattr(store, "host", None) or os.environ.get("MASTER_ADDR") or socket.gethostname()
    try:
        family, _, _, _, address = socket.getaddrinfo(master, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)  # asks the routing table, sends nothing
            return probe.getsockname()[0]
    except OSError as error:
        raise PeerError(f"no route to {master}, where worker 0 listens: {error}") from error


def _publish(store: dist.Store, key: str, value: str) -> None:
    store.set(key, value)
    store.add(key + " is set", 1)


def _read(store: dist.Store, key: str, seconds: float) -> str:
    # A waiting get() would hold the Store's lock, which other groups' threads need.
    deadline = time.monotonic() + seconds
    try:
        while store.add(key + " is set", 0) == 0:
            if time.monotonic() > deadline:
                raise PeerError(f"{key}: worker 0 of the group did not come within {seconds:g} s")
            time.sleep(_POLL_SECONDS)
        return store.get(key).decode()
    except RuntimeError as error:
        if isinstance(error, PeerError):
            raise
        raise PeerError(f"{key}: the Store of the group has ended: {error}") from error
