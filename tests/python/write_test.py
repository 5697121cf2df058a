"""renzan.data.write: tables in memory become the datasets that CSV files of the same values do."""

import contextlib
import ctypes
import datetime
import io
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

import tables

tables.add_to_path()

import datasets
import numpy as np
import renzan

pyarrow, pandas, polars, duckdb = (tables.library(name)
                                   for name in ("pyarrow", "pandas", "polars", "duckdb"))
SCHEMA = {
    "missing": ["?"],
    "columns": {
        "clicked": {"role": "label"},
        "age": {"role": "dense", "transform": "standardize", "clip": [0, float("inf")],
                "fill": "mean"},
        "price": {"role": "dense", "transform": "log"},
        "user": {"role": "categorical", "key": True},
        "city": {"role": "categorical"},
        "tags": {"role": "multi_hot"},
        "when": {"role": "date", "date": "%Y-%m-%d %H:%M:%S",
                 "parts": {"day": {"role": "dense", "transform": "minmax"},
                           "hour": {"role": "categorical"}}},
        "note": {"role": "skip"},
    },
}
ROWS = 1000


def table():
    """Columns of Python values."""
    start = datetime.datetime(2024, 2, 28, 23, 0, 0)
    return {
        "clicked": [i % 3 == 0 and 1 or 0 for i in range(ROWS)],
        "age": [None if i % 7 == 0 else i % 90 for i in range(ROWS)],
        "price": [None if i % 11 == 0 else i * 0.1 for i in range(ROWS)],
        "user": [None if i % 13 == 0 else (i * i) % 71 for i in range(ROWS)],
        "city": [None if i % 5 == 0 else ["Köln", "?", "a, b", 'say "hi"'][i % 4]
                 for i in range(ROWS)],
        "tags": [None if i % 17 == 0 else [f"t{j}" for j in range(i % 4)] for i in range(ROWS)],
        "when": [None if i % 19 == 0 else start + datetime.timedelta(hours=i)
                 for i in range(ROWS)],
        "note": [f"note {i}" for i in range(ROWS)],
    }


def csv_of(columns):
    def field(value):
        if value is None:
            return ""
        text = "|".join(map(str, value)) if isinstance(value, list) else str(value)
        return '"' + text.replace('"', '""') + '"' if set(text) & set(',"') else text

    rows = [",".join(columns)]
    rows += [",".join(map(field, row)) for row in zip(*columns.values())]
    return "\n".join(rows) + "\n"


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p),
                    ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
                    ("n_children", ctypes.c_int64),
                    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
                    ("dictionary", ctypes.c_void_p), ("release", _Release),
                    ("private_data", ctypes.c_void_p)]
_Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64),
                   ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
                   ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
                   ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
                   ("dictionary", ctypes.c_void_p), ("release", _Release),
                   ("private_data", ctypes.c_void_p)]
_Get = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_Stream._fields_ = [("get_schema", _Get), ("get_next", _Get), ("get_last_error", ctypes.c_void_p),
                    ("release", _Release), ("private_data", ctypes.c_void_p)]


class HandMade:
    """A stream of columns of 32-bit integers, without any library."""

    def __init__(self, columns, batches=1):
        self.columns, self.left, self.released = columns, batches, 0
        self._kept = []
        nothing = _Release(self._release_inner)
        self.stream = _Stream(_Get(self._schema), _Get(self._next), None,
                              _Release(self._release))
        self._nothing = nothing

    @property
    def address(self):
        return ctypes.addressof(self.stream)

    def _pointers(self, kind, items):
        array = (ctypes.POINTER(kind) * len(items))(*(ctypes.pointer(item) for item in items))
        self._kept.append((array, items))
        return array

    def _schema(self, _, out):
        children = [_Schema(b"i", name.encode(), release=self._nothing) for name in self.columns]
        ctypes.memmove(out, ctypes.byref(_Schema(
            b"+s", b"", n_children=len(children), children=self._pointers(_Schema, children),
            release=self._nothing)), ctypes.sizeof(_Schema))
        return 0

    def _next(self, _, out):
        if self.left == 0:
            ctypes.memset(out, 0, ctypes.sizeof(_Array))
            return 0
        self.left -= 1
        children = []
        for values in self.columns.values():
            data = (ctypes.c_int32 * len(values))(*values)
            buffers = (ctypes.c_void_p * 2)(None, ctypes.addressof(data))
            self._kept.append((data, buffers))
            children.append(_Array(len(values), 0, 0, 2, buffers=buffers, release=self._nothing))
        buffers = (ctypes.c_void_p * 1)(None)
        self._kept.append(buffers)
        rows = len(next(iter(self.columns.values())))
        ctypes.memmove(out, ctypes.byref(_Array(
            rows, 0, 0, 1, len(children), buffers, self._pointers(_Array, children),
            release=self._nothing)), ctypes.sizeof(_Array))
        return 0

    def _release_inner(self, _):
        pass

    def _release(self, _):
        self.released += 1
        self.stream.release = _Release()


