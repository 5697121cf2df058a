"""python3 -m renzan.data import --output DIR --schema FILE FILES.parquet...

Makes a dataset of Parquet files with the library that is installed: PyArrow, else polars, else
DuckDB. The flags are those of `renzan data import`."""

from __future__ import annotations

import argparse
import glob
import importlib
import pathlib
import sys
import time
from typing import Any, Callable, Iterator, Sequence

import renzan.data
from renzan.data import _write
from renzan.errors import DataError, Error, NoInputError, UsageError


def _from_pyarrow(file: str) -> Any:
    """A stream of its row groups."""
    pyarrow: Any = importlib.import_module("pyarrow")
    parquet: Any = importlib.import_module("pyarrow.parquet")

    def batches() -> Iterator[Any]:
        with parquet.ParquetFile(file) as opened:
            yield from opened.iter_batches()

    return pyarrow.RecordBatchReader.from_batches(parquet.read_schema(file), batches())


def _from_polars(file: str) -> Any:
    polars: Any = importlib.import_module("polars")
    return polars.read_parquet(file, glob=False)


def _from_duckdb(file: str) -> Any:
    duckdb: Any = importlib.import_module("duckdb")
    # A cursor for each file, because each is read by a query of its own.
    return duckdb.cursor().read_parquet(glob.escape(file), hive_partitioning=False)


_READERS: dict[str, Callable[[str], Any]] = {
    "pyarrow": _from_pyarrow, "polars": _from_polars, "duckdb": _from_duckdb}


def _read(files: Sequence[str], names: Sequence[str]) -> list[tuple[str, Any]]:
    """Each file with a table of its own, because types may differ, by the first of these libraries
    that is installed."""
    for file in files:
        if not pathlib.Path(file).is_file():
            raise NoInputError(f"{file}: no such file")
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        return [(file, _read_file(file, name)) for file in files]
    raise UsageError(f"reading Parquet needs {' or '.join(names)}, and none is installed: "
                     f"pip install {names[0]}")


def _read_file(file: str, name: str) -> Any:
    try:
        return _READERS[name](file)
    except Exception as failure:  # of whatever type the library raises
        # Only what the system reports has an errno.
        kind = NoInputError if getattr(failure, "errno", None) else DataError
        raise kind(f"{file}: {name} cannot read this as Parquet: "
                   f"{' '.join(str(failure).split())}") from failure


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m renzan.data", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("import", help="make a dataset of Parquet files")
    verb.add_argument("files", nargs="+", metavar="FILE", help="Parquet files, in order")
    verb.add_argument("-o", "--output", required=True, metavar="DIR", help="directory to create")
    verb.add_argument("--schema", required=True, metavar="FILE",
                      help="schema file, which describes each column")
    verb.add_argument("--vocabulary", action="append", default=[], metavar="SPEC")
    verb.add_argument("--unseen", action="append", default=[], metavar="SHARE")
    verb.add_argument("--vocabulary-from", metavar="DIR")
    verb.add_argument("--grow", action="store_true")
    verb.add_argument("--keep-negatives", type=float, metavar="SHARE")
    verb.add_argument("--seed", type=int)
    verb.add_argument("--split", metavar="SPLIT",
                      help="make DIR/train and DIR/test: time:COLUMN@VALUE, random:SHARE or "
                      "group:COLUMN@SHARE")
    verb.add_argument("--on-bad-row", choices=("error", "skip"), default="error")
    verb.add_argument("--shard-rows", type=int, metavar="ROWS")
    verb.add_argument("--reader", choices=tuple(_READERS),
                      help="the library that reads the files [the first that is installed]")
    return parser


def _import(flags: argparse.Namespace) -> None:
    start = time.monotonic()
    options = _write.Options(
        flags.vocabulary, flags.unseen, flags.vocabulary_from, flags.grow, flags.keep_negatives,
        flags.seed, flags.on_bad_row, flags.shard_rows, split=flags.split)
    tables = _read(flags.files, [flags.reader] if flags.reader else list(_READERS))
    result = _write.write_files(tables, flags.output, flags.schema, options)
    seconds = max(time.monotonic() - start, 1e-3)
    output = flags.output + ("/train" if flags.split else "")
    speed = (result.rows + result.test_rows) / seconds
    labels = "the rows have no labels"
    schema = renzan.data.open(output).schema
    if schema.label is not None:
        labels = f"the label is 1 in {result.positive_rows}"
        if schema.label_rule == "values number":
            labels = "the label is a number"
    print(f"{output}: {result.rows} rows in {seconds:.2f} s ({speed:.0f} rows/s), {labels}")
    if flags.split:
        print(f"{flags.output}/test: {result.test_rows} rows, held out (--split {flags.split})")
    if result.dropped_rows > 0:
        print(f"left out {result.dropped_rows} rows with label 0")
    if result.bad_rows > 0:
        print(f"skipped {result.bad_rows} bad rows, listed in {output}/skipped_rows.csv")


def main() -> int:
    """Returns the exit status."""
    flags = _parser().parse_args()
    try:
        _import(flags)
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        # Unless it came at the very end.
        written = "" if pathlib.Path(flags.output).exists() else "; nothing was written"
        print(f"error: stopped{written}", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
