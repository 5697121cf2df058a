"""Writes container images as docker-archives, without Docker: `docker load`, `podman load`, `ctr -n
k8s.io images import` and `skopeo copy docker-archive:FILE` take them.

An image here is one layer, a tar of its root folder. The same layer makes the same bytes."""

import hashlib
import io
import json
import os
import platform
import tarfile

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def add(out, name, data=b"", mode=0o644, kind=tarfile.REGTYPE, target=""):
    """Adds an entry without owner and time."""
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.type, info.linkname = len(data), mode, kind, target
    out.addfile(info, io.BytesIO(data))


def write(out_path, name, layer, config):
    """`name` is NAME:TAG, `layer` a seekable binary file, `config` what a container of it gets:
    Env, Entrypoint, User and so on."""
    diff_id = hashlib.sha256()
    for chunk in iter(lambda: layer.read(1 << 20), b""):
        diff_id.update(chunk)
    info = tarfile.TarInfo("layer.tar")
    info.size = layer.tell()
    layer.seek(0)
    image = {"architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
             "os": "linux", "config": config,
             "rootfs": {"type": "layers", "diff_ids": ["sha256:" + diff_id.hexdigest()]}}
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    # Renamed when complete, so that nobody reads half an image.
    with tarfile.open(out_path + ".part", "w") as out:
        add(out, "manifest.json", json.dumps(manifest).encode())
        add(out, "config.json", json.dumps(image).encode())
        out.addfile(info, layer)
    os.replace(out_path + ".part", out_path)
