"""Inspects and corrupts checkpoints in a directory. stored.py does the same in a store."""

import glob
import hashlib
import json
import os
import re

COMPLETE = re.compile(r"step-\d{8,}$")
PARTIAL = re.compile(r"\.step-\d{8,}\.partial$")


def manifest(path):
    with open(f"{path}/manifest.json") as file:
        return json.load(file)


def content(path):
    """A checksum of all files of a checkpoint."""
    digest = hashlib.sha256()
    for file in sorted(glob.glob(f"{path}/*")):
        with open(file, "rb") as opened:
            digest.update(os.path.basename(file).encode() + b"\0" + opened.read())
    return digest.hexdigest()


def damage(data, how, rng):
    """Data with one bit flipped, or a part of it, and what was done."""
    offset = rng.randrange(len(data))
    if how == "truncate":
        return data[:offset], f"truncate to {offset} bytes"
    changed = bytearray(data)
    changed[offset] ^= 1 << rng.randrange(8)
    return bytes(changed), f"flip a bit of byte {offset}"


class Directory:
    POLL_S = 0.001  # between looks at the directory

    def __init__(self, path):
        self._path = path
        self._corrupt = {}  # name -> checksum after the corruption

    def _names(self):
        try:
            return os.listdir(self._path)
        except FileNotFoundError:
            return []

    def complete(self):
        """The names of complete checkpoints, newest first."""
        return sorted(filter(COMPLETE.match, self._names()), reverse=True)

    def partial(self):
        """Partial checkpoints as (name, inode), because a name may be reused."""
        found = set()
        for name in filter(PARTIAL.match, self._names()):
            try:
                found.add((name, os.stat(f"{self._path}/{name}").st_ino))
            except FileNotFoundError:
                pass  # it was just renamed to its final name
        return found

    def appeared(self):
        """The inodes of complete checkpoints."""
        return {os.stat(f"{self._path}/{name}").st_ino for name in self.complete()}

    def leftovers(self):
        """What only a killed run may leave behind, and the next run removes."""
        return self.partial()

    def incomplete(self):
        """Files that manifests name but that are missing or have another size."""
        return [f"{name}/{file['name']}" for name in self.complete() if not self.is_corrupt(name)
                for file in self.manifest(name)["files"]
                if self._size(f"{name}/{file['name']}") != file["bytes"]]

    def _size(self, file):
        path = f"{self._path}/{file}"
        return os.path.getsize(path) if os.path.exists(path) else None

    def manifest(self, name):
        return manifest(f"{self._path}/{name}")

    def corrupt(self, name, how, rng):
        """Flips a bit of one file of the checkpoint, or truncates or removes the file. Returns what
        it did."""
        path = rng.choice(sorted(glob.glob(f"{self._path}/{name}/*")))
        if how == "remove":
            os.remove(path)
        else:
            with open(path, "rb") as file:
                data, how = damage(file.read(), how, rng)
            with open(path, "wb") as file:
                file.write(data)
        self._corrupt[name] = content(f"{self._path}/{name}")
        return f"{how} in {name}/{os.path.basename(path)}"

    def is_corrupt(self, name):
        """Whether the checkpoint is one that was corrupted, and not another with the same name."""
        return (name in self._corrupt
                and self._corrupt[name] == content(f"{self._path}/{name}"))

    def lost(self):
        """Names of corrupt checkpoints that are no longer there unchanged, under their name or
        moved aside."""
        return [name for name, before in self._corrupt.items()
                if before not in [content(f"{self._path}/{path}") for path in self._names()
                                  if path == name or path.startswith(name + ".corrupt")]]


class Kinds:
    """Records whether each checkpoint seen so far is full or incremental."""

    def __init__(self, place):
        """`place`: a Directory, or a Prefix of a store."""
        self._place = place
        self._kinds = {}

    def look(self):
        try:
            new = set(self._place.complete()) - set(self._kinds)
        except OSError:
            return  # the store is away
        for name in new:
            try:
                self._kinds[name] = self._place.manifest(name)["kind"]
            except (OSError, ValueError, KeyError):
                pass  # it is gone again, or corrupt, or only a marker

    def of(self, name):
        return self._kinds.get(name, "full")
