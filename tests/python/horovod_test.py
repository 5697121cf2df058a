"""renzan.horovod.torch: its calls, and a Horovod script with one changed import."""

import os
import unittest

import horovod_scripts
import workers
from horovod_scripts import HERE

try:
    import sklearn  # noqa: F401
    import torch  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}")
    raise SystemExit(77) from None


class HorovodTest(horovod_scripts.DirectoryTest):
    def test_calls(self):
        for count, backend in ((1, "gloo"), (2, "gloo"), (3, "gloo"), (2, "mpi")):
            with self.subTest(count=count, backend=backend):
                said = workers.run(HERE / "horovod_worker.py", workers=count, backend=backend)
                self.assertEqual([line.strip() for line in said], ["ok"] * count)

    def test_distributed_optimizer(self):
        for count in (1, 2, 3):
            with self.subTest(count=count):
                said = workers.run(HERE / "horovod_optimizer_worker.py", workers=count)
                self.assertEqual(said, ["ok\n"] * count)

    def test_a_script_runs_with_one_changed_import(self):
        script = horovod_scripts.with_changed_import("horovod_script.py", self.directory)
        for arguments in ([], ["--fp16-allreduce"]):
            first, second = (workers.run(script, arguments, workers=2) for _ in range(2))
            self.assertEqual(first, second)  # the same bits in two runs
            lines = first[0].splitlines()
            self.assertEqual(lines[-1], first[1].splitlines()[-1])  # and on all workers
            losses = [float(line.split()[1]) for line in lines[:-1]]
            self.assertEqual(len(losses), 4)
            self.assertLess(losses[-1], losses[0])
            self.assertGreater(float(lines[-2].split()[3]), 0.7)


if __name__ == "__main__":
    os.chdir(HERE)
    unittest.main()
