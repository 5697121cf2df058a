"""renzan.horovod.torch: workers that disagree, die or end in the middle."""

import os
import signal
import tempfile
import unittest

import workers
from horovod_scripts import HERE

try:
    import torch  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}")
    raise SystemExit(77) from None


class ErrorsTest(unittest.TestCase):
    def failures(self, code, count=2):
        """How workers that run `code` end: (exit status, stdout, stderr)."""
        with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            program.write("import os, signal, torch, renzan\nimport renzan.horovod.torch as hvd\n"
                          "renzan.init(timeout=30)\nhvd.init()\nrank = hvd.rank()\n" + code)
            program.flush()
            return workers.finish(workers.start(program.name, workers=count))

    def test_disagreements(self):
        cases = (
            ("hvd.allreduce(torch.zeros(3 + rank), name='x')",
             "worker 0 submits allreduce 'x' of float32 [3] (Average), but worker 1 submits "
             "allreduce 'x' of float32 [4]"),
            ("hvd.allreduce(torch.zeros(3, dtype=[torch.int32, torch.float32][rank]))", "int32"),
            ("hvd.allreduce(torch.zeros(3), op=[hvd.Sum, hvd.Max][rank])", "(Max)"),
            ("hvd.allreduce(torch.zeros(3)) if rank else hvd.broadcast(torch.zeros(3), 0)",
             "broadcast of float32 [3] from worker 0, but"),
            ("hvd.broadcast(torch.zeros(3), rank)", "from worker 1"),
            ("hvd.allgather(torch.zeros(3, 2 + rank))", "allgather of float32 [n, 3]"))
        # In one process, because workers go on, and PyTorch takes long to start.
        code = "".join(f"try:\n    {case}\n    print('no error')\nexcept renzan.UsageError as e:\n"
                       "    print(e)\n" for case, _ in cases)
        for status, out, err in self.failures(code):
            self.assertEqual(status, 0, err)
            self.assertEqual(len(out.splitlines()), len(cases), out)
            for (case, expected), line in zip(cases, out.splitlines()):
                with self.subTest(code=case):
                    self.assertIn(expected, line)

    def test_a_disagreement_ends_workers(self):
        for code, expected in (
                ("a, b = [hvd.allreduce_async(torch.zeros(3), name='ab'[rank ^ i])"
                 " for i in (0, 1)]\n"
                 "hvd.synchronize(b)", "in the same order"),
                ("hvd.join() if rank else hvd.broadcast(torch.zeros(3), 0)", "worker 1 has joined"),
                ("hvd.join() if rank else hvd.allreduce(torch.zeros(3), op=hvd.Max)",
                 "only Sum and Average"),
                ("m = torch.nn.Linear(2 + rank, 1)\n"
                 "o = hvd.DistributedOptimizer(torch.optim.SGD(m.parameters(), 0.1), "
                 "m.named_parameters())\n"
                 "m(torch.ones(1, 2 + rank)).sum().backward()\no.step()",
                 "gradients of bias to weight")):
            with self.subTest(code=code):
                for status, _, err in self.failures(code):
                    self.assertEqual(status, 64, err)
                    self.assertIn(expected, err)

    def test_workers_go_on_after_a_disagreement(self):
        for status, out, err in self.failures(
                "try:\n    hvd.allreduce(torch.zeros(3 + rank))\nexcept renzan.UsageError:\n"
                "    print(hvd.allreduce(torch.ones(2), op=hvd.Sum).tolist())"):
            self.assertEqual((status, out), (0, "[2.0, 2.0]\n"), err)

    def test_a_worker_that_is_gone(self):
        kill, rest = "os.kill(os.getpid(), signal.SIGKILL)", "hvd.allreduce(torch.zeros(1 << 20))"
        for last, status, rest in ((kill, -signal.SIGKILL, rest),
                                   (kill, -signal.SIGKILL, "hvd.join()"),
                                   (kill, -signal.SIGKILL, "hvd.barrier()"),
                                   ("raise ValueError('x')", 1, rest)):
            with self.subTest(last=last, rest=rest):
                # What it has submitted but not waited for must not keep it from ending.
                other, gone = self.failures(f"if rank:\n    {last}\nelse:\n    {rest}")
                self.assertEqual(gone[0], status, gone[2])
                self.assertEqual(other[0], 69, other[2])
                self.assertIn("HorovodInternalError", other[2])
                self.assertIn("worker 1", other[2])

    def test_an_error_with_operations_under_way(self):
        for status, _, err in self.failures("hvd.barrier()\nif rank:\n"
                                            "    hvd.allreduce_async(torch.zeros(9))\n"
                                            "raise ValueError('x')"):
            self.assertEqual(status, 1, err)

    def test_before_init_and_after_shutdown(self):
        for status, out, err in self.failures(
                "hvd.shutdown()\ntry:\n    hvd.rank()\nexcept renzan.UsageError as e:\n"
                "    print(e)\nhvd.init()\nprint(hvd.size())"):
            self.assertEqual((status, out), (0, "call hvd.init() first\n2\n"), err)

    def test_interpreter_ends_with_operations_under_way(self):
        for status, _, err in self.failures("hvd.allreduce_async(torch.zeros(1 << 20))"):
            self.assertEqual((status, err), (0, ""))


if __name__ == "__main__":
    os.chdir(HERE)
    unittest.main()
