"""librenzan.so through ctypes: its functions with their types, and its errors as exceptions.

The library is the one that RENZAN_LIBRARY names, else the one inside the package (a wheel), else
the one that is installed (a Debian package, cmake --install).
"""

from __future__ import annotations

import ctypes
import os
import pathlib
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

from renzan.errors import ERRORS, Error


class Place(ctypes.Structure):
    """renzan_place."""

    rank: int
    world_size: int
    local_rank: int
    under_mpirun: int
    master_port: int
    master_addr: bytes

    _fields_ = [("rank", c_int), ("world_size", c_int), ("local_rank", c_int),
                ("under_mpirun", c_int), ("master_port", c_int), ("master_addr", ctypes.c_char * 256)]


class Part(ctypes.Structure):
    """renzan_part."""

    _fields_ = [("data", c_void_p), ("count", c_size_t), ("dtype", c_int)]


class Tensor(ctypes.Structure):
    """renzan_tensor."""

    _fields_ = [("key", c_char_p), ("dtype", c_char_p), ("shape", POINTER(c_int64)),
                ("dims", c_size_t), ("data", c_void_p), ("bytes", c_size_t)]


class Text(ctypes.Structure):
    """renzan_text."""

    _fields_ = [("key", c_char_p), ("value", c_char_p)]


class CheckpointEntry(ctypes.Structure):
    """renzan_checkpoint_entry."""

    _fields_ = [("name", c_char_p), ("path", c_char_p), ("step", c_int64), ("unix_ms", c_int64),
                ("bytes", c_uint64), ("status", c_int), ("problem", c_char_p)]


class RunStatus(ctypes.Structure):
    """renzan_run_status."""

    _fields_ = [("state", c_char_p), ("step", c_int64), ("steps", c_int64),
                ("samples_per_second", c_double), ("eta_seconds", c_double),
                ("checkpoint_step", c_int64), ("checkpoint_unix_seconds", c_double),
                ("working_since_unix_seconds", c_double)]


PROGRESS = ctypes.CFUNCTYPE(c_int, c_void_p, c_int64)


class ImportOptions(ctypes.Structure):
    """renzan_import_options."""

    _fields_ = [("vocabulary", POINTER(c_char_p)), ("num_vocabulary", c_size_t),
                ("unseen", POINTER(c_char_p)), ("num_unseen", c_size_t),
                ("vocabulary_from", c_char_p), ("keep_negatives", POINTER(c_double)),
                ("seed", POINTER(c_uint64)), ("grow", c_int), ("skip_bad_rows", c_int),
                ("shard_rows", c_int64), ("progress", PROGRESS), ("context", c_void_p),
                ("split", c_char_p)]


class ImportResult(ctypes.Structure):
    """renzan_import_result."""

    rows: int
    positive_rows: int
    bad_rows: int
    dropped_rows: int
    test_rows: int

    _fields_ = [("rows", c_int64), ("positive_rows", c_int64), ("bad_rows", c_int64),
                ("dropped_rows", c_int64), ("test_rows", c_int64)]


# Functions that return a renzan_status: their arguments.
_CHECKED = {
    "renzan_place_from_environment": [POINTER(Place)],
    "renzan_virtual_worker_range": [c_int, c_int, c_int, POINTER(c_int), POINTER(c_int)],
    "renzan_comm_create": [POINTER(Place), c_char_p, c_double, c_int, POINTER(c_void_p)],
    "renzan_barrier": [c_void_p],
    "renzan_begin_step": [c_void_p, c_uint64],
    "renzan_broadcast": [c_void_p, c_void_p, c_size_t, c_int],
    "renzan_all_gather": [c_void_p, c_void_p, c_size_t, POINTER(c_void_p), POINTER(c_size_t)],
    "renzan_all_to_all": [c_void_p, POINTER(c_void_p), POINTER(c_size_t), POINTER(c_void_p),
                          POINTER(c_size_t)],
    "renzan_all_reduce": [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int],
    "renzan_reduce_scatter": [c_void_p, c_void_p, c_void_p, POINTER(c_size_t), c_int, c_int],
    "renzan_reduction_create": [c_void_p, c_int, c_size_t, c_int, c_int, c_char_p,
                                POINTER(c_void_p)],
    "renzan_reduction_add": [c_void_p, POINTER(Part), c_size_t],
    "renzan_reduction_start": [c_void_p],
    "renzan_reduction_continue": [c_void_p],
    "renzan_reduction_finish": [c_void_p, POINTER(Part), c_size_t, c_double, POINTER(c_int)],
    "renzan_reduction_reset": [c_void_p],
    "renzan_checkpoints_open": [c_char_p, POINTER(c_void_p)],
    "renzan_checkpoints_write": [c_void_p, c_int64, POINTER(Tensor), c_size_t, POINTER(Text),
                                 c_size_t, c_char_p, c_int, c_char_p],
    "renzan_checkpoints_remove_old": [c_void_p, c_int],
    "renzan_checkpoints_move_aside": [c_void_p, c_int64],
    "renzan_checkpoint_list_create": [c_char_p, POINTER(c_void_p)],
    "renzan_checkpoint_list_get": [c_void_p, c_size_t, POINTER(CheckpointEntry)],
    "renzan_checkpoint_open": [c_char_p, POINTER(c_void_p)],
    "renzan_checkpoint_run": [c_void_p, c_size_t, POINTER(Text)],
    "renzan_checkpoint_tensor": [c_void_p, c_size_t, POINTER(Tensor)],
    "renzan_checkpoint_read": [c_void_p, c_char_p, c_void_p, c_size_t],
    "renzan_checkpoint_verify": [c_void_p],
    "renzan_model_sha256": [c_int64, POINTER(Tensor), c_size_t, c_char_p],
    "renzan_write_run_status": [c_char_p, POINTER(RunStatus)],
    "renzan_sample_order": [c_uint64, c_int64, c_int64, c_int64, c_int64, POINTER(c_int64)],
    "renzan_dataset_open": [c_char_p, c_int, POINTER(c_void_p)],
    "renzan_dataset_verify": [c_void_p],
    "renzan_dataset_read": [c_void_p, c_void_p, c_size_t, POINTER(c_void_p)],
    "renzan_dataset_write": [c_void_p, c_char_p, c_char_p, c_char_p, POINTER(ImportOptions),
                             POINTER(ImportResult)],
    "renzan_dataset_write_files": [POINTER(c_void_p), POINTER(c_char_p), c_size_t, c_char_p,
                                   c_char_p, c_char_p, POINTER(ImportOptions),
                                   POINTER(ImportResult)],
    "renzan_batch_ids": [c_void_p, c_size_t, POINTER(c_void_p), POINTER(c_size_t),
                         POINTER(c_void_p)],
    "renzan_batch_bag_weights": [c_void_p, c_size_t, POINTER(c_void_p)],
    "renzan_events_create": [c_char_p, c_int64, POINTER(c_void_p)],
    "renzan_events_add": [c_void_p, c_int64, POINTER(c_char_p), POINTER(c_double), c_size_t],
}

