"""The processes of one attempt, identified by a tag in their environment, so that orphans are found
too."""

import os
import signal
import time

TAG = "RENZAN_CHAOS"


def tagged(tag):
    """The ids of tagged processes, without zombies."""
    wanted = f"{TAG}={tag}".encode()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            pass  # it has just ended
    return found


def workers(tag, program, launcher):
    """The tagged processes that run `program`, except the launcher."""
    found = []
    for pid in tagged(tag):
        try:
            if pid != launcher and os.readlink(f"/proc/{pid}/exe") == program:
                found.append(pid)
        except OSError:
            pass
    return sorted(found)


def handles(pid, number):
    """Whether the process catches, blocks or ignores a signal instead of dying from it."""
    bit = 1 << (number - 1)
    try:
        with open(f"/proc/{pid}/status") as file:
            fields = dict(line.split(":", 1) for line in file)
    except OSError:
        return False
    return any(int(fields[key], 16) & bit for key in ("SigCgt", "SigBlk", "SigIgn"))


def send(pid, number):
    """Returns False if the process has ended."""
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def kill_all(tag):
    """Kills everything as a power cut does: stops all processes first, so that none can react to
    the death of another."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in tagged(tag):
            send(pid, number)
    # Includes processes that were being started meanwhile.
    while left := wait_until_gone(tag, 5):
        for pid in left:
            send(pid, signal.SIGKILL)


def wait_until_gone(tag, seconds):
    """Returns the processes that are still alive afterwards."""
    end = time.monotonic() + seconds
    while (left := tagged(tag)) and time.monotonic() < end:
        time.sleep(0.01)
    return left
