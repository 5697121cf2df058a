"""Checkpoints: directories of safetensors files with a checksum of each (docs/formats/checkpoint.md).

    tensors = renzan.load_checkpoint("runs/a/checkpoints")
    tensors.step, tensors["model.fc.weight"]
"""

from __future__ import annotations

import ctypes
import os
from ctypes import byref, c_char_p, c_int64, c_void_p
from typing import Iterator, Mapping, NamedTuple, Sequence

import numpy as np

from renzan._native import CheckpointEntry, Tensor, Text, error, library
from renzan.errors import Error, NoInputError, UsageError

# NumPy's types for safetensors' types. NumPy has no bfloat16: float32, which is exact.
_NUMPY = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<f4", "I64": "<i8", "I32": "<i4",
          "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?"}


class Array(NamedTuple):
    """An array in memory, row-major; `dtype` as safetensors spells it ("F32")."""

    key: str
    dtype: str
    shape: tuple[int, ...]
    address: int
    nbytes: int


class TensorInfo(NamedTuple):
    """What a checkpoint says about a tensor."""

    dtype: str
    shape: tuple[int, ...]
    nbytes: int


class Checkpoint(Mapping[str, np.ndarray]):
    """A checkpoint as a mapping from names to NumPy arrays, which are read on demand.

    The checksum of a file is verified when it is first read; a damaged one is a DataError. BF16
    tensors, which NumPy does not have, are given as float32, without loss. An incremental
    checkpoint is read with its base. Not for several threads at once.
    """

    def __init__(self, path: str | os.PathLike[str]):
        """`path`: a checkpoint or saved model, or a directory of checkpoints, or a run directory,
        which has them in `checkpoints`: then the newest whose manifest and file sizes are valid."""
        self._handle = c_void_p()
        try:
            library.renzan_checkpoint_open(os.fsencode(path), byref(self._handle))
        except NoInputError:
            of_run = os.path.join(os.fsdecode(path), "checkpoints")
            if not os.path.isdir(of_run):
                raise
            library.renzan_checkpoint_open(os.fsencode(of_run), byref(self._handle))
        self.infos = self._read_infos()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Closes its files. Arrays that were read stay."""
        handle, self._handle = getattr(self, "_handle", None), c_void_p()
        if handle:
            library.renzan_checkpoint_close(handle)

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if not self._handle:
            return "<Checkpoint, closed>"
        return f"<Checkpoint {self.path}: step {self.step}, {len(self)} tensors>"

    def __len__(self) -> int:
        return len(self.infos)

    def __iter__(self) -> Iterator[str]:
        return iter(self.infos)

    def __getitem__(self, key: str) -> np.ndarray:
        info = self.infos[key]
        data = self.read(key)
        if info.dtype == "BF16":
            data = (data.view("<u2").astype("<u4") << 16).view("<f4")
        return data.view(_NUMPY[info.dtype]).reshape(info.shape)

    def read(self, key: str) -> np.ndarray:
        """The bytes of a tensor as they are saved: uint8 [infos[key].nbytes]."""
        data = np.empty(self.infos[key].nbytes, np.uint8)
        library.renzan_checkpoint_read(self._open, key.encode(), data.ctypes.data, data.nbytes)
        return data

    def verify(self) -> None:
        """Verifies the checksums of all files and tensors; a DataError if one is wrong."""
        library.renzan_checkpoint_verify(self._open)

    @property
    def path(self) -> str:
        """The directory of the checkpoint."""
        return os.fsdecode(library.renzan_checkpoint_path(self._open))

    @property
    def step(self) -> int:
        """Steps that had been trained."""
        return library.renzan_checkpoint_step(self._open)

    @property
    def config(self) -> str:
        """The configuration of a `renzan train` run, YAML."""
        return library.renzan_checkpoint_config(self._open).decode()

    @property
    def run(self) -> dict[str, str]:
        """What the program that wrote it recorded about itself."""
        run = {}
        for i in range(library.renzan_checkpoint_num_run(self._open)):
            text = Text()
            library.renzan_checkpoint_run(self._open, i, byref(text))
            run[text.key.decode()] = text.value.decode()
        return run

    @property
    def sha256(self) -> str:
        """The digest of all parameters and optimizer states (model_sha256 of the format). Reads all
        of them if the writer did not compute it."""
        recorded = library.renzan_checkpoint_model_sha256(self._open).decode()
        if recorded:
            return recorded
        data = {key: self.read(key) for key in self}
        return model_sha256(self.step, [Array(key, info.dtype, info.shape, data[key].ctypes.data,
                                              info.nbytes) for key, info in self.infos.items()])

    @property
    def _open(self) -> c_void_p:
        if not self._handle:
            raise UsageError("this checkpoint is closed")
        return self._handle

    def _read_infos(self) -> dict[str, TensorInfo]:
        infos = {}
        for i in range(library.renzan_checkpoint_num_tensors(self._handle)):
            tensor = Tensor()
            library.renzan_checkpoint_tensor(self._handle, i, byref(tensor))
            infos[tensor.key.decode()] = TensorInfo(tensor.dtype.decode(),
                                                    tuple(tensor.shape[:tensor.dims]), tensor.bytes)
        return infos


def load_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Opens a checkpoint or saved model, or the newest valid one of a directory of checkpoints or
    a run directory."""
    return Checkpoint(path)


