"""Looking into a directory of checkpoints, and damaging what is there."""

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
    """Half-written ones, as (name, inode): a name alone may be used again."""
    found = set()
    for name in filter(PARTIAL.match, _names(directory)):
        try:
            found.add((name, os.stat(f"{directory}/{name}").st_ino))
        except FileNotFoundError:
            pass  # it has just appeared under its own name
    return found


def manifest(path):
    with open(f"{path}/manifest.json") as file:
        return json.load(file)


class Kinds:
    """Remembers of every checkpoint that was ever seen whether it is full or incremental."""

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
    """A checksum of everything in a checkpoint."""
    digest = hashlib.sha256()
    for file in sorted(glob.glob(f"{path}/*")):
        with open(file, "rb") as opened:
            digest.update(os.path.basename(file).encode() + b"\0" + opened.read())
    return digest.hexdigest()


def damage(path, how, rng):
    """Of one file of the checkpoint: flips a byte, truncates, or removes. Says what it did."""
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
