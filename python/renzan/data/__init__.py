"""Datasets that `renzan data import` or `renzan data synth` has made (docs/formats/dataset.md), and
new ones from tables in memory.

    renzan.data.write(frame, "data/clicks", schema)     # pandas, polars, DuckDB, PyArrow
    clicks = renzan.data.open("data/clicks")
    clicks.schema.categorical[0].num_embeddings
    dense, ids, label = clicks[[7, 3, 3]]       # gathered, and checked
    clicks.shards[0].dense                      # a memory-mapped array as it lies on disk

A dataset may lie in an object store, "s3://bucket/prefix": then what is read goes through a cache on
this machine's disk, which RENZAN_DATA_CACHE names (docs/object_store.md).
"""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
from ctypes import byref, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, Callable, Generic, Iterator, Mapping, NamedTuple, Sequence, TypeVar, Union

import numpy as np

from renzan._native import library
from renzan.data import _write
from renzan.errors import RowError, UsageError

Array = TypeVar("Array")  # np.ndarray or torch.Tensor


@dataclass(frozen=True, eq=False)
class Bags(Generic[Array]):
    """The ids of a multi-hot feature, of any number per row: row i owns
    values[offsets[i]:offsets[i + 1]]. A slice of rows is Bags again."""

    values: Array
    """int64 [ids of all rows]; int32 in memory-mapped arrays."""
    offsets: Array
    """int64 [rows + 1]."""
    weights: Array | None = None
    """float32 [ids of all rows]: the weights of a feature that has some."""

    def __len__(self) -> int:
        return len(self.offsets) - 1  # type: ignore[arg-type]

    def __getitem__(self, rows: int | slice) -> Any:
        offsets: Any = self.offsets
        values: Any = self.values
        if isinstance(rows, slice):
            begin, end, step = rows.indices(len(self))
            if step != 1:
                raise UsageError("bags are sliced by consecutive rows")
            part = offsets[begin:max(begin, end) + 1]
            owned = slice(int(part[0]), int(part[-1]))
            weights: Any = self.weights
            return Bags(values[owned], part - part[0], None if weights is None else weights[owned])
        row = range(len(self))[rows]
        return values[int(offsets[row]):int(offsets[row + 1])]

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(len(self)))


class _Columns(NamedTuple):
    dense: np.ndarray
    """float32 [rows, dense features]."""
    ids: dict[str, np.ndarray | Bags[np.ndarray]]
    """By name, in the schema's order: [rows] for a one-hot feature, Bags for a multi-hot one."""
    label: np.ndarray | None
    """float32 [rows]: the first label, 0 or 1, or a number; NaN where a row lacks it, if it is
    optional. None if the rows have no labels."""


class Batch(_Columns):
    """Some rows, in columns: a tuple (dense, ids, label), and the others as attributes."""

    weight: np.ndarray | None = None
    """float32 [rows], finite and not negative; None where samples have no weights."""
    further_labels: np.ndarray | None = None
    """float32 [rows, labels - 1]: the labels beside the first; None where there are none."""

    @property
    def labels(self) -> np.ndarray | None:
        """float32 [rows, labels]: a column for each of schema.labels, NaN where a row lacks one. None
        if the rows have no labels."""
        if self.label is None:
            return None
        if self.further_labels is None:
            return self.label[:, np.newaxis]
        return np.column_stack([self.label, self.further_labels])


class Label(NamedTuple):
    """What a row is labelled with: 0 or 1, or a number."""

    name: str
    rule: str
    """As Schema.label_rule."""
    optional: bool
    """Whether rows may lack it, which is NaN."""


class Feature(NamedTuple):
    """A categorical feature: ids are in [0, num_embeddings)."""

    name: str
    num_embeddings: int
    multi_hot: bool
    vocabulary: str
    """How values were mapped to ids: "hash:1000", "threshold:8:DIGEST", or "ids" if the input had
    ids."""
    table: str = ""
    """The embedding table that it looks up: its own, which has its name, or one that it shares."""
    max_length: int = 0
    """Above 0: a sequence, of at most so many ids in their order."""
    weights: str = ""
    """The column that the weights of its ids come from, if they have some (Bags.weights)."""


class Schema(NamedTuple):
    """The meaning of the columns."""

    label: str | None
    """The first of `labels`; None if the rows have no labels."""
    dense: list[str]
    categorical: list[Feature]
    dense_transforms: list[str]
    """The transform of each of `dense`, such as "log" or "standardize:3.5:1.2"; empty if
    unknown."""
    label_rule: str
    """How the first label was mapped to 0 and 1; empty if it was 0 and 1 already, and "values number"
    if it is a number."""
    weight: str | None = None
    """The column of sample weights, if there is one."""
    negatives_kept: float = 1
    """The share of the negatives that the data hold, below 1 after negative downsampling: scores
    of a model trained on them are calibrated after its logits + log(negatives_kept)."""
    vectors: Mapping[str, slice] = {}
    """Of each column of vectors, where its numbers are in `dense`: batch.dense[:, vectors["text"]]."""
    labels: Sequence[Label] = ()
    """All labels, in the order of Batch.labels' columns."""


