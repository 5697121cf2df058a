"""renzan.horovod.torch.elastic: commits from which restarted workers go on."""

import collections
import os
import signal
import unittest

import horovod_scripts
import workers
from horovod_scripts import HERE

try:
    import torch  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}")
    raise SystemExit(77) from None


class ElasticTest(horovod_scripts.DirectoryTest):
    """A run whose workers are killed, stopped and restarted, perhaps with other numbers."""

    def setUp(self):
        super().setUp()
        self.script = horovod_scripts.with_changed_import("horovod_elastic_script.py",
                                                          self.directory)

    def attempt(self, run, count, *dies):
        """One attempt of a run, as a launcher starts it."""
        directory = self.directory / run
        directory.mkdir(exist_ok=True)
        return workers.finish(workers.start(
            self.script, [directory, *(["die", *dies] if dies else [])], workers=count,
            environment={"RENZAN_CHECKPOINT_DIR": str(directory / "checkpoints")}))

    def processed(self, run):
        """How often each sample was processed, of what was committed: {epoch: [times of sample 0,
        ...]}."""
        times = collections.defaultdict(lambda: [0] * 60)
        for line in (self.directory / run / "processed").read_text().splitlines():
            epoch, sample = map(int, line.split())
            times[epoch][sample] += 1
        return times

    def test_undisturbed(self):
        ends = self.attempt("a", 2)
        self.assertEqual({(status, out) for status, out, _ in ends}, {(0, ends[0][1])})
        self.assertRegex(ends[0][1], "^end 4 12 ")
        self.assertEqual(self.processed("a"), {e: [1] * 60 for e in range(4)})

    def test_killed_and_restarted_with_as_many(self):
        end = self.attempt("whole", 2)[0][1]
        ends = self.attempt("killed", 2, 1, 2, 0)  # just after the commit of epoch 1's end
        self.assertEqual(ends[1][0], -signal.SIGKILL)
        self.assertEqual(ends[0][0], 69, ends[0][2])
        self.assertIn("worker 1", ends[0][2])
        ends = self.attempt("killed", 2)
        for status, out, err in ends:
            self.assertEqual((status, out), (0, "reset 2 12 2\n" + end), err)
        self.assertIn("resumed from", ends[0][2])

    def test_killed_and_restarted_with_others(self):
        self.attempt("run", 3, 0, 1, 3)
        for status, out, err in self.attempt("run", 2):
            self.assertEqual(status, 0, err)
            self.assertRegex(out, "^reset 1 6 2\nend 4 ")
        # In epoch 1, three workers had committed two batches each.
        self.assertEqual(self.processed("run"), {e: [1] * 60 for e in range(4)})

    def test_asked_to_stop(self):
        directory = self.directory / "run"
        directory.mkdir()
        text = self.script.read_text()
        self.script.write_text(text.replace("        done = []\n        for i", (
            "        done = []\n"
            "        if state.epoch == 1 and hvd.rank() == 1 and len(sys.argv) > 2:\n"
            "            os.kill(os.getpid(), signal.SIGTERM)\n"
            "            while renzan._requests.requests.stops == 0:\n"
            "                pass\n"
            "        for i"), 1).replace("import sys", "import sys\nimport renzan._requests", 1))
        for status, _, err in self.attempt("run", 2, 9, 9, 9):
            self.assertEqual(status, 75, err)
            self.assertIn("asked to stop", err)
            self.assertNotIn("Traceback", err)
        for status, out, err in self.attempt("run", 1):
            self.assertEqual(status, 0, err)
            self.assertRegex(out, "^reset 1 8 1\nend 4 ")

    def test_another_runs_commits(self):
        self.attempt("run", 1)
        self.script.write_text(self.script.read_text().replace("Linear(1, 1)",
                                                               "Linear(1, 1, bias=False)"))
        for status, _, err in self.attempt("run", 2):
            self.assertEqual(status, 78, err)
            self.assertIn("is another run's commit", err)

    def test_a_damaged_commit_is_skipped(self):
        self.attempt("run", 1)
        newest = max((self.directory / "run" / "checkpoints").glob("step-*"))
        for file in newest.glob("*.safetensors"):
            data = bytearray(file.read_bytes())
            data[-1] ^= 1
            file.write_bytes(data)
        (status, out, err), = self.attempt("run", 1)
        self.assertEqual(status, 0, err)
        self.assertIn(f"skipping {newest}", err)
        self.assertRegex(out, "^reset 3 ")

    def test_what_cannot_be_kept(self):
        self.script.write_text(self.script.read_text().replace(
            "history=[0]", "history=[0], o=object()"))
        for status, _, err in self.attempt("run", 2):
            self.assertEqual(status, 78, err)
            self.assertIn("'extra.o' is a object", err)


if __name__ == "__main__":
    os.chdir(HERE)
    unittest.main()
