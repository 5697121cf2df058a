"""Small training runs of the real program on datasets, of which there are two copies: on disk and in
a store.

  with DataRuns(program, store) as runs:
      run = runs.train("first", "mixed", cache=runs.cache(THIRD), order="stored")
      expect_equal(run.sha256(), runs.expected("mixed", order="stored"), "its model")
"""

import json
import os
import pathlib
import struct
import subprocess
import tempfile
import threading

from checks import expect, expect_equal
from store import BUCKET
from training import LIMIT_S, Run, check_words, environment_of_programs

MIB = 1 << 20
BATCH = 2048
CONFIG = {
    "seed": 3,
    "model": {"embedding_dim": 8, "bottom_mlp": [16], "top_mlp": [16, 8]},
    "training": {"batch_size": BATCH, "log_every": 1},
    "optimizer": {"dense": {"learning_rate": 0.05}, "sparse": {"learning_rate": 0.05}},
    "checkpoint": {"every": "0"}, "elastic": {"backoff_seconds": 0.05},
}
# Rows are mixed within windows of 65,536. In stored order, a batch of `mixed` needs a small part of
# it; `wide` is so large that a mixed window is a quarter of it.
DATASETS = {
    "mixed": ["--rows", "140000", "--features", "4", "--multi-hot", "2", "--shard-rows", "50000"],
    "held-out": ["--rows", "20000", "--first-row", "140000", "--features", "4", "--multi-hot", "2"],
    "wide": ["--rows", "700000", "--features", "24", "--shard-rows", "200000"],
}
FITS = 1024  # MiB
SLACK = 4 * MIB  # how much a cache may exceed its limit: the ends of files, its tables


def url(place):
    return f"s3://{BUCKET}/{place}"


class Cache:
    """A cache directory of at most so many MiB."""

    def __init__(self, directory, mebibytes):
        self.directory, self.mebibytes = directory, mebibytes

    def keys(self):
        return {"data.cache.directory": self.directory,
                "data.cache.size": f"{self.mebibytes}MiB"}

    def disk_bytes(self):
        """The disk space that it uses at this moment."""
        total = 0
        for folder, _, names in os.walk(self.directory):
            for name in names:
                try:
                    total += os.stat(f"{folder}/{name}").st_blocks * 512
                except FileNotFoundError:
                    pass  # it has just been removed
        return total

    def used(self):
        """The bytes that its processes have counted."""
        return struct.unpack("<Q", pathlib.Path(self.directory, "usage").read_bytes())[0]

    def there(self):
        """The bytes that are there according to its tables."""
        return sum(map(_bytes_there, pathlib.Path(self.directory).glob("*/state")))

    def expect_sound(self, what):
        expect_equal(self.used(), self.there(), f"the bytes that are counted, {what}")
        expect(self.disk_bytes() <= self.mebibytes * MIB + SLACK,
               f"{self.disk_bytes()} bytes in a cache of {self.mebibytes} MiB, {what}")


def _bytes_there(state):
    """A table is 64 bytes with the size of a chunk and the number of chunks, then three numbers for
    each chunk, the first of which is odd if the chunk is there. Each file has chunks of its own;
    the last one is short."""
    table = state.read_bytes()
    chunk_bytes, chunks = struct.unpack_from("<QQ", table, 8)
    entries = iter(struct.unpack_from(f"<{3 * chunks}I", table, 64)[::3])
    total = 0
    for line in state.with_name("files").read_text().splitlines():
        size = int(line.split()[0])
        for begin in range(0, size, chunk_bytes):
            if next(entries) % 2 == 1:
                total += min(chunk_bytes, size - begin)
    expect(next(entries, None) is None, f"more chunks than files in {state}")
    return total


class Watch:
    """Watches continuously how much disk space a cache uses."""

    def __init__(self, cache):
        self._cache, self._ends, self.most = cache, threading.Event(), 0
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self):
        while not self._ends.wait(0.01):
            self.most = max(self.most, self._cache.disk_bytes())

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._ends.set()
        self._thread.join()
        if not error[0]:
            limit = self._cache.mebibytes * MIB
            expect(self.most <= limit + SLACK, f"{self.most} bytes in a cache of {limit}")
            expect(self.most >= limit // 2, f"no more than {self.most} bytes were seen in a cache of "
                   f"{limit}: was it used?")


