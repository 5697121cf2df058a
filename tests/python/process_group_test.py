"""torch.distributed's backend renzan: every operation, and DistributedDataParallel as it is."""

import importlib.util
import pathlib
import signal
import unittest

import workers

HERE = pathlib.Path(__file__).parent
ENVIRONMENT = {"OMP_NUM_THREADS": "1"}


@unittest.skipIf(importlib.util.find_spec("torch") is None,
                 "PyTorch is not installed (Debian: python3-torch)")
class ProcessGroupTest(unittest.TestCase):
    def test_operations(self):
        for count, backend in ((1, "gloo"), (2, "gloo"), (3, "gloo"), (4, "gloo"), (2, "mpi")):
            with self.subTest(count=count, backend=backend):
                place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(workers.free_port())}
                said = workers.run(HERE / "process_group_worker.py", workers=count,
                                   backend=backend, environment={**place, **ENVIRONMENT})
                self.assertEqual([line.strip() for line in said], ["ok"] * count)

    def train(self, tasks, count, backend="gloo"):
        """For each task, (digest, norm) of the parameters, which all workers must agree on."""
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(workers.free_port())}
        said = workers.run(HERE / "ddp_worker.py", tasks, workers=count, backend=backend,
                           environment={**place, **ENVIRONMENT})
        self.assertEqual(len(set(said)), 1, said)
        return [(line.split()[0], float(line.split()[1])) for line in said[0].splitlines()]

    def test_ddp(self):
        for count in (2, 3):
            with self.subTest(count=count):
                ours = ["plain,renzan", "unused,renzan", "bf16,renzan"]
                plain, unused, bf16, plain_gloo, unused_gloo = self.train(
                    [*ours, "plain,gloo", "unused,gloo"], count)
                self.assertAlmostEqual(plain[1], plain_gloo[1], delta=1e-5 * plain[1])
                self.assertAlmostEqual(unused[1], unused_gloo[1], delta=1e-5 * unused[1])
                self.assertNotEqual(plain[0], unused[0])
                # Gloo has no bfloat16.
                self.assertNotEqual(bf16[0], plain[0])
                self.assertAlmostEqual(bf16[1], plain[1], delta=1e-2 * plain[1])
                self.assertEqual(self.train(ours, count), [plain, unused, bf16])
                if count == 2:
                    self.assertEqual(self.train(ours, count, "mpi"), [plain, unused, bf16])

    def test_a_worker_that_dies_in_backward_is_named(self):
        survived, died = workers.finish(workers.start(HERE / "ddp_worker.py", ("die,renzan",),
                                                      environment=ENVIRONMENT))
        self.assertEqual(died[0], -signal.SIGKILL)
        self.assertEqual(survived[0], 69, survived)
        self.assertRegex(survived[1], "69 PeerError: all_reduce: .*worker 1")


if __name__ == "__main__":
    unittest.main()
