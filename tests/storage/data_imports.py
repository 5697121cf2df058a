"""Datasets that are made in a store, from text there, by programs that are killed or stopped."""

import contextlib
import os
import re
import signal

from checks import expect, expect_equal
from data_runs import url
from faulty_store import FaultyStore
from store import BUCKET
from training import HANG, Run

ROWS = 20000
SHARD = 3000


def keys_below(store, place):
    """The keys below the place, except the lock."""
    return [key for key in store.client().keys(BUCKET, f"{place}/") if not key.endswith("/.lock")]


def fingerprint(runs, place):
    return re.search(r"^fingerprint (\w{64})$", runs("data", "inspect", place), re.MULTILINE)[1]


def text_lines(runs):
    if not (runs.folder / "text.tsv").exists():
        runs("data", "synth", "--rows", ROWS // 2, "--output", "text.tsv")
    return (runs.folder / "text.tsv").read_text().splitlines(keepends=True)


def expect_one_import(store, place):
    """There must be a dataset, and nothing of another attempt."""
    names = [key.removeprefix(f"{place}/") for key in keys_below(store, place)]
    expect("dataset.yaml" in names, f"no dataset in {names}")
    prefixes = {name.partition(".")[0] for name in names} - {"dataset"}
    expect_equal(len(prefixes), 1, f"imports that have left {names}")
    expect_equal(store.client().uploads(BUCKET, f"{place}/"), [], f"uploads left in {place}")


def imports(runs, store):
    """A dataset imported from a store into a store equals one made on disk from the same text."""
    for number, name in enumerate(("1.tsv.gz", "2.tsv.zst", "test.tsv")):
        runs("data", "synth", "--rows", ROWS // 2, "--first-row", number * ROWS // 2,
             "--output", name)
        answer = store.client().put(BUCKET, f"text/{name}", (runs.folder / name).read_bytes())
        expect_equal(answer.status, 200, f"put {name}")
    for kind, vocabulary in (("hash", ["hash:1000"]), ("threshold", ["hash:500", "C3=threshold:2",
                                                                     "C9=threshold:9"])):
        words = [word for one in vocabulary for word in ("--vocabulary", one)]
        words += ["--format", "criteo", "--shard-rows", SHARD]
        disk, there = f"import-{kind}", url(f"import-{kind}")
        runs("data", "import", *words, "--output", disk, "1.tsv.gz", "2.tsv.zst")
        runs("data", "import", *words, "--output", there, url("text/1.tsv.gz"),
             url("text/2.tsv.zst"))
        expect_equal(fingerprint(runs, there), fingerprint(runs, disk), f"the fingerprint, {kind}")
        shards = {re.search(r"shard-\d+", key)[0] for key in keys_below(store, f"import-{kind}")
                  if "shard-" in key}
        expect_equal(len(shards), -(-ROWS // SHARD), "shards")
        expect_one_import(store, f"import-{kind}")
        runs("data", "verify", there)
        expect_equal(runs("data", "inspect", there).splitlines()[1:],
                     runs("data", "inspect", disk).splitlines()[1:], f"inspect, {kind}")
        # A test set gets the ids of its training set, wherever either is.
        tests = []
        for where, source in (("from-disk", disk), (url(f"test-{kind}"), there),
                              ("from-store", there)):
            test = where if "/" in where else f"{where}-{kind}"
            runs("data", "import", "--vocabulary-from", source, "--output", test,
                 url("text/test.tsv"))
            tests.append(fingerprint(runs, test))
        expect_equal(len(set(tests)), 1, f"fingerprints of test sets, {kind}: {tests}")
        line = runs("data", "import", "--output", there, "1.tsv.gz", code=73)
        expect(f"{there} exists" in line, line)
        expect_equal(fingerprint(runs, there), fingerprint(runs, disk), "after a refused import")
    line = runs("data", "import", "--output", url("none"), url("text/none.tsv.gz"), code=66)
    expect(url("text/none.tsv.gz") in line, line)
    expect_equal(keys_below(store, "none"), [], "left by an import of nothing")


def skipped_rows(runs, store):
    """Skipped rows are listed beside the dataset."""
    (runs.folder / "bad.tsv").write_text("bad\n" + "".join(text_lines(runs)[:100]))
    runs("data", "import", "--on-bad-row", "skip", "--output", url("skipped"), "bad.tsv")
    (key,) = (key for key in keys_below(store, "skipped") if key.endswith(".skipped_rows.csv"))
    expect_equal(store.client().get(BUCKET, key).body,
                 b"file,line,reason\nbad.tsv,1,1 column separated by tabs instead of 40\n", key)
    expect_one_import(store, "skipped")


def damaged_objects(runs, store):
    """Verifying names the objects that have changed in the store."""
    runs("data", "synth", "--rows", 3000, "--format", "dataset", "--shard-rows", 2000, "--output",
         url("damaged"))
    client = store.client()
    key = next(key for key in keys_below(store, "damaged") if key.endswith("00001/dense.npy"))
    content = bytearray(client.get(BUCKET, key).body)
    content[5000] ^= 4
    client.put(BUCKET, key, bytes(content))
    line = runs("data", "verify", url("damaged"), code=65)
    expect(url(key) in line, line)


def others_keep_their_own(runs, store):
    """Objects that do not belong to an import are left alone."""
    client = store.client()
    runs("data", "synth", "--rows", 500, "--format", "dataset", "--output", url("shared/first"))
    client.put(BUCKET, "shared/notes.txt", b"dear diary")
    before = keys_below(store, "shared")
    with contextlib.suppress(SystemExit):  # whether it may be a dataset itself is another question
        runs("data", "synth", "--rows", 500, "--format", "dataset", "--output", url("shared"))
    for key in before:
        expect(client.head(BUCKET, key).status == 200, f"{key} is gone")
    runs("data", "verify", url("shared/first"))


class Pipe:
    """An import of text that this process writes into a pipe."""

    def __init__(self, runs, name, output, store=None):
        path = runs.folder / f"{name}.pipe"
        os.mkfifo(path)
        self.run = Run(name, [runs.program, "data", "import", path, "--output", output,
                              "--shard-rows", str(SHARD)], runs.environment(store), runs.folder)
        self._pipe = open(path, "w")

    def write(self, lines):
        self._pipe.writelines(lines)
        self._pipe.flush()

    def close(self):
        self._pipe.close()


def faster_imports(runs, store):
    """Another program makes the dataset meanwhile, without taking the lock."""
    lines = text_lines(runs)
    runs("data", "synth", "--rows", 700, "--format", "dataset", "--output", "faster")
    slow = Pipe(runs, "slow", url("contested"))
    slow.write(lines[:5000])
    for path in (runs.folder / "faster").rglob("*"):
        if path.is_file():
            store.client().put(BUCKET, f"contested/{path.relative_to(runs.folder / 'faster')}",
                               path.read_bytes())
    slow.close()
    slow.run.end(73)
    expect("another run has written it meanwhile" in slow.run.log(), slow.run.log())
    runs("data", "verify", url("contested"))
    expect_equal(fingerprint(runs, url("contested")), fingerprint(runs, "faster"), "the winner")


def waiting_imports(runs, store):
    """An import that waits for the lock finds a dataset when it gets it."""
    lines = text_lines(runs)
    first = Pipe(runs, "first", url("awaited"))
    first.write(lines[:5000])
    second = Run("second", [runs.program, "data", "synth", "--rows", "500", "--format", "dataset",
                            "--output", url("awaited")], runs.environment(), runs.folder)
    second.wait_for("whether another run still writes here")
    first.close()
    first.run.end(0)
    second.end(73)
    expect(url("awaited") in second.log(), second.log())
    runs("data", "verify", url("awaited"))
    expect_one_import(store, "awaited")


def killed_imports(runs, store):
    """Killed at some request: nobody sees a dataset, and the next import removes what is left."""
    words = ["data", "synth", "--format", "dataset", "--rows", "250000", "--features", "24",
             "--shard-rows", "100000"]
    runs(*words, "--output", "undisturbed")
    place = url("killed")
    for where in ("shard-00000/checksums.npy", "shard-00001/dense.npy", "partNumber=2",
                  "dataset.yaml"):
        with FaultyStore(store) as faulty:
            rule = faulty.inject(HANG, "PUT", where)
            run = Run("killed", [runs.program, *words, "--output", place],
                      runs.environment(faulty), runs.folder)
            run.wait_for_fault(rule).kill()
            faulty.clear()
        expect(keys_below(store, "killed") or "00000" in where, f"nothing was written: {where}")
        line = runs("data", "inspect", place, code=66)
        expect(place in line, line)
    runs(*words, "--output", place)
    expect_one_import(store, "killed")
    expect_equal(fingerprint(runs, place), fingerprint(runs, "undisturbed"), "the fingerprint")


def stopped_imports(runs, store):
    """SIGTERM ends an import as it does on disk, and nothing is left."""
    lines = text_lines(runs)
    with FaultyStore(store) as faulty:
        pipe = Pipe(runs, "stopped", url("stopped"), faulty)
        pipe.write(lines[:7500])
        faulty.wait_for_request("PUT", "shard-00001/")
        pipe.run.signal(signal.SIGTERM)
        pipe.run.end(75)
        pipe.close()
    expect("stopped on request" in pipe.run.log(), pipe.run.log())
    expect_equal(keys_below(store, "stopped"), [], "left by a stopped import")
    expect_equal(store.client().uploads(BUCKET, "stopped"), [], "uploads left")
    runs("data", "inspect", url("stopped"), code=66)
