"""Tables in memory, handed to librenzan.so as they are by Arrow's PyCapsule protocol."""

from __future__ import annotations

import ctypes
import json
import math
import os
import signal
import threading
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_double, c_uint64, c_void_p
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Sequence

from renzan._native import PROGRESS, ImportOptions, ImportResult, library
from renzan.errors import ConfigError, DataError, Error, NoInputError, UsageError


class Options(NamedTuple):
    """The flags of an import."""

    vocabulary: str | Sequence[str] = ()
    unseen: str | float | Sequence[str] = ()
    vocabulary_from: str | os.PathLike[str] | None = None
    grow: bool = False
    keep_negatives: float | None = None
    seed: int | None = None
    on_bad_row: str = "error"
    shard_rows: int | None = None
    progress: Callable[[int], object] | None = None
    split: str | None = None


def write(table: Any, directory: str | os.PathLike[str],
          schema: Mapping[str, Any] | str | os.PathLike[str], options: Options) -> ImportResult:
    """Writes the dataset."""
    return _write([table], None, directory, schema, options)


def write_files(tables: Sequence[tuple[str, Any]], directory: str | os.PathLike[str],
                schema: str | os.PathLike[str], options: Options) -> ImportResult:
    """Writes the dataset of Parquet files, in order: the name of each, and a table of its rows."""
    return _write([table for _, table in tables], [os.fsencode(name) for name, _ in tables],
                  directory, schema, options)


def _write(tables: Sequence[Any], files: Sequence[bytes] | None,
           directory: str | os.PathLike[str], schema: Mapping[str, Any] | str | os.PathLike[str],
           options: Options) -> ImportResult:
    try:
        # What cannot be right leaves the table unread.
        text, name = _text_of(schema)
        native, kept = _native_options(options)
        output = os.fsencode(directory)
    except BaseException:
        for table in tables:
            _release(table)
        raise
    failure: list[BaseException] = []

    def report(context: int | None, rows: int) -> int:
        # Python handles signals here, too.
        try:
            if options.progress is not None:
                options.progress(rows)
        except BaseException as error:
            failure.append(error)
        return 1 if failure else 0

    native.progress = PROGRESS(report)
    result = ImportResult()
    streams = [_stream_of(table) if files is None else _stream_of_file(table, os.fsdecode(file))
               for table, file in zip(tables, files or [b""])]
    addresses = [address for address, _ in streams]
    rest = (output, text, name, byref(native), byref(result))
    try:
        with _interrupts(failure, report):
            if files is None:
                library.renzan_dataset_write(addresses[0], *rest)
            else:
                library.renzan_dataset_write_files(
                    (c_void_p * len(addresses))(*addresses), (c_char_p * len(files))(*files),
                    len(addresses), *rest)
    except Error:
        if not failure:
            raise
    finally:
        del streams, kept  # after the call, which uses them
    if failure:
        raise failure[0] from None
    return result


def _stream_of_file(table: Any, file: str) -> tuple[int, Any]:
    try:
        return _stream_of(table)
    except Error:
        raise
    except Exception as failure:  # of whatever type the library raises
        raise DataError(f"{file}: cannot be read: {' '.join(str(failure).split())}") from failure


@contextmanager
def _interrupts(seen: list[BaseException], report: Callable[..., int]) -> Iterator[None]:
    """Notes what the handler of Ctrl-C raises: in a generator behind the stream, its library makes
    an error of the stream out of it, and before the first line of `report` ctypes drops it."""
    previous: Any = signal.getsignal(signal.SIGINT)
    # Only the main thread may change handlers, and runs them.
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield
        return

    def handle(number: int, frame: Any) -> None:
        try:
            previous(number, frame)
        except BaseException as error:
            seen.append(error)
            if frame is None or frame.f_code is not report.__code__:
                raise

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is handle:
            signal.signal(signal.SIGINT, previous)


def _is_address(table: Any) -> bool:
    return isinstance(table, int) and not isinstance(table, bool)