Rows = Union[int, slice, Sequence[int], np.ndarray]


class Dataset:
    """A dataset as one sequence of rows, regardless of its shards.

    dataset[rows] gathers the rows of a slice, or those with the given numbers, in any order and
    also repeatedly; negative numbers count from the end. Everything read is checked: each block of
    a file against its checksum when it is first needed, and every label, dense value and id. A
    DataError names the file, or the row, feature and value; a row that does not exist is a
    RowError. Threads may read at the same time; a copy in another process (pickle) opens the files
    again.
    """

    def __init__(self, directory: str | os.PathLike[str], verify_blocks: bool = True):
        """Opens the files. `verify_blocks=False` skips the checksums of blocks."""
        self._handle = c_void_p()
        self._verify_blocks = verify_blocks
        library.renzan_dataset_open(os.fsencode(directory), verify_blocks, byref(self._handle))
        self._description: dict[str, Any] = json.loads(
            library.renzan_dataset_description(self._handle))
        about = self._description
        self.directory: str = about["directory"]
        self.num_rows: int = about["rows"]
        self.fingerprint: str = about["fingerprint"]
        """SHA-256: equal for datasets with the same samples and the same meaning."""
        self.schema = Schema(
            about["label"], about["dense"],
            [Feature(f["name"], f["num_embeddings"], f["multi_hot"], f["vocabulary"],
                     f["table"], f["max_length"], (f.get("weights") or {}).get("name", ""))
             for f in about["categorical"]],
            about["dense_transforms"], about["label_rule"], about["weight"],
            about["negatives_kept"],
            {name: slice(v["first"], v["first"] + v["dimension"])
             for name, v in about["vectors"].items()},
            [Label(label["name"], label["rule"], label["optional"]) for label in about["labels"]])
        self.best_possible: dict[str, float] | None = about["generated"]
        """For generated data: the best that a model can reach, {"best_auc", "best_log_loss"}."""
        self._shards: list[Batch] | None = None

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), c_void_p()
        if handle:
            library.renzan_dataset_close(handle)

    def __reduce__(self) -> tuple[Any, ...]:
        place = self.directory if self._is_in_store else os.path.abspath(self.directory)
        return Dataset, (place, self._verify_blocks)

    def __repr__(self) -> str:
        return (f"<Dataset {self.directory}: {self.num_rows} rows, {len(self.schema.dense)} dense "
                f"and {len(self.schema.categorical)} categorical features>")

    def __len__(self) -> int:
        return self.num_rows

    def __getitem__(self, rows: Rows) -> Batch:
        numbers = self._numbers(rows)
        handle = c_void_p()
        library.renzan_dataset_read(self._handle, numbers.ctypes.data, len(numbers), byref(handle))
        memory = _Memory(handle)
        n = len(numbers)
        ids: dict[str, np.ndarray | Bags[np.ndarray]] = {}
        values, offsets, weights, count = c_void_p(), c_void_p(), c_void_p(), c_size_t()
        for position, feature in enumerate(self.schema.categorical):
            library.renzan_batch_ids(handle, position, byref(values), byref(count), byref(offsets))
            array = memory.view(values.value, "<i8", count.value)
            if feature.multi_hot:
                ends = memory.view(offsets.value, "<i4", n + 1)
                of_values = None
                if feature.weights:
                    library.renzan_batch_bag_weights(handle, position, byref(weights))
                    of_values = memory.view(weights.value, "<f4", count.value)
                ids[feature.name] = Bags(array, ends.astype(np.int64), of_values)
            else:
                ids[feature.name] = array
        label = None
        if self.schema.label is not None:
            label = memory.view(library.renzan_batch_label(handle), "<f4", n)
        batch = Batch(memory.view(library.renzan_batch_dense(handle), "<f4", n,
                                  len(self.schema.dense)), ids, label)
        if len(self.schema.labels) > 1:
            labels = memory.view(library.renzan_batch_labels(handle), "<f4",
                                 len(self.schema.labels), n)
            batch.further_labels = labels[1:].T
        if self.schema.weight is not None:
            batch.weight = memory.view(library.renzan_batch_weight(handle), "<f4", n)
        return batch

    @property
    def shards(self) -> list[Batch]:
        """The shards, in the order of their rows: memory-mapped arrays, read-only and as they are
        on disk. Reading them checks nothing; verify() does. A dataset in an object store has none,
        because its files are only partly on this machine."""
        if self._is_in_store:
            raise UsageError(f"{self.directory}: the shards of a dataset in an object store cannot "
                             "be mapped: read rows, dataset[begin:end]")
        if self._shards is None:
            self._shards = [self._map(pathlib.Path(shard["directory"]))
                            for shard in self._description["shards"]]
        return self._shards

    @property
    def _is_in_store(self) -> bool:
        return self.directory.startswith("s3://")

    def verify(self) -> None:
        """Reads every file, and compares it with its SHA-256."""
        library.renzan_dataset_verify(self._handle)

    def _numbers(self, rows: Rows) -> np.ndarray:
        if isinstance(rows, slice):
            return np.arange(*rows.indices(self.num_rows), dtype=np.int64)
        numbers = np.atleast_1d(np.asarray(rows))
        if numbers.size == 0:
            return np.empty(0, np.int64)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise UsageError("rows are chosen by a slice or by a one-dimensional array of their "
                             f"numbers, not by {numbers.dtype} {list(numbers.shape)}")
        missing = numbers[(numbers < -self.num_rows) | (numbers >= self.num_rows)]
        if missing.size > 0:
            raise RowError(f"{self.directory} has no row {missing[0]}: it has {self.num_rows} rows")
        numbers = numbers.astype(np.int64)
        numbers[numbers < 0] += self.num_rows
        return numbers

    def _map(self, directory: pathlib.Path) -> Batch:
        def array(name: str) -> np.ndarray:
            mapped: np.ndarray = np.load(directory / name, mmap_mode="r")
            return mapped

        one_hot = array("ids.npy")
        ids: dict[str, np.ndarray | Bags[np.ndarray]] = {}
        for feature in self._description["categorical"]:
            if feature["multi_hot"]:
                weights = feature["weights"]
                ids[feature["name"]] = Bags(array(feature["values"]), array(feature["offsets"]),
                                            None if weights is None else array(weights["file"]))
            elif feature["column"] is None:
                ids[feature["name"]] = array(feature["file"])
            else:
                ids[feature["name"]] = one_hot[:, feature["column"]]
        label = None if self.schema.label is None else array("label.npy")
        batch = Batch(array("dense.npy"), ids, label)
        if len(self.schema.labels) > 1:
            batch.further_labels = array("further_labels.npy")
        if self.schema.weight is not None:
            batch.weight = array("weight.npy")
        return batch


