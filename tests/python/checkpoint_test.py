"""renzan.load_checkpoint and what writes checkpoints from Python."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np

import renzan
from renzan.checkpoint import Array, CheckpointWriter, list_checkpoints, model_sha256

SAMPLES = {"F64": np.array([1e300, -0.0]), "F32": np.array([[0.1], [np.nan]], np.float32),
           "F16": np.array(2.5, np.float16), "I64": np.array([-1 << 62]),
           "I32": np.zeros((0, 3), np.int32), "I16": np.array([-3], np.int16),
           "I8": np.array([-3, 3, 4], np.int8), "U8": np.array([255], np.uint8),
           "BOOL": np.array([True, False])}


def arrays(values):
    return [Array(f"tensor {dtype}", dtype, value.shape, value.ctypes.data, value.nbytes)
            for dtype, value in values.items()]


class CheckpointTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = os.path.join(directory.name, "ünïcode")
        self.writer = CheckpointWriter(self.dir)
        self.addCleanup(lambda: self.writer.close())

    def test_every_type_comes_back(self):
        digest = self.writer.write(3, arrays(SAMPLES), {"name": "ä"}, hashed=True)
        self.assertEqual(digest, model_sha256(3, arrays(SAMPLES)))
        with renzan.load_checkpoint(self.dir) as saved:
            self.assertEqual((saved.step, saved.run, saved.sha256), (3, {"name": "ä"}, digest))
            self.assertEqual(len(saved), len(SAMPLES))
            for dtype, value in SAMPLES.items():
                read = saved[f"tensor {dtype}"]
                self.assertEqual((read.dtype, read.shape), (value.dtype, value.shape))
                self.assertEqual(read.tobytes(), value.tobytes())
            self.assertNotIn("tensor", saved)
            with self.assertRaises(KeyError):
                saved["tensor"]
            self.assertIn("step 3", repr(saved))
        with self.assertRaisesRegex(renzan.UsageError, "closed"):
            saved.verify()
        self.assertEqual(repr(saved), "<Checkpoint, closed>")

    def test_a_run_directory(self):
        writer = CheckpointWriter(os.path.join(self.dir, "run", "checkpoints"))
        self.addCleanup(writer.close)
        writer.write(4, arrays(SAMPLES))
        self.assertEqual(renzan.load_checkpoint(os.path.join(self.dir, "run")).step, 4)
        self.assertEqual(renzan.load_checkpoint(pathlib.Path(self.dir, "run")).step, 4)
        os.mkdir(os.path.join(self.dir, "empty"))
        os.mkdir(os.path.join(self.dir, "empty", "checkpoints"))
        with self.assertRaisesRegex(renzan.NoInputError, "contains none"):
            renzan.load_checkpoint(os.path.join(self.dir, "empty"))

    def test_bfloat16_is_read_as_float32(self):
        bits = np.array([0x3f80, 0xc020, 0x7f80], np.uint16)
        self.writer.write(0, [Array("x", "BF16", (3,), bits.ctypes.data, 6)])
        saved = renzan.load_checkpoint(self.dir)
        self.assertEqual(saved["x"].tolist(), [1.0, -2.5, float("inf")])
        self.assertEqual(saved.read("x").tobytes(), bits.tobytes())

    def test_a_digest_that_was_not_recorded_is_computed(self):
        self.assertEqual(self.writer.write(3, arrays(SAMPLES)), "")
        self.assertEqual(renzan.load_checkpoint(self.dir).sha256, model_sha256(3, arrays(SAMPLES)))

    def test_newest_first_and_old_ones_removed(self):
        for step in (1, 5, 3):
            self.writer.write(step, arrays(SAMPLES))
        self.assertEqual([entry.step for entry in list_checkpoints(self.dir)], [5, 3, 1])
        self.writer.remove_old(2)
        self.assertEqual([entry.step for entry in list_checkpoints(self.dir)], [5, 3])
        self.assertEqual(list_checkpoints(self.dir + "/none"), [])

    def test_damage(self):
        for step in (1, 2, 3):
            self.writer.write(step, arrays(SAMPLES))
        file = pathlib.Path(self.dir, "step-00000002", "state.safetensors")
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
        pathlib.Path(self.dir, "step-00000003", "manifest.json").write_text("{}")
        entries = list_checkpoints(self.dir)
        self.assertIsInstance(entries[0].problem, renzan.DataError)
        self.assertEqual([entry.problem for entry in entries[1:]], [None, None])
        saved = renzan.load_checkpoint(self.dir)
        self.assertEqual(saved.step, 2)
        with self.assertRaisesRegex(renzan.DataError, "is corrupt"):
            saved["tensor F64"]
        self.writer.move_aside(2)
        self.assertEqual(renzan.load_checkpoint(self.dir).step, 1)

    def test_what_is_not_there(self):
        with self.assertRaisesRegex(renzan.NoInputError, "contains none"):
            renzan.load_checkpoint(self.dir + "/none")

    def test_a_killed_writer_leaves_nothing(self):
        self.writer.close()
        code = ("import sys, numpy as np, threading, os, time\n"
                "from renzan.checkpoint import *\n"
                "w = CheckpointWriter(sys.argv[1]); a = np.zeros(1 << 26, np.uint8)\n"
                "w.write(1, [Array('a', 'U8', a.shape, a.ctypes.data, a.nbytes)])\n"
                "print('wrote', flush=True)\n"
                "while True: w.write(2, [Array('a', 'U8', a.shape, a.ctypes.data, a.nbytes)])\n")
        with subprocess.Popen([sys.executable, "-c", code, self.dir], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as process:
            process.stdout.readline()
            while not any(".partial" in name for name in os.listdir(self.dir)):
                pass
            process.send_signal(signal.SIGKILL)
        for entry in list_checkpoints(self.dir):
            renzan.load_checkpoint(entry.path).verify()
        self.writer = CheckpointWriter(self.dir)
        self.assertFalse([name for name in os.listdir(self.dir) if "partial" in name])
        self.writer.write(9, arrays(SAMPLES))

    def test_an_earlier_attempt_of_the_job_gives_way(self):
        self.writer.close()
        earlier = ("import signal, sys\n"
                   "from renzan.checkpoint import CheckpointWriter\n"
                   "signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))\n"
                   "writer = CheckpointWriter(sys.argv[1])\n"
                   "print('writes', flush=True)\n"
                   "while True: signal.pause()\n")
        def attempt(number):
            return {**os.environ, "RENZAN_JOB_ID": "12", "RENZAN_ATTEMPT": str(number)}
        with subprocess.Popen([sys.executable, "-c", earlier, self.dir], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, env=attempt(0)) as process:
            process.stdout.readline()
            with mock.patch.dict(os.environ, attempt(1)):
                self.writer = CheckpointWriter(self.dir)
            self.assertEqual(process.wait(), 75)
        self.writer.write(9, arrays(SAMPLES))


if __name__ == "__main__":
    unittest.main()
