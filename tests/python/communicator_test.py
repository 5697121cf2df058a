"""renzan.Communicator: its exchanges on any number of workers and backend, and its errors."""

import os
import pathlib
import signal
import tempfile
import unittest

import numpy as np

import renzan
import workers

HERE = pathlib.Path(__file__).parent


class CommunicatorTest(unittest.TestCase):
    def test_exchanges(self):
        for count, backend in ((1, "gloo"), (2, "gloo"), (3, "gloo"), (4, "gloo"), (3, "mpi")):
            with self.subTest(count=count, backend=backend):
                said = workers.run(HERE / "communicator_worker.py", workers=count, backend=backend)
                self.assertEqual([line.strip() for line in said], ["ok"] * count)

    def test_a_program_that_uses_mpi_itself(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            program.write(
                "import ctypes, sys\n"
                "import numpy as np\n"
                "import renzan\n"
                "mpi = ctypes.CDLL('libmpi.so.40', mode=ctypes.RTLD_GLOBAL)\n"
                "wanted, got, ended = int(sys.argv[1]), ctypes.c_int(), ctypes.c_int()\n"
                "mpi.MPI_Init_thread(None, None, wanted, ctypes.byref(got))\n"
                "try:\n"
                "    with renzan.Communicator('mpi') as comm:\n"
                "        print(comm.all_reduce(np.array([comm.rank + 1.0])))\n"
                "except renzan.Error as error:\n"
                "    print(error)\n"
                "mpi.MPI_Finalized(ctypes.byref(ended))\n"
                "assert not ended.value, 'MPI belongs to the program'\n"
                "mpi.MPI_Finalize()\n")
            program.flush()
            single, serialized = "0", "2"
            self.assertEqual(workers.run(program.name, [serialized], backend="mpi"), ["[3.]\n"] * 2)
            for said in workers.run(program.name, [single], backend="mpi"):
                self.assertIn("has no thread support (MPI_THREAD_SERIALIZED)", said)

    def failures(self, code, count=2):
        """What workers that run `code` print; `e` is the error that they get, if any."""
        with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            program.write("import numpy as np, os, signal, renzan\n"
                          "c = renzan.init(timeout=20)\ntry:\n")
            program.writelines(f"    {line}\n" for line in code.splitlines())
            program.write("except renzan.Error as e:\n"
                          "    print(e.exit_status, type(e).__name__, e, flush=True)\n    os._exit(0)\n")
            program.flush()
            return workers.finish(workers.start(program.name, workers=count))

    def test_disagreements(self):
        for code, expected in (
                ("c.all_reduce(np.zeros(3 + c.rank))", "all_reduce of 3 float64 (sum)"),
                ("c.all_reduce(np.zeros(3, [np.float32, np.int32][c.rank]))", "3 int32"),
                ("c.barrier() if c.rank else c.broadcast(np.zeros(3))", "broadcast of 24 bytes"),
                ("c.all_gather(np.zeros(2 + c.rank))", "sends 24 bytes"),
                ("from renzan.reduction import Reduction as R\nR(c, 4 + c.rank, 9)",
                 "over 5 virtual workers"),
                ("from renzan.reduction import Reduction as R\nR(c, 4, 9, name='ab'[c.rank])",
                 "under another name")):
            with self.subTest(code=code):
                said = [out for _, out, _ in self.failures(code)]
                self.assertTrue(all(s.startswith("64 UsageError") for s in said), said)
                self.assertTrue(any(expected in s for s in said), said)

    def test_a_worker_that_dies_is_named(self):
        died, survived = self.failures(
            "if c.rank == 0: os.kill(os.getpid(), signal.SIGKILL)\n"
            "c.all_reduce(np.zeros(1 << 20))")
        self.assertEqual(died[0], -signal.SIGKILL)
        self.assertTrue(survived[1].startswith("69 PeerError"), survived)
        self.assertIn("worker 0", survived[1])

    def test_bad_arguments(self):
        with renzan.Communicator("local") as comm:
            for wrong, expected in (
                    (lambda: comm.all_reduce(np.zeros(2, complex)), "complex128 cannot be combined"),
                    (lambda: comm.all_reduce(np.zeros(2), renzan.Op.BIT_OR), "integers"),
                    (lambda: comm.broadcast(np.zeros(2), 1), "worker 1"),
                    (lambda: comm.all_to_all_v([]), "0 parts")):
                with self.assertRaisesRegex(renzan.UsageError, expected):
                    wrong()
            for dtype in (object, [("n", np.int32), ("o", object)]):
                array = np.zeros(2, dtype)
                for exchange in (comm.all_reduce, comm.reduce_scatter, comm.broadcast,
                                 comm.all_gather, comm.all_gather_v, comm.all_to_all,
                                 lambda array: comm.all_to_all_v([array])):
                    with self.assertRaisesRegex(renzan.UsageError, "hold Python objects"):
                        exchange(array)
        with self.assertRaisesRegex(renzan.UsageError, "closed"):
            comm.barrier()
        for backend in ("nccl", "gloo,mpi"):
            with self.assertRaisesRegex(renzan.ConfigError, "unknown backend"):
                renzan.Communicator(backend)

    def test_the_process_stays_as_it_was(self):
        before = [signal.getsignal(s) for s in range(1, 32)]
        with renzan.Communicator("local") as comm:
            comm.barrier()
        self.assertEqual([signal.getsignal(s) for s in range(1, 32)], before)
        self.assertEqual(signal.pthread_sigmask(signal.SIG_BLOCK, []), set())


if __name__ == "__main__":
    os.chdir(HERE)
    unittest.main()