class _Stream(ctypes.Structure):
    """struct ArrowArrayStream."""

    _fields_ = [("get_schema", c_void_p), ("get_next", c_void_p), ("get_last_error", c_void_p),
                ("release", ctypes.CFUNCTYPE(None, c_void_p)), ("private_data", c_void_p)]


def _release(table: Any) -> None:
    """Of an address, which nothing else releases."""
    if _is_address(table) and table != 0:
        stream = _Stream.from_address(table)
        if stream.release:
            stream.release(table)


def _stream_of(table: Any) -> tuple[int, Any]:
    """The address of its stream, and what keeps it."""
    if _is_address(table):
        return table, None
    make = getattr(table, "__arrow_c_stream__", None)
    if make is None:
        kind = type(table)
        raise UsageError(
            f"a {kind.__module__}.{kind.__qualname__} is no table that can be written: give an "
            "object with __arrow_c_stream__ (a polars or pandas 2.2 DataFrame, a DuckDB relation, "
            "a PyArrow Table or RecordBatchReader), or the address of an ArrowArrayStream")
    capsule = make()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = c_void_p, [ctypes.py_object, c_char_p]
    return pointer_of(capsule, b"arrow_array_stream"), capsule


def _native_options(options: Options) -> tuple[ImportOptions, list[Any]]:
    """The struct, and what keeps its pointers."""
    if options.on_bad_row not in ("error", "skip"):
        raise UsageError(f"on_bad_row is {options.on_bad_row!r}: use 'error' or 'skip'")
    native, kept = ImportOptions(), []
    for name, given in (("vocabulary", options.vocabulary), ("unseen", options.unseen)):
        texts = [str(given)] if isinstance(given, (str, float, int)) else list(given)
        array = (c_char_p * max(len(texts), 1))(*(os.fsencode(text) for text in texts))
        setattr(native, name, array)
        setattr(native, "num_" + name, len(texts))
        kept.append(array)
    if options.vocabulary_from is not None:
        native.vocabulary_from = os.fsencode(options.vocabulary_from)
    if options.split is not None:
        native.split = os.fsencode(options.split)
    if options.keep_negatives is not None:
        native.keep_negatives = ctypes.pointer(c_double(options.keep_negatives))
    if options.seed is not None:
        if not 0 <= options.seed < 1 << 64:
            raise UsageError(f"seed is {options.seed}: it must be from 0 to 2**64 - 1")
        native.seed = ctypes.pointer(c_uint64(options.seed))
    if options.shard_rows is not None:
        if options.shard_rows < 1:
            raise UsageError(f"a shard needs at least one row, not {options.shard_rows}")
        native.shard_rows = options.shard_rows
    native.grow = bool(options.grow)
    native.skip_bad_rows = options.on_bad_row == "skip"
    return native, kept


def _text_of(schema: Mapping[str, Any] | str | os.PathLike[str]) -> tuple[bytes, bytes]:
    """The text of a schema file, and its name."""
    if not isinstance(schema, Mapping):
        try:
            with open(schema, "rb") as file:
                return file.read(), os.fsencode(schema)
        except OSError as failure:
            raise NoInputError(f"{os.fspath(schema)}: {failure.strerror}") from None
    lines = []
    for key, value in schema.items():
        if key == "columns" and isinstance(value, Mapping):
            # In lines of their own, so that messages about a column name its line.
            lines.append("columns:")
            lines += [f"  {_yaml(str(name))}: {_yaml(column)}" for name, column in value.items()]
        else:
            lines.append(f"{_yaml(str(key))}: {_yaml(value)}")
    return "".join(line + "\n" for line in lines).encode(), b"schema"


def _yaml(value: Any) -> str:
    """A value in one line. JSON is YAML, but for what is not finite."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_yaml(str(k))}: {_yaml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    if value is None or isinstance(value, (bool, int, float, str)):
        return json.dumps(value, ensure_ascii=False)
    raise ConfigError(f"schema: {value!r} is a {type(value).__name__}: use texts, numbers, true, "
                      "false, lists and dicts, as in a schema file")
