"""Inspects and corrupts checkpoints in a store, as checkpoints.py does in a directory."""

import hashlib
import http.client
import json
import re

from checkpoints import COMPLETE, damage
from store import BUCKET
from stored_checkpoints import MANIFEST, sizes, uploads, url

# A prefix of file names, which belongs to one attempt at a checkpoint and to no other.
WRITER = re.compile(r"[0-9a-f]{16}(?=\.)")
MANIFEST_NAME = MANIFEST.removeprefix("/")
ANSWER_S = 2  # the longest wait for a store that may be starting


def writer_of(file):
    """The writer of a file; "" if it is a manifest, or not a file of a checkpoint."""
    found = WRITER.match(file)
    return found[0] if found else ""


class Prefix:
    """Where one run keeps its checkpoints. Raises OSError while the store is away."""

    POLL_S = 0.02  # between looks at the store

    def __init__(self, store, name):
        self.url = url(name)
        self._store, self._name = store, name
        self._client = store.client(timeout_s=ANSWER_S)
        self._corrupt = {}  # name -> the checksums of its files after the corruption

    def _ask(self, function, *arguments):
        try:
            return function(BUCKET, *arguments)
        except http.client.HTTPException as error:
            raise OSError(f"the answer is cut: {error}") from error

    def _files(self):
        """The files by names of checkpoints, complete or not."""
        found = {}
        for key in self._ask(self._client.keys, f"{self._name}/"):
            name, _, file = key.removeprefix(f"{self._name}/").partition("/")
            if COMPLETE.match(name):
                found.setdefault(name, set()).add(file)
        return found

    def _key(self, name, file):
        return f"{self._name}/{name}/{file}"

    def _get(self, name, file):
        answer = self._ask(self._client.get, self._key(name, file))
        if answer.status != 200:
            raise OSError(f"cannot get {self._key(name, file)}: {answer}")
        return answer.body

    def _content(self, name):
        """The checksums of the checkpoint's files."""
        return {file: hashlib.sha256(self._get(name, file)).hexdigest()
                for file in self._files().get(name, ())}

    def complete(self):
        """The names of complete checkpoints, newest first."""
        return sorted((name for name, files in self._files().items() if MANIFEST_NAME in files),
                      reverse=True)

    def partial(self):
        """Checkpoints without a manifest as (name, writer), because a name may be reused. None
        while the store is away."""
        try:
            found = self._files()
        except OSError:
            return set()
        return {(name, writer_of(file)) for name, files in found.items()
                if not any(file.startswith(MANIFEST_NAME) for file in files)
                for file in files if writer_of(file)}

    def appeared(self):
        """The writers of complete checkpoints."""
        found = set()
        for name in self.complete():
            try:
                found |= {writer_of(file["name"]) for file in self.manifest(name)["files"]}
            except (ValueError, KeyError):
                pass  # it is corrupt, or only a marker
        return found

    def leftovers(self):
        """What only a killed run may leave behind, and the next run removes: files that no manifest
        names, and uploads. Everything beside a corrupt checkpoint is kept, however."""
        found = {f"upload of {key}" for key in uploads(self._store, self._name)}
        for name, files in self._files().items():
            if name in self._corrupt:
                continue
            wanted = ({file["name"] for file in self.manifest(name)["files"]}
                      if MANIFEST_NAME in files else set())
            found |= {self._key(name, file) for file in files - wanted - {MANIFEST_NAME}}
        return found

    def incomplete(self):
        """Files that manifests name but that are missing or have another size."""
        there = sizes(self._store, self._name)
        return [self._key(name, file["name"]) for name in self.complete()
                if not self.is_corrupt(name) for file in self.manifest(name)["files"]
                if there.get(self._key(name, file["name"])) != file["bytes"]]

    def manifest(self, name):
        return json.loads(self._get(name, MANIFEST_NAME))

    def corrupt(self, name, how, rng):
        """Flips a bit of one file of the checkpoint, or truncates or removes the file. Returns what
        it did."""
        files = [MANIFEST_NAME, *(file["name"] for file in self.manifest(name)["files"])]
        file = rng.choice(files)
        if how == "remove":
            self._client.delete(BUCKET, self._key(name, file))
        else:
            data, how = damage(self._get(name, file), how, rng)
            self._client.put(BUCKET, self._key(name, file), data)
        # Without its manifest it is not a checkpoint, and its files are leftovers.
        if how != "remove" or file != MANIFEST_NAME:
            self._corrupt[name] = self._content(name)
        return f"{how} in {name}/{file}"

    def is_corrupt(self, name):
        """Whether the checkpoint is one that was corrupted, and not another with the same name."""
        if name not in self._corrupt:
            return False
        manifest = hashlib.sha256(self._get(name, MANIFEST_NAME)).hexdigest()
        return self._corrupt[name][MANIFEST_NAME] == manifest

    def lost(self):
        """Names of corrupt checkpoints that are no longer there unchanged. Only their manifests may
        have been moved aside."""
        found = []
        for name, before in self._corrupt.items():
            after = self._content(name)
            manifests = {after[file] for file in after if file.startswith(MANIFEST_NAME)}
            changed = {file for file in before if after.get(file) != before[file]}
            if before[MANIFEST_NAME] not in manifests or changed - {MANIFEST_NAME}:
                found.append(name)
        return found

    def leave_debris(self, rng):
        """Leaves what a run killed on another machine would leave. Returns where."""
        there = self._files()
        name = rng.choice([name for name in (f"step-{step:08}" for step in range(1, 300))
                           if name not in there])
        writer = f"{rng.getrandbits(64):016x}"
        self._client.put(BUCKET, self._key(name, f"{writer}.dense.safetensors"), rng.randbytes(999))
        key = self._key(name, f"{writer}.table.C1.safetensors")
        upload = self._client.create_upload(BUCKET, key)
        self._client.upload_part(BUCKET, key, upload, 1, rng.randbytes(999))
        return name
