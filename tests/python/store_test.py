"""Datasets and checkpoints in an object store, from Python: like those in directories."""

import os
import pathlib
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import datasets
import workers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "storage"))
from store import BUCKET, Store

try:
    import torch
except ImportError:
    torch = None

import renzan

WORKER = pathlib.Path(__file__).parent / "state_worker.py"
STEPS = 16


def equal(a, b):
    if isinstance(a, renzan.data.Bags):
        return (np.array_equal(a.values, b.values) and np.array_equal(a.offsets, b.offsets) and
                (a.weights is None) == (b.weights is None) and
                (a.weights is None or np.array_equal(a.weights, b.weights)))
    return np.array_equal(a, b)


class StoreTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.store = Store()
        cls.store.__enter__()
        cls.addClassCleanup(cls.store.__exit__, None, None, None)
        os.environ.update(cls.store.environment())

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.environ["RENZAN_DATA_CACHE"] = f"{self.folder}/cache"

    def test_datasets(self):
        place = f"s3://{BUCKET}/data"
        for output in (place, f"{self.folder}/data"):
            subprocess.run([os.environ["RENZAN"], "data", "synth", "--format", "dataset", "--rows",
                            "5000", "--seed", "5", "--output", output], check=True,
                           stdout=subprocess.DEVNULL)
        there, here = renzan.data.open(place), renzan.data.open(f"{self.folder}/data")
        self.assertEqual(there.fingerprint, here.fingerprint)
        there.verify()
        chance = random.Random(1)
        for dataset in (there, pickle.loads(pickle.dumps(there))):
            rows = [chance.randrange(5000) for _ in range(500)]
            a, b = dataset[rows], here[rows]
            self.assertTrue(equal(a.dense, b.dense) and equal(a.label, b.label))
            self.assertEqual(list(a.ids), list(b.ids))
            self.assertTrue(all(equal(a.ids[name], b.ids[name]) for name in a.ids))
        with self.assertRaisesRegex(renzan.UsageError, "cannot be mapped: read rows"):
            there.shards

    def test_weights_of_bags(self):
        """In files of several chunks of the cache, of which few are read."""
        chance = random.Random(2)
        lines = ["y,t,w"]
        for row in range(20000):
            bag = [chance.randrange(50) for _ in range(chance.randrange(12))]
            lines.append(f"{row % 2},{'|'.join(map(str, bag))},"
                         f"{'|'.join(str(chance.random()) for _ in bag)}")
        folder = pathlib.Path(self.folder)
        here = renzan.data.open(datasets.imported(
            folder / "tags", "\n".join(lines) + "\n",
            {"y": "{role: label}", "t": "{role: multi_hot}", "w": "{role: bag_weights, bag: t}"}))
        place = f"s3://{BUCKET}/tags"
        datasets.run("data", "import", "--format", "csv", "--schema", folder / "tags.yaml",
                     "--output", place, folder / "tags.csv")
        there = renzan.data.open(place)
        self.assertEqual(there.fingerprint, here.fingerprint)
        there.verify()
        for rows in ([19999, 7], [12345], list(range(9000, 9100)), [3] * 5):
            self.assertTrue(equal(there[rows].ids["t"], here[rows].ids["t"]), rows)

    @unittest.skipIf(torch is None, "needs PyTorch")
    def test_kills_and_resizes(self):
        def train(place, *options, count=1):
            return workers.finish(workers.start(WORKER, [place, STEPS, *options], count))

        ((status, out, err),) = train(f"{self.folder}/checkpoints")
        self.assertEqual(status, 0, err)
        place = f"s3://{BUCKET}/run"
        self.assertIn(-signal.SIGKILL, [end[0] for end in train(place, "kill_at=6", count=2)])
        self.assertEqual({end[0] for end in train(place, "stop_at=9", count=3)}, {75})
        saved = renzan.load_checkpoint(place)
        self.assertGreaterEqual(saved.step, 9)
        ends = train(place, count=2)
        self.assertEqual([end[0] for end in ends], [0, 0], ends)
        self.assertEqual(ends[0][1].splitlines()[0], f"from {saved.step}")
        self.assertEqual(ends[0][1].splitlines()[-1], out.splitlines()[-1])
        self.assertFalse(os.path.exists("s3:"))

    def test_errors(self):
        with self.assertRaises(renzan.NoInputError):
            renzan.load_checkpoint(f"s3://{BUCKET}/none")
        with self.assertRaisesRegex(renzan.NoInputError, "no-such-bucket"):
            renzan.data.open("s3://no-such-bucket/x")


if __name__ == "__main__":
    unittest.main()