class Entry(NamedTuple):
    """A checkpoint in a directory. `problem`: None if its manifest and file sizes are valid; a
    DataError if it is damaged; another Error if it cannot be read now and may be valid."""

    name: str
    path: str
    step: int
    unix_seconds: float
    nbytes: int
    problem: Error | None


def list_checkpoints(directory: str | os.PathLike[str]) -> list[Entry]:
    """The checkpoints in a directory, newest first."""
    handle = c_void_p()
    library.renzan_checkpoint_list_create(os.fsencode(directory), byref(handle))
    try:
        entries = []
        for i in range(library.renzan_checkpoint_list_size(handle)):
            entry = CheckpointEntry()
            library.renzan_checkpoint_list_get(handle, i, byref(entry))
            problem = error(entry.status, entry.problem.decode()) if entry.status else None
            entries.append(Entry(entry.name.decode(), os.fsdecode(entry.path), entry.step,
                                 entry.unix_ms / 1000, entry.bytes, problem))
        return entries
    finally:
        library.renzan_checkpoint_list_destroy(handle)


class CheckpointWriter:
    """Writes the checkpoints of a directory. No other process may write there meanwhile."""

    def __init__(self, directory: str | os.PathLike[str]):
        """Creates the directory and removes what a killed writer left behind. If another process
        writes there, raises an Error after a few seconds that names it; an earlier attempt of this
        job (RENZAN_JOB_ID, RENZAN_ATTEMPT) is asked to stop, and waited for."""
        self._handle = c_void_p()
        library.renzan_checkpoints_open(os.fsencode(directory), byref(self._handle))

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Lets other processes write there."""
        handle, self._handle = getattr(self, "_handle", None), c_void_p()
        if handle:
            library.renzan_checkpoints_close(handle)

    def write(self, step: int, tensors: Sequence[Array], run: Mapping[str, str] | None = None,
              config: str = "", hashed: bool = False) -> str:
        """Writes a checkpoint, which appears whole or not at all; it is on disk on return. Returns
        the digest of the tensors if `hashed`, else ""."""
        texts = (Text * len(run or {}))(*[Text(key.encode(), value.encode())
                                         for key, value in (run or {}).items()])
        digest = ctypes.create_string_buffer(65)
        library.renzan_checkpoints_write(self._handle, step, _tensors(tensors), len(tensors), texts,
                                         len(texts), config.encode(), int(hashed), digest)
        return digest.value.decode()

    def remove_old(self, keep: int) -> None:
        """Removes all valid checkpoints but the `keep` newest."""
        library.renzan_checkpoints_remove_old(self._handle, keep)

    def move_aside(self, step: int) -> None:
        """Renames a damaged checkpoint, so that nothing takes it for a good one."""
        library.renzan_checkpoints_move_aside(self._handle, step)


def model_sha256(step: int, tensors: Sequence[Array]) -> str:
    """The digest that a checkpoint of `step` with these tensors has."""
    digest = ctypes.create_string_buffer(65)
    library.renzan_model_sha256(step, _tensors(tensors), len(tensors), digest)
    return digest.value.decode()


def _tensors(arrays: Sequence[Array]) -> ctypes.Array[Tensor]:
    return (Tensor * len(arrays))(*[
        Tensor(c_char_p(array.key.encode()), array.dtype.encode(),
               (c_int64 * len(array.shape))(*array.shape), len(array.shape), array.address,
               array.nbytes) for array in arrays])
