"""The ledger: what the fake workers record about themselves, and which of them are alive."""

import collections
import os

Worker = collections.namedtuple("Worker", "job attempt rank")


class Ledger:
    def __init__(self, path):
        self.path = path
        for name in ("locks", "artifacts"):
            os.makedirs(f"{path}/{name}")
        open(f"{path}/notes", "w").close()

    def notes(self):
        """The notes [(worker, pid, what)], in the order of writing."""
        found = []
        with open(f"{self.path}/notes") as file:
            for line in file:
                job, attempt, rank, pid, what = line.split()
                found.append((Worker(int(job), int(attempt), int(rank)), int(pid), what))
        return found

    def size(self):
        return os.stat(f"{self.path}/notes").st_size

    def alive(self):
        """The live workers: {worker: (pid, start time)}."""
        found = {}
        for worker, pid, what in self.notes():
            if what == "begin" and (start := _start_time(worker, pid)) is not None:
                found[worker] = (pid, start)
        return found


def _start_time(worker, pid):
    """The start time in clock ticks since boot; None if the process has ended or its id was
    reused."""
    wanted = {f"RENZAN_JOB_ID={worker.job}".encode(), f"RENZAN_ATTEMPT={worker.attempt}".encode()}
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            if not wanted <= set(file.read().split(b"\0")):
                return None
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rsplit(")", 1)[1].split()[19])
    except OSError:
        return None