def open(directory: str | os.PathLike[str], verify_blocks: bool = True) -> Dataset:  # noqa: A001
    """The dataset in a directory; Dataset says what can be done with it. Checks dataset.yaml, and
    the size, type and shape of each file."""
    return Dataset(directory, verify_blocks)


def write(table: Any, directory: str | os.PathLike[str],
          schema: Mapping[str, Any] | str | os.PathLike[str], *,
          vocabulary: str | Sequence[str] = (), unseen: str | float | Sequence[str] = (),
          vocabulary_from: str | os.PathLike[str] | None = None, grow: bool = False,
          keep_negatives: float | None = None, seed: int | None = None, on_bad_row: str = "error",
          shard_rows: int | None = None, progress: Callable[[int], object] | None = None,
          split: str | None = None) -> Any:
    """Writes a table as a dataset, and opens it: the same bytes as `renzan data import --format csv`
    makes of the same values. The dataset appears whole or not at all.

    `table` has `__arrow_c_stream__`, as a polars or pandas (2.2) DataFrame, a DuckDB relation, a
    PyArrow Table or RecordBatchReader has, or is the address of a `struct ArrowArrayStream`, which
    is released. It is read once, batch by batch. `schema` says what each column is, as the schema
    file of a CSV file does (docs/formats/dataset.md): a path, or its content as a dict. The other
    arguments are the flags of `renzan data import`. `progress` is called with the number of rows
    so far, every few thousand; what it raises ends the import, and so does Ctrl-C.

    With `split` ("time:day@2024-03-01", "random:0.1", "group:user@0.1") it makes two datasets,
    `train` and `test` in `directory`, and returns both. Each appears whole or not at all, `test`
    first: a process killed between the two leaves `test` alone."""
    if isinstance(directory, bytes):
        directory = os.fsdecode(directory)
    _write.write(table, directory, schema, _write.Options(
        vocabulary, unseen, vocabulary_from, grow, keep_negatives, seed, on_bad_row, shard_rows,
        progress, split))
    if split is not None:
        return tuple(open(os.path.join(directory, name)) for name in ("train", "test"))
    return open(directory)


class _Memory:
    """Owns a renzan_batch as long as an array uses its memory."""

    def __init__(self, handle: ctypes.c_void_p):
        self._handle = handle

    def __del__(self) -> None:
        library.renzan_batch_destroy(self._handle)

    def view(self, address: int | None, dtype: str, *shape: int) -> np.ndarray:
        if 0 in shape:
            return np.empty(shape, dtype)
        return np.asarray(_View(self, address, dtype, shape))


class _View:
    def __init__(self, owner: _Memory, address: int | None, dtype: str, shape: tuple[int, ...]):
        self.owner = owner
        self.__array_interface__ = {"data": (address, False), "typestr": dtype, "shape": shape,
                                    "version": 3}
