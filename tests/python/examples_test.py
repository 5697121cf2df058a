"""The examples for PyTorch: one digest on any workers and backend, undisturbed or not.

examples_test.py --every-placement    1 to 4 workers on each backend, and three seeds of kills
"""

import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import json

import workers

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/pytorch"
TEXT = EXAMPLES.parents[2] / "shared/data/tinyshakespeare/input.txt.gz"
STOPPED = 75
EVERY_PLACEMENT = "--every-placement" in sys.argv


def digest(said):
    found = re.findall(r"sha256 ([0-9a-f]{64})", "\n".join(said))
    if len(found) != 1:
        raise AssertionError(f"{len(found)} digests in {said}")
    return found[0]


class Run:
    """A disturbed run of an example: its attempts share a directory."""

    def __init__(self, program, arguments, directory):
        self.program, self.arguments, self.directory = program, arguments, pathlib.Path(directory)
        self.environment = {"RENZAN_RUN_DIR": directory,
                            "RENZAN_CHECKPOINT_DIR": f"{directory}/checkpoints"}
        self.processes = []

    def start(self, count):
        self.processes = workers.start(self.program, self.arguments, count, self.environment)

    def step(self):
        try:
            return json.loads((self.directory / "status.json").read_text())["step"]
        except (OSError, ValueError, KeyError):
            return 0

    def wait_until(self, condition):
        """Waits until the condition holds or a worker has ended."""
        end = time.monotonic() + workers.LIMIT_SECONDS
        while not condition() and all(p.poll() is None for p in self.processes):
            if time.monotonic() > end:
                raise AssertionError(f"nothing has happened, at step {self.step()}")
            time.sleep(0.01)

    def checkpoints(self):
        return set((self.directory / "checkpoints").glob("step-*"))

    def finish(self):
        return workers.finish(self.processes)


class ExamplesTest(unittest.TestCase):
    def expect_one_digest(self, name, arguments, placements):
        """With one worker, undisturbed in these placements, and disturbed: over Gloo, with two,
        three, one and four workers in turn."""
        program, seeds = EXAMPLES / name, [1]
        if EVERY_PLACEMENT:
            placements = [(c, b) for c in (1, 2, 3, 4) for b in ("gloo", "mpi")]
            seeds = [1, 2, 3]
        expected = digest(workers.run(program, arguments, workers=1))
        for count, backend in placements:
            with self.subTest(workers=count, backend=backend):
                self.assertEqual(digest(workers.run(program, arguments, count, backend)), expected)
        for seed in seeds:
            with self.subTest("disturbed", seed=seed), tempfile.TemporaryDirectory() as directory:
                self.assertEqual(self.disturbed(program, arguments, directory, seed), expected)

    def disturbed(self, program, arguments, directory, seed):
        """Runs it with checkpoints, kills, stops and other numbers of workers; returns the final
        digest."""
        chance = random.Random(seed)
        run = Run(program, arguments, directory)
        for count in (2, 3, 1):
            run.start(count)
            begin, before = run.step(), run.checkpoints()
            run.wait_until(lambda: run.step() >= begin + chance.randint(1, 4))
            victim = chance.choice(run.processes)
            if count == 3:
                victim.send_signal(signal.SIGTERM)
                ends = run.finish()
                self.assertTrue(all(status in (0, STOPPED) for status, _, _ in ends), ends)
            else:
                victim.send_signal(signal.SIGUSR1)
                run.wait_until(lambda: run.checkpoints() - before)
                run.wait_until(lambda: run.step() >= begin + chance.randint(6, 9))
                victim.kill()
                run.finish()
        run.start(4)
        ends = run.finish()
        self.assertTrue(all(status == 0 for status, _, _ in ends), ends)
        return digest([out for _, out, _ in ends])

    def test_digits(self):
        self.expect_one_digest("digits.py", ["--epochs", 16], [(3, "mpi")])

    def test_digits_tells_of_every_epoch(self):
        (said,) = workers.run(EXAMPLES / "digits.py", ["--epochs", 3], workers=1)
        self.assertEqual(re.findall(r"^epoch (\d+): loss \d\.\d{4}$", said, re.M), ["1", "2", "3"])

    def test_shakespeare(self):
        if not TEXT.exists():
            self.skipTest(f"{TEXT} is absent")
        self.expect_one_digest("shakespeare.py", [TEXT, "--steps", 24], [(2, "mpi")])

    def test_ranking(self):
        with tempfile.TemporaryDirectory() as directory:
            data = f"{directory}/data"
            subprocess.run([os.environ["RENZAN"], "data", "synth", "--format", "dataset", "--seed",
                            "7", "--rows", "20000", "--output", data], check=True,
                           stdout=subprocess.DEVNULL)
            self.expect_one_digest("ranking.py", [data], [(2, "mpi")])

    def test_examples_are_short(self):
        for example in EXAMPLES.glob("*.py"):
            self.assertLess(len(example.read_text().splitlines()), 80, example)


if __name__ == "__main__":
    unittest.main(argv=[a for a in sys.argv if a != "--every-placement"])
