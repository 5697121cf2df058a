"""renzan.torch.run: how a program ends, and what it says."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import workers

try:
    import torch  # noqa: F401
except ImportError:
    raise SystemExit(77) from None

import renzan

WORKER = pathlib.Path(__file__).parent / "state_worker.py"
LONG = 100000


class RunTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = directory.name

    def start(self, steps, *options, count=1):
        return workers.start(WORKER, [self.dir + "/checkpoints", steps, *options], count,
                             {"RENZAN_RUN_DIR": self.dir})

    def train(self, steps, *options, count=1):
        return workers.finish(self.start(steps, *options, count=count))

    def status(self):
        return json.loads(pathlib.Path(self.dir, "status.json").read_text())

    def await_training(self, started):
        self.assertEqual(started[0].stdout.readline(), "from 0\n")

    def test_a_stop_of_any_worker_by_any_signal(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signal=number):
                started = self.start(LONG, "seed=1", "every=1000", count=3)
                out = started[0].stdout.readline()
                self.assertTrue(out.startswith("from "), out)
                started[2].send_signal(number)
                ends = workers.finish(started)
                self.assertEqual([e[0] for e in ends], [75] * 3, ends)
                step = renzan.load_checkpoint(self.dir + "/checkpoints").step
                self.assertIn(f"stopped after step {step}", ends[0][2])
                self.assertEqual([e[2] for e in ends[1:]], ["", ""])
                self.assertEqual(self.status()["state"], "stopped")
                self.assertEqual(self.status()["step"], step)
                self.assertEqual(self.status()["last_checkpoint"]["step"], step)

    def test_a_stop_of_the_whole_group_with_processes_that_load_data(self):
        started = self.start(LONG, "loader=1", "every=1000")
        self.await_training(started)
        for child in children(started[0].pid):
            os.kill(child, signal.SIGTERM)
            os.kill(child, signal.SIGINT)
        started[0].send_signal(signal.SIGTERM)
        ((status, _, err),) = workers.finish(started)
        self.assertEqual(status, 75, err)
        self.assertNotIn("Traceback", err)

    def test_a_second_interrupt_kills(self):
        started = self.start(LONG, "sleep=1000")
        self.await_training(started)
        started[0].send_signal(signal.SIGINT)
        while started[0].poll() is None:
            started[0].send_signal(signal.SIGINT)
        self.assertEqual(workers.finish(started)[0][0], -signal.SIGKILL)

    def test_an_exception_on_one_worker(self):
        ends = self.train(10, "raise_at=3", "kill_rank=1", count=3)
        self.assertEqual([e[0] for e in ends], [69, 1, 69], ends)
        self.assertIn("[worker 1] ValueError: a bug", ends[1][2])
        self.assertIn("[worker 1] Traceback", ends[1][2])
        for rank in (0, 2):
            last = ends[rank][2].splitlines()[-1]
            self.assertTrue(last.startswith(f"[worker {rank}] error: "), last)
            # Another worker that ended for the same reason may be named, too.
            self.assertRegex(last, r"worker ([02], )?1\b")
        self.assertEqual(self.status()["state"], "failed")

    def test_an_error_is_one_line_and_its_status(self):
        ((status, _, err),) = self.train(10, "raise_at=3", "error=data")
        self.assertEqual((status, err), (65, "error: bad row\n"))

    def test_a_program_that_never_trains(self):
        for status, _, err in self.train(0, count=2):
            self.assertEqual(status, 64, err)
            self.assertIn("main() returned without a training step", err)
        ((status, _, err),) = self.train(3, "commit=0")
        self.assertEqual(status, 64, err)
        self.assertIn("3 steps were made, but state.commit() was never called", err)

    def test_status(self):
        ends = self.train(9, "every=4", "sleep=0.2", count=2)
        self.assertEqual([e[0] for e in ends], [0, 0], ends)
        status = self.status()
        self.assertEqual((status["state"], status["step"], status["steps"]), ("done", 9, 9))
        self.assertEqual(status["last_checkpoint"]["step"], 9)
        self.assertGreater(status["samples_per_second"], 0)
        self.assertGreater(status["working_since"], 1e9)
        # A finished run is not trained again.
        ends = self.train(9)
        self.assertEqual(ends[0][0], 0, ends)
        self.assertEqual(self.status()["state"], "done")

    def program(self, main):
        code = ("import os, sys, multiprocessing, torch, renzan, renzan.torch\n"
                f"def main():\n    {main}\nrenzan.torch.run(main)\nprint('after')\n")
        return subprocess.run([sys.executable, "-c", code], text=True, capture_output=True,
                              timeout=workers.LIMIT_SECONDS, check=False)

    def test_other_ends(self):
        for main, status, out, err in (
                ("pass", 0, "after\n", ""),
                ("sys.exit()", 0, "after\n", ""),
                ("sys.exit(5)", 5, "", ""),
                ("sys.exit('no')", 1, "", "no\n"),
                ("raise renzan.ConfigError('wrong')", 78, "", "error: wrong\n"),
                ("print(torch.get_num_threads(), torch.are_deterministic_algorithms_enabled())", 0,
                 "1 True\nafter\n", ""),
                ("p = multiprocessing.get_context('fork').Process(target=__import__('time').sleep, "
                 "args=(1000,)); p.start(); p.terminate(); p.join(); print(p.exitcode)", 0,
                 "-15\nafter\n", "")):
            with self.subTest(main=main):
                done = self.program(main)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (status, out, err))


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children")
            .read_text().split()]


if __name__ == "__main__":
    unittest.main()