# All other functions: what they return, and their arguments.
_PLAIN = {
    "renzan_last_error": (c_char_p, []),
    "renzan_version": (c_char_p, []),
    "renzan_comm_destroy": (None, [c_void_p]),
    "renzan_comm_rank": (c_int, [c_void_p]),
    "renzan_comm_world_size": (c_int, [c_void_p]),
    "renzan_comm_backend": (c_char_p, [c_void_p]),
    "renzan_reduction_destroy": (None, [c_void_p]),
    "renzan_reduction_num_arrays": (c_size_t, [c_void_p]),
    "renzan_checkpoints_close": (None, [c_void_p]),
    "renzan_checkpoint_list_destroy": (None, [c_void_p]),
    "renzan_checkpoint_list_size": (c_size_t, [c_void_p]),
    "renzan_checkpoint_close": (None, [c_void_p]),
    "renzan_checkpoint_path": (c_char_p, [c_void_p]),
    "renzan_checkpoint_step": (c_int64, [c_void_p]),
    "renzan_checkpoint_model_sha256": (c_char_p, [c_void_p]),
    "renzan_checkpoint_config": (c_char_p, [c_void_p]),
    "renzan_checkpoint_num_run": (c_size_t, [c_void_p]),
    "renzan_checkpoint_num_tensors": (c_size_t, [c_void_p]),
    "renzan_key": (c_uint64, [c_uint64, c_char_p, c_uint64]),
    "renzan_dataset_close": (None, [c_void_p]),
    "renzan_dataset_description": (c_char_p, [c_void_p]),
    "renzan_batch_destroy": (None, [c_void_p]),
    "renzan_batch_label": (c_void_p, [c_void_p]),
    "renzan_batch_labels": (c_void_p, [c_void_p]),
    "renzan_batch_weight": (c_void_p, [c_void_p]),
    "renzan_batch_dense": (c_void_p, [c_void_p]),
    "renzan_events_destroy": (None, [c_void_p]),
    "renzan_events_path": (c_char_p, [c_void_p]),
    "renzan_philox": (None, [c_uint64, c_uint64, c_uint64, POINTER(c_uint32)]),
}


def _path() -> str:
    named = os.environ.get("RENZAN_LIBRARY")
    if named:
        return named
    inside = pathlib.Path(__file__).parent / "lib" / "librenzan.so"
    return str(inside) if inside.exists() else "librenzan.so.0"


def _check(status: int, function: Any, arguments: tuple[Any, ...]) -> int:
    if status != 0:
        raise error(status, library.renzan_last_error().decode(errors="replace"))
    return status


def error(status: int, text: str) -> Error:
    """The exception for a renzan_status."""
    return ERRORS.get(status, Error)(text, status)


def _load() -> ctypes.CDLL:
    path = _path()
    try:
        loaded = ctypes.CDLL(path)
    except OSError as failure:
        raise ImportError(
            f"{failure}: install Renzan's wheel (scripts/wheel && pip install "
            "build/wheel/renzan-*.whl) or its Debian package, or build librenzan.so (scripts/build "
            "release renzan_shared) and name it by RENZAN_LIBRARY") from failure
    for name, arguments in _CHECKED.items():
        function = getattr(loaded, name)
        function.argtypes, function.restype, function.errcheck = arguments, c_int, _check
    for name, (result, arguments) in _PLAIN.items():
        function = getattr(loaded, name)
        function.argtypes, function.restype = arguments, result
    return loaded


library = _load()