class WriteTest(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.root = pathlib.Path(work.name)

    def from_csv(self, columns, schema, *flags):
        """The dataset that `renzan data import` makes."""
        path = self.root / "table.csv"
        path.write_text(csv_of(columns))
        yaml = self.root / "schema.yaml"
        yaml.write_text(renzan.data._write._text_of(schema)[0].decode())
        datasets.run("data", "import", "--format", "csv", "--schema", yaml, "--output",
                     self.root / "csv", *flags, path)
        return self.root / "csv"

    def expect_same(self, one, other):
        files = [sorted(p.relative_to(d) for p in d.rglob("*") if p.is_file())
                 for d in (one, other)]
        self.assertEqual(*files)
        for name in files[0]:
            self.assertEqual((one / name).read_bytes(), (other / name).read_bytes(), name)

    @unittest.skipUnless(pyarrow, "PyArrow is not installed (bench/setup-peers tables)")
    def test_labels_that_rows_lack(self):
        """Nulls are the empty fields of a CSV file, also in the first label."""
        columns = {"click": [None if i % 3 == 0 else i % 2 for i in range(90)],
                   "stars": [None if i % 3 == 1 else i * 0.5 for i in range(90)],
                   "x": list(range(90))}
        schema = {"columns": {"click": {"role": "label", "optional": True},
                              "stars": {"role": "label", "values": "number", "optional": True},
                              "x": {"role": "dense", "transform": "log"}}}
        self.from_csv(columns, schema)
        for name, table in (("typed", pyarrow.table(columns)),
                            ("texts", pyarrow.table({name: [None if v is None else str(v)
                                                            for v in values]
                                                     for name, values in columns.items()}))):
            new = renzan.data.write(table, self.root / name, schema)
            self.expect_same(self.root / "csv", self.root / name)
        self.assertEqual(np.isnan(new[:].labels).sum(0).tolist(), [30, 30])
        for batches in (1, 30):
            none = pyarrow.table({**columns, "stars": [None] * 90})
            with self.assertRaisesRegex(renzan.DataError,
                                        "row 0: has none of the labels click, stars"):
                renzan.data.write(none.to_reader(90 // batches), self.root / "none", schema)
            new = renzan.data.write(none.to_reader(90 // batches), self.root / f"skip{batches}",
                                    schema, on_bad_row="skip")
            self.assertEqual(len(new), 60)

    def test_hand_made(self):
        columns = {"y": [1, 0, 1], "user": [7, -7, 7], "x": [5, 6, 8]}
        schema = {"columns": {"y": {"role": "label"}, "user": {"role": "categorical"},
                              "x": {"role": "dense", "transform": "log"}}}
        stream, seen = HandMade(columns), []
        dataset = renzan.data.write(stream.address, self.root / "new", schema,
                                    vocabulary=["hash:50", "user=threshold:1"], seed=3,
                                    progress=seen.append)
        self.assertEqual((len(dataset), stream.released), (3, 1))
        self.assertIn(3, seen)
        csv = self.from_csv(columns, schema, "--vocabulary", "user=threshold:1", "--seed", "3")
        self.expect_same(csv, self.root / "new")
        test = renzan.data.write(HandMade({"user": [9, -7], "x": [1, 1]}).address,
                                 self.root / "test", schema, vocabulary_from=self.root / "new")
        self.assertEqual(test[:].ids["user"].tolist(), [1, 3])

    def test_splits(self):
        columns = {"y": [1, 0] * 50, "user": [i % 10 for i in range(100)], "at": list(range(100))}
        schema = {"columns": {"y": {"role": "label"}, "user": {"role": "categorical"},
                              "at": {"role": "skip"}}}
        train, test = renzan.data.write(HandMade(columns).address, self.root / "two", schema,
                                        vocabulary="threshold:1", split="time:at@95")
        self.assertEqual((len(train), len(test)), (95, 5))
        self.assertEqual(test[:].label.tolist(), [0, 1, 0, 1, 0])
        self.assertEqual(train.schema.categorical[0], test.schema.categorical[0])
        train, test = renzan.data.write(HandMade(columns).address, self.root / "groups", schema,
                                        split="group:user@0.4", seed=1)
        users = [set(part[:].ids["user"].tolist()) for part in (train, test)]
        self.assertEqual(len(train) + len(test), 100)
        self.assertFalse(users[0] & users[1])
        with self.assertRaisesRegex(renzan.UsageError, "no column 'usr'"):
            renzan.data.write(HandMade(columns).address, self.root / "none", schema,
                              split="group:usr@0.4")
        self.assertFalse((self.root / "none").exists())

    def test_errors_leave_nothing(self):
        schema = {"columns": {"y": {"role": "label"}}}
        stream = HandMade({"y": [1, 2]})
        with self.assertRaisesRegex(renzan.DataError, r"row 1: column 1 \(y\): '2' is not 0 or 1"):
            renzan.data.write(stream.address, self.root / "new", schema)
        self.assertEqual(stream.released, 1)
        with self.assertRaisesRegex(renzan.ConfigError, r"schema:2:.*\n?.*lable"):
            renzan.data.write(HandMade({"y": [1]}).address, self.root / "new",
                              {"columns": {"y": {"role": "lable"}}})
        with self.assertRaisesRegex(renzan.UsageError, "builtins.list is no table"):
            renzan.data.write([1, 2], self.root / "new", schema)
        with self.assertRaisesRegex(renzan.NoInputError, "missing.yaml: No such file"):
            renzan.data.write(HandMade({"y": [1]}).address, self.root / "new",
                              self.root / "missing.yaml")
        with self.assertRaisesRegex(renzan.UsageError, "on_bad_row is 'ignore'"):
            renzan.data.write(HandMade({"y": [1]}).address, self.root / "new", schema,
                              on_bad_row="ignore")
        self.assertEqual(list(self.root.iterdir()), [])

    def test_progress_may_stop(self):
        def stop(rows):
            raise KeyboardInterrupt

        stream = HandMade({"y": [1, 0] * 5000})
        with self.assertRaises(KeyboardInterrupt):
            renzan.data.write(stream.address, self.root / "new",
                              {"columns": {"y": {"role": "label"}}}, progress=stop)
        self.assertEqual((stream.released, list(self.root.iterdir())), (1, []))

    def test_progress_counts_all_rows(self):
        stream, seen = HandMade({"y": [1, 0] * 5000}), []
        renzan.data.write(stream.address, self.root / "new",
                          {"columns": {"y": {"role": "label"}}}, progress=seen.append)
        # After some thousand rows each, and at the end.
        self.assertEqual(seen, sorted(seen))
        self.assertEqual((len(set(seen)), seen[-1]), (3, 10000), seen)
        for reported, due in zip(seen, (4096, 8192)):
            self.assertTrue(due <= reported < due + 200, seen)

    def test_ctrl_c_behind_the_stream(self):
        """A library makes an error of the stream out of it."""
        stream = HandMade({"y": [1, 0]}, batches=2)

        def interrupted(_, out):
            try:
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(1000):
                    pass  # the handler runs
            except KeyboardInterrupt:
                return 5
            return 0

        stream.stream.get_next = _Get(interrupted)
        before = signal.getsignal(signal.SIGINT)
        with self.assertRaises(KeyboardInterrupt):
            renzan.data.write(stream.address, self.root / "new",
                              {"columns": {"y": {"role": "label"}}})
        self.assertIs(signal.getsignal(signal.SIGINT), before)
        self.assertEqual((stream.released, list(self.root.iterdir())), (1, []))

    def test_ctrl_c_between_reports(self):
        """Python handles it as it enters the next report, where ctypes would drop it."""
        stream, dropped = HandMade({"y": [1, 0] * 1_000_000}), []
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))

        def progress(rows):
            if not timer.ident:
                timer.start()

        with (mock.patch.object(sys, "unraisablehook", dropped.append),
              self.assertRaises(KeyboardInterrupt)):
            renzan.data.write(stream.address, self.root / "new",
                              {"columns": {"y": {"role": "label"}}}, progress=progress)
        timer.join()
        self.assertEqual((dropped, stream.released, list(self.root.iterdir())), ([], 1, []))

    @unittest.skipUnless(pyarrow, "PyArrow is not installed (bench/setup-peers tables)")
    def test_ctrl_c_in_a_generator(self):
        batch = pyarrow.table({"y": [1, 0]}).to_batches()[0]

        def batches():
            yield batch
            os.kill(os.getpid(), signal.SIGINT)
            yield batch

        reader = pyarrow.RecordBatchReader.from_batches(batch.schema, batches())
        with self.assertRaises(KeyboardInterrupt):
            renzan.data.write(reader, self.root / "new", {"columns": {"y": {"role": "label"}}})
        self.assertEqual(list(self.root.iterdir()), [])

    def test_wrong_arguments_release_a_stream(self):
        schema = {"columns": {"y": {"role": "label"}}}
        for wrong in ({"on_bad_row": "zz"}, {"seed": -1}, {"schema": {"columns": {1, 2}}},
                      {"schema": self.root / "missing.yaml"}, {"directory": 3.5}):
            stream = HandMade({"y": [1]})
            arguments = {"directory": self.root / "new", "schema": schema, **wrong}
            with self.assertRaises((renzan.Error, TypeError)):
                renzan.data.write(stream.address, **arguments)
            self.assertEqual(stream.released, 1, wrong)

    def test_a_directory_in_bytes(self):
        columns, schema = {"y": [1, 0] * 50}, {"columns": {"y": {"role": "label"}}}
        streams = [HandMade(columns), HandMade(columns)]
        parts = renzan.data.write(streams[0].address, os.fsencode(self.root / "two"), schema,
                                  split="random:0.5")
        self.assertEqual(sum(map(len, parts)), 100)
        one = renzan.data.write(streams[1].address, os.fsencode(self.root / "one"), schema)
        self.assertEqual(len(one), 100)

    def test_skips_bad_rows(self):
        dataset = renzan.data.write(HandMade({"y": [1, 2, 0]}, batches=3).address,
                                    self.root / "new", {"columns": {"y": {"role": "label"}}},
                                    on_bad_row="skip", shard_rows=4)
        self.assertEqual(len(dataset), 6)
        self.assertEqual((self.root / "new" / "skipped_rows.csv").read_text().count("\n"), 4)

    def library_test(self, name, make):
        self.from_csv(table(), SCHEMA, "--vocabulary", "threshold:1")
        renzan.data.write(make(), self.root / "new", SCHEMA, vocabulary="threshold:1")
        self.expect_same(self.root / "csv", self.root / "new")

    @unittest.skipUnless(pyarrow, "PyArrow is not installed (bench/setup-peers tables)")
    def test_pyarrow(self):
        self.library_test("table", lambda: pyarrow.table(table()))

    @unittest.skipUnless(pyarrow, "PyArrow is not installed (bench/setup-peers tables)")
    def test_pyarrow_types(self):
        """Slices, dictionaries, large and fixed lists, small integers, in several batches."""
        def make():
            whole = pyarrow.table(table()).cast(pyarrow.schema([
                ("clicked", pyarrow.bool_()), ("age", pyarrow.int8()),
                ("price", pyarrow.float64()), ("user", pyarrow.uint16()),
                ("city", pyarrow.large_string()), ("tags", pyarrow.large_list(pyarrow.large_string())),
                ("when", pyarrow.timestamp("ms", "UTC")), ("note", pyarrow.string_view())]))
            whole = whole.set_column(4, "city", whole["city"].dictionary_encode())
            twice = pyarrow.concat_tables([whole.slice(990), whole])
            parts = [twice.slice(10 + i, min(37, ROWS - i)) for i in range(0, ROWS, 37)]
            return pyarrow.RecordBatchReader.from_batches(
                whole.schema, [b for part in parts for b in part.to_batches()])

        self.library_test("types", make)

    @unittest.skipUnless(pyarrow, "PyArrow is not installed (bench/setup-peers tables)")
    def test_vectors(self):
        """Lists of all types are the vectors of a CSV file, and the schema says where they are."""
        columns = {"clicked": [i % 2 for i in range(90)],
                   "text": [None if i % 9 == 4 else [i * 0.1, -1 / (i + 1), float(i)]
                            for i in range(90)],
                   "age": [None if i % 7 == 3 else i for i in range(90)]}
        for transform in ("none", "log"):
            schema = {"columns": {
                "clicked": {"role": "label"},
                "text": {"role": "dense", "dimension": 3, "transform": transform},
                "age": {"role": "categorical", "buckets": [18, 40.5]}}}
            for item, make in ((pyarrow.float64(), pyarrow.list_),
                               (pyarrow.float64(), lambda item: pyarrow.list_(item, 3)),
                               (pyarrow.float32(), lambda item: pyarrow.list_(item, 3)),
                               (pyarrow.float32(), pyarrow.large_list)):
                table = pyarrow.table(columns).cast(pyarrow.schema([
                    ("clicked", pyarrow.int64()), ("text", make(item)), ("age", pyarrow.float32())]))
                self.from_csv({**columns, "text": [
                    None if row is None else [str(np.float32(x)) if item == "float" else x
                                              for x in row] for row in columns["text"]]},
                    schema, "--vocabulary", "threshold:1")
                new = renzan.data.write(table.slice(0), self.root / "new", schema,
                                        vocabulary="threshold:1")
                self.expect_same(self.root / "csv", self.root / "new")
                shutil.rmtree(self.root / "csv")
                shutil.rmtree(self.root / "new")
            self.assertEqual(new.schema.dense, ["text.0", "text.1", "text.2"])
            self.assertEqual(new.schema.vectors, {"text": slice(0, 3)})
        self.assertEqual(new.schema.categorical[0].num_embeddings, 5)
        short = pyarrow.table({"clicked": [1, 0], "text": [[1.0, 2.0, 3.0], [1.0]], "age": [1, 2]})
        with self.assertRaisesRegex(renzan.DataError, r"row 1: column 2 \(text\): a vector of 1 "
                                                      "number, but dimension is 3"):
            renzan.data.write(short, self.root / "new", schema)

    @unittest.skipUnless(pyarrow, "PyArrow is not installed (bench/setup-peers tables)")
    def test_a_stream_that_fails(self):
        batch = pyarrow.table({"y": [1, 0]}).to_batches()[0]

        def batches():
            yield batch
            raise ValueError("the database went away")

        reader = pyarrow.RecordBatchReader.from_batches(batch.schema, batches())
        schema = {"columns": {"y": {"role": "label"}}}
        with self.assertRaisesRegex(renzan.DataError, "after 2 rows: .*the database went away; "
                                    "nothing was written: mend what makes the rows"):
            renzan.data.write(reader, self.root / "new", schema)

        def system_fails():
            yield batch
            raise OSError(5, "Input/output error")

        reader = pyarrow.RecordBatchReader.from_batches(batch.schema, system_fails())
        with self.assertRaisesRegex(renzan.Error, "after 2 rows: .*: try again") as failed:
            renzan.data.write(reader, self.root / "new", schema)
        self.assertEqual(failed.exception.exit_status, 74)
        whole = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(whole, batch.schema) as file:
            for _ in range(3):
                file.write_batch(batch)
        cut = pyarrow.ipc.open_stream(whole.getvalue()[:-100])
        with self.assertRaisesRegex(renzan.DataError, "the stream failed after [24] rows: .*"
                                    "nothing was written"):
            renzan.data.write(cut, self.root / "new", schema)
        self.assertEqual(list(self.root.iterdir()), [])

    @unittest.skipUnless(polars, "polars is not installed (bench/setup-peers tables)")
    def test_polars(self):
        self.library_test("polars", lambda: polars.DataFrame(table()).with_columns(
            polars.col("city").cast(polars.Categorical)))

    @unittest.skipUnless(pandas and pyarrow, "pandas is not installed (bench/setup-peers tables)")
    def test_pandas(self):
        def make():
            frame = pandas.DataFrame(table())
            assert frame["user"].dtype == float  # because of what is missing
            frame["city"] = frame["city"].astype("category")
            return frame.iloc[::-1].iloc[::-1]

        self.library_test("pandas", make)

    @unittest.skipUnless(duckdb and pyarrow, "DuckDB is not installed (bench/setup-peers tables)")
    def test_duckdb(self):
        rows = pyarrow.table(table())
        connection = duckdb.connect()
        connection.register("rows", rows)
        self.library_test("duckdb", lambda: connection.sql("SELECT * FROM rows"))


class ImportTest(unittest.TestCase):
    """python3 -m renzan.data import"""

    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.root = pathlib.Path(work.name)

    def run_import(self, *words, path=None):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or sys.path)}
        return subprocess.run([sys.executable, *(["-S"] if path else []), "-m", "renzan.data",
                               "import", *map(str, words)], env=environment, text=True,
                              capture_output=True)

    @unittest.skipUnless(pyarrow, "PyArrow is not installed (bench/setup-peers tables)")
    def test_parquet(self):
        import pyarrow.parquet
        whole = pyarrow.table(table())
        # Names are no patterns, and folders no columns.
        files = [self.root / "day=3/a[1].parquet", self.root / "b.parquet"]
        files[0].parent.mkdir()
        pyarrow.parquet.write_table(whole.slice(0, 300), files[0], row_group_size=70)
        pyarrow.parquet.write_table(whole.slice(0, 1), files[0].parent / "a1.parquet")
        pyarrow.parquet.write_table(whole.slice(300), files[1])
        schema = self.root / "schema.yaml"
        schema.write_text(renzan.data._write._text_of(SCHEMA)[0].decode())
        renzan.data.write(whole, self.root / "expected", schema, vocabulary="threshold:2", seed=5)
        expected = renzan.data.open(self.root / "expected").fingerprint
        for reader in ("pyarrow", "polars", "duckdb"):
            if tables.library(reader) is None:
                continue
            done = self.run_import("--output", self.root / reader, "--schema", schema, "--reader",
                                   reader, "--vocabulary", "threshold:2", "--seed", "5", *files)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, f"{reader}: 1000 rows in .*, the label is 1 in 334\n")
            self.assertEqual(renzan.data.open(self.root / reader).fingerprint, expected)
        files[1].write_text("PAR1 but for the rest")
        done = self.run_import("--output", self.root / "bad", "--schema", schema, *files)
        self.assertEqual(done.returncode, 65)
        self.assertRegex(done.stderr, "^error: .*b.parquet: pyarrow cannot read this as Parquet: ")
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertNotIn("Traceback", done.stderr)
        self.assertFalse((self.root / "bad").exists())

    @unittest.skipUnless(pyarrow, "PyArrow is not installed (bench/setup-peers tables)")
    def test_files_of_other_types(self):
        """Types in which values would differ are refused, in any order; others make no difference."""
        import pyarrow.parquet
        schema = self.root / "schema.yaml"
        schema.write_text("columns:\n  y: {role: label}\n  u: {role: categorical}\n")

        def write(name, values, kind, encoded=False):
            column = pyarrow.array(values, kind)
            pyarrow.parquet.write_table(pyarrow.table({
                "y": [1, 0], "u": column.dictionary_encode() if encoded else column}),
                self.root / name)
            return self.root / name

        files = {"int64": write("a.parquet", [1, 2], pyarrow.int64()),
                 "string": write("b.parquet", ["1", "02"], pyarrow.string()),
                 "bool": write("c.parquet", [True, False], pyarrow.bool_())}
        for reader in ("pyarrow", "polars", "duckdb"):
            if tables.library(reader) is None:
                continue
            for first, second in (("int64", "string"), ("string", "int64"), ("bool", "int64")):
                done = self.run_import("--output", self.root / "new", "--schema", schema, "--reader",
                                       reader, files[first], files[second])
                self.assertEqual(done.returncode, 65, done.stderr)
                self.assertEqual(
                    done.stderr, f"error: {files[second]}: column 'u' has the type {second}, and "
                    f"{first} in {files[first]}: write them again with one type, so that the same "
                    "value is the same in all files\n")
                self.assertFalse((self.root / "new").exists())
            expected = None
            for number, second in enumerate((
                    write("d.parquet", [3, 4], pyarrow.int64()),
                    write("e.parquet", [3, 4], pyarrow.uint16()),
                    write("f.parquet", [3, 4], pyarrow.float64()),
                    write("g.parquet", [3, 4], pyarrow.int64(), encoded=reader == "pyarrow"))):
                output = self.root / f"{reader}{number}"
                done = self.run_import("--output", output, "--schema", schema, "--reader", reader,
                                       "--vocabulary", "threshold:1", files["int64"], second)
                self.assertEqual(done.returncode, 0, done.stderr)
                got = renzan.data.open(output).fingerprint
                expected = expected or got
                self.assertEqual(got, expected, second)
            self.assertIn('created_by: "import --format parquet"',
                          (output / "dataset.yaml").read_text())
        # A file that was damaged after its columns were written.
        rows = pyarrow.table({"y": [1, 0] * 5000, "u": list(range(10000))})
        pyarrow.parquet.write_table(rows, self.root / "damaged.parquet", compression="none",
                                    use_dictionary=False)
        data = bytearray((self.root / "damaged.parquet").read_bytes())
        data[4:40] = bytes(36)
        (self.root / "damaged.parquet").write_bytes(data)
        done = self.run_import("--output", self.root / "new", "--schema", schema, files["int64"],
                               self.root / "damaged.parquet")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (65, 1), done.stderr)
        self.assertRegex(done.stderr, "^error: .*damaged.parquet: reading failed after 0 rows: .*; "
                         "nothing was written: the file is damaged: write it again, or leave it out")
        self.assertFalse((self.root / "new").exists())

    def test_says_whether_rows_have_labels(self):
        from renzan.data import __main__ as command
        schema = self.root / "schema.yaml"
        schema.write_text("columns:\n  y: {role: label}\n  a: {role: categorical}\n")

        def output_of(columns, *words):
            stream = HandMade(columns)
            arguments = ["data", "import", "--schema", str(schema), *map(str, words), "a.parquet"]
            with (mock.patch.object(command, "_read", lambda *_: [("a.parquet", stream.address)]),
                  mock.patch.object(sys, "argv", arguments),
                  contextlib.redirect_stdout(io.StringIO()) as out):
                self.assertEqual(command.main(), 0)
            return out.getvalue()

        trained = self.root / "train"
        self.assertRegex(output_of({"y": [1, 0], "a": [3, 4]}, "-o", trained),
                         "2 rows in .*, the label is 1 in 1\n")
        self.assertRegex(output_of({"a": [3, 4]}, "-o", self.root / "new", "--vocabulary-from",
                                   trained), "2 rows in .*, the rows have no labels\n")

    def test_errors(self):
        done = self.run_import("--output", self.root / "new", "--schema", "none.yaml", "no.parquet")
        self.assertEqual((done.returncode, done.stderr), (66, "error: no.parquet: no such file\n"))
        (self.root / "a.parquet").write_text("")
        only_numpy = self.root / "modules"
        only_numpy.mkdir()
        import numpy
        for name in ("numpy", "numpy.libs"):
            source = pathlib.Path(numpy.__file__).parents[1] / name
            if source.exists():
                (only_numpy / name).symlink_to(source)
        ours = str(pathlib.Path(renzan.__file__).parents[1])
        done = self.run_import("--output", self.root / "new", "--schema", "none.yaml",
                               self.root / "a.parquet", path=[ours, str(only_numpy)])
        self.assertEqual((done.returncode, done.stderr),
                         (64, "error: reading Parquet needs pyarrow or polars or duckdb, and none "
                          "is installed: pip install pyarrow\n"))
        done = self.run_import("a.parquet", path=[ours])
        self.assertRegex(done.stderr.splitlines()[-1], "ImportError: .*numpy.*: renzan needs NumPy: "
                         "pip install numpy, or install Renzan's wheel")
        with mock.patch.dict(os.environ, RENZAN_LIBRARY="/none.so"):
            done = self.run_import("a.parquet", path=[ours, str(only_numpy)])
        self.assertRegex(done.stderr.splitlines()[-1], "ImportError: /none.so.*: install Renzan's "
                         "wheel .*scripts/wheel.*RENZAN_LIBRARY")


if __name__ == "__main__":
    unittest.main()
