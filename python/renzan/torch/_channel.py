"""Messages from one worker of a process group to another: torch.distributed.send and recv.

A communicator's operations involve all its workers, so each direction of each pair of workers that
exchange messages has its own communicator, created for the first message.
"""

from __future__ import annotations

from collections import defaultdict, deque
from ctypes import c_void_p
from datetime import timedelta

import torch
import torch.distributed as dist

from renzan._native import library
from renzan.communicator import Communicator
from renzan.errors import UsageError
from renzan.torch._group_communicator import connect
from renzan.torch._tensors import num_bytes, readable, writable
from renzan.torch._work import Work, Worker


class Channel:
    """One direction: worker `source` sends, worker `target` receives, in the order of the calls.
    Messages with another tag are kept until they are asked for. A message is complete when its
    receiver takes it; sending waits for that."""

    def __init__(self, store: dist.Store, source: int, target: int, rank: int, timeout: timedelta):
        """On both workers: `rank` is this one's. The first message waits for the other worker."""
        self._what = f"from worker {source} to worker {target}"
        self._connection = _Connection(store, f"messages {source} {target}",
                                       0 if rank == source else 1, timeout)
        self._kept: dict[int, deque[torch.Tensor]] = defaultdict(deque)
        self._worker = Worker(f"renzan messages {self._what}", self._connection.close)

    def close(self) -> None:
        """Returns once all messages have been sent or received."""
        self._worker.close()

    def send(self, tensor: torch.Tensor, tag: int) -> Work:
        """On worker `source`."""
        return self._worker.submit(Work(f"send {self._what}", lambda: self._send(tensor, tag)))

    def receive(self, tensor: torch.Tensor, tag: int) -> Work:
        """On worker `target`. `tensor` has the size of the one that is sent."""
        return self._worker.submit(Work(f"recv {self._what}", lambda: self._receive(tensor, tag)))

    def _send(self, tensor: torch.Tensor, tag: int) -> list[torch.Tensor]:
        data = readable(tensor)
        self._broadcast(torch.tensor([tag, num_bytes(data)]))
        self._broadcast(data)
        return [tensor]

    def _receive(self, tensor: torch.Tensor, tag: int) -> list[torch.Tensor]:
        with writable(tensor) as (plain,):
            if self._kept[tag]:
                message = self._kept[tag].popleft()
                self._check_size(message.numel(), plain)
                plain.reshape(-1).view(torch.uint8).copy_(message)
                return [tensor]
            while True:
                header = torch.empty(2, dtype=torch.int64)
                self._broadcast(header)
                sent_tag, size = header.tolist()
                if sent_tag == tag and size == num_bytes(plain):
                    self._broadcast(plain)
                    return [tensor]
                # The sender is served even if this fails.
                message = torch.empty(size, dtype=torch.uint8)
                self._broadcast(message)
                if sent_tag == tag:
                    self._check_size(size, plain)
                self._kept[sent_tag].append(message)

    def _check_size(self, size: int, tensor: torch.Tensor) -> None:
        if size != num_bytes(tensor):
            raise UsageError(f"{size} bytes were sent, but recv was given a tensor of "
                             f"{num_bytes(tensor)}: both need the same shape and type")

    def _broadcast(self, data: torch.Tensor) -> None:
        library.renzan_broadcast(self._connection.handle(), data.data_ptr(), num_bytes(data), 0)


class _Connection:
    # Created by the channel's thread, because it waits for the other worker.
    def __init__(self, store: dist.Store, key: str, rank: int, timeout: timedelta):
        self._arguments = store, key, rank, 2, timeout
        self._communicator: Communicator | None = None

    def handle(self) -> c_void_p:
        if self._communicator is None:
            self._communicator = connect(*self._arguments)
        return self._communicator.handle

    def close(self) -> None:
        if self._communicator is not None:
            self._communicator.close()
