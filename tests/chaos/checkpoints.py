"""Inspects and corrupts checkpoints in a directory."""

import glob
import hashlib
import json
import os
import re

COMPLETE = re.compile(r"step-\d{8,}$")
PARTIAL = re.compile(r"\.step-\d{8,}\.partial$")


def _names(directory):
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []


def complete(directory):
    """Names, newest first."""
    return sorted(filter(COMPLETE.match, _names(directory)), reverse=True)


def partial(directory):
    """Partial ones, as (name, inode), because a name may be reused."""
    found = set()
    for name in filter(PARTIAL.match, _names(directory)):
        try:
            found.add((name, os.stat(f"{directory}/{name}").st_ino))
        except FileNotFoundError:
            pass  # it was just renamed to its final name
    return found


def manifest(path):
    with open(f"{path}/manifest.json") as file:
        return json.load(file)


class Kinds:
    """Records whether each checkpoint seen so far is full or incremental."""

    def __init__(self, directory):
        self._directory = directory
        self._kinds = {}

    def look(self):
        for name in complete(self._directory):
            if name in self._kinds:
                continue
            try:
                self._kinds[name] = manifest(f"{self._directory}/{name}")["kind"]
            except (OSError, ValueError):
                pass

    def of(self, name):
        return self._kinds.get(name, "full")


def content(path):
    """A checksum of all files of a checkpoint."""
    digest = hashlib.sha256()
    for file in sorted(glob.glob(f"{path}/*")):
        with open(file, "rb") as opened:
            digest.update(os.path.basename(file).encode() + b"\0" + opened.read())
    return digest.hexdigest()


def corrupt(path, how, rng):
    """Flips a bit of one file of the checkpoint, truncates or removes it. Returns what it did."""
    file = rng.choice(sorted(glob.glob(f"{path}/*")))
    size = os.path.getsize(file)
    if how == "remove":
        os.remove(file)
    elif how == "truncate":
        os.truncate(file, rng.randrange(size))
    else:
        offset = rng.randrange(size)
        with open(file, "r+b") as opened:
            opened.seek(offset)
            byte = opened.read(1)[0]
            opened.seek(offset)
            opened.write(bytes([byte ^ (1 << rng.randrange(8))]))
        how = f"flip a bit of byte {offset}"
    return f"{how} in {os.path.basename(path)}/{os.path.basename(file)}"