class DataRuns:
    def __init__(self, program, store):
        self.program, self.store = os.path.realpath(program), store
        self._temporary = tempfile.TemporaryDirectory(prefix="data.")
        self.folder = pathlib.Path(self._temporary.name)
        self._runs, self._expected, self._caches = [], {}, 0

    def __enter__(self):
        try:
            (self.folder / "home").mkdir()
            (self.folder / "config.json").write_text(json.dumps(CONFIG))
            for name, words in DATASETS.items():
                for place in name, url(name):
                    self("data", "synth", "--format", "dataset", "--seed", "5",
                         "--rows-per-table", "200", *words, "--output", place)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for run in self._runs:
            if run.is_running():
                run.kill()
        self._temporary.cleanup()

    def environment(self, store=None, **variables):
        """`store`: a Store or a FaultyStore, if not the usual one. `variables`: those that are None
        are removed."""
        place = (store or self.store).environment()
        return environment_of_programs(self.folder, place | variables)

    def __call__(self, *words, code=0, store=None, **variables):
        """Runs the program. Returns what it prints: one line about the error, if there is one."""
        done = subprocess.run([self.program, *map(str, words)], cwd=self.folder,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=LIMIT_S, env=self.environment(store, **variables))
        said = f"renzan {' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        expect_equal(done.returncode, code, said)
        check_words(done.stdout + done.stderr, said)
        if code > 1:
            expect_equal(len(done.stderr.splitlines()), 1, f"lines of {said}")
        return done.stderr if code > 1 else done.stdout

    def cache(self, mebibytes):
        """Makes a new cache."""
        self._caches += 1
        return Cache(str(self.folder / f"cache-{self._caches}"), mebibytes)

    def start(self, name, data, cache=None, order="mixed", steps=0, workers=1, store=None,
              keys=None, variables=None):
        """`name`: a new run directory, or one to resume. `data`: the name of a dataset in the
        store, or a path. `order`: "mixed", or "stored" for the order in which rows are stored."""
        path = url(data) if "/" not in data else data
        keys = {"data.train.path": path, "data.shuffle": json.dumps(order == "mixed"),
                **({"training.max_steps": steps} if steps else {}),
                **(cache.keys() if cache else {}), **(keys or {})}
        words = ["train", "config.json", "--run-dir", name, "--workers", str(workers), "--threads",
                 "1", *(["--backend", "gloo"] if workers > 1 else [])]
        for key, value in keys.items():
            words += ["--set", f"{key}={value}"]
        self._runs.append(Run(name, [self.program, *words],
                              self.environment(store, **(variables or {})), self.folder))
        return self._runs[-1]

    def train(self, *arguments, code=0, **others):
        """Trains to the end. Returns its Run, or the one line about its error."""
        run = self.start(*arguments, **others).end(code)
        if code == 0:
            return run
        errors = [line for line in run.log().splitlines() if "error: " in line]
        expect_equal(len(errors), 1, f"lines about what is wrong:\n{run.log()}")
        expect("model sha256" not in run.log(), f"a model in spite of an error:\n{run.log()}")
        return errors[0]

    def expected(self, data, order="mixed", steps=0):
        """The model's sha256, from a run on disk."""
        name = f"disk-{data}-{order}-{steps}"
        if name not in self._expected:
            self._expected[name] = self.train(name, f"./{data}", order=order, steps=steps).sha256()
        return self._expected[name]

    def train_right(self, name, data, order="mixed", steps=0, **others):
        """Trains to the end; the model must be that of a run on disk."""
        run = self.train(name, data, order=order, steps=steps, **others)
        if run.sha256() != self.expected(data, order, steps):
            run.fail("another model than on disk")
        return run

    def metrics(self, run):
        """The last metrics."""
        return json.loads((run.directory / "metrics.jsonl").read_text().splitlines()[-1])

    def bytes_of(self, data):
        """The bytes of the files that a run may read through a cache."""
        return sum(path.stat().st_size for path in (self.folder / data).rglob("*.npy")
                   if path.name != "checksums.npy")
