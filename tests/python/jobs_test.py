"""The job system from Python, on a cluster of this machine."""

import contextlib
import datetime
import getpass
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import renzan

# Whatever else the machine does, a job that takes longer hangs.
LIMIT = 240


class JobsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.root)
        for name in ("RENZAN_SOCKET", "RENZAN_CLUSTER"):
            os.environ.pop(name, None)
        os.environ["RENZAN_STATE_DIR"] = str(cls.root / "state")
        config = cls.root / "cluster.yaml"
        config.write_text("pools: {local: {nodes: 2, resources: {cpu: 8, memory: 8GiB, gpu: 2}}}\n"
                          "simulated: true\n"
                          "queues: {default: {}, vision: {}}\n")
        cls.renzan("cluster", "up", config)
        cls.addClassCleanup(cls.renzan, "cluster", "down", "--stop-jobs")

    @staticmethod
    def renzan(*words):
        done = subprocess.run([os.environ["RENZAN"], *map(str, words)], text=True,
                              capture_output=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise AssertionError(f"renzan {words}: {done.returncode}\n{done.stderr}")
        return done.stdout

    def until(self, holds):
        end = time.monotonic() + LIMIT
        while not holds():
            self.assertLess(time.monotonic(), end, "timed out")
            time.sleep(0.02)

    def test_a_job_from_its_submission_to_its_end(self):
        words = ["printf", "<%s>", "[a,b]", "", "--", "é \"'"]
        id = renzan.submit(words, name="printer", queue="vision", priority=3, replicas=2, gpus=1,
                           cpus=0.5, memory="512MiB", retries=1, timeout="1h",
                           settings={"environment": {"A": "1"}, "checkpoint.on_request": False})
        self.assertIsInstance(id, int)
        job = renzan.wait(id, timeout=LIMIT)
        self.assertEqual((job.id, job.name, job.queue, job.priority, job.state, job.exit_code),
                         (id, "printer", "vision", 3, "done", 0))
        self.assertEqual((job.min_workers, job.max_workers, job.cpu, job.memory_mib, job.gpu),
                         (2, 2, 0.5, 512, 1))
        self.assertEqual((job.user, job.attempts, job.failures, job.preemptions),
                         (getpass.getuser(), 1, 0, 0))
        self.assertEqual((job.nodes, job.progress, job.has_ended), ([], None, True))
        now = datetime.datetime.now(datetime.timezone.utc)
        self.assertLessEqual(job.submitted, job.started)
        self.assertLessEqual(job.started, job.ended)
        self.assertLess(abs(now - job.ended), datetime.timedelta(seconds=LIMIT))
        self.assertEqual(self.renzan("job", "logs", id), "<[a,b]><><--><é \"'>")
        self.assertIn("it ended (done)", renzan.explain(id).why)
        self.assertEqual(renzan.job(str(id)), job)

    def test_failures(self):
        job = renzan.wait(renzan.submit(["sh", "-c", "exit 5"], retries=1,
                                        settings={"retry_backoff": "1ms"}), timeout=LIMIT)
        self.assertEqual((job.state, job.exit_code, job.attempts, job.failures),
                         ("failed", 5, 2, 2))

    def test_a_job_file(self):
        file = self.root / "job.yaml"
        file.write_text("name: from-file\ncommand: [sh, -c, 'exit 0']\n")
        job = renzan.wait(renzan.submit(file, priority=2), timeout=LIMIT)
        self.assertEqual((job.name, job.priority, job.state), ("from-file", 2, "done"))

    def test_pending_running_cancelled(self):
        first = renzan.submit(["sleep", "1000"], replicas=4, gpus=1, name="all-gpus",
                              settings={"preemptible": False})
        self.until(lambda: renzan.job(first).state == "running")
        running = renzan.job(first)
        self.assertEqual((running.workers, sorted(running.nodes)), (4, ["local-0", "local-1"]))
        self.assertIsNone(running.ended)
        self.assertIn("it has been running since", renzan.explain(first).why)

        second = renzan.submit(["true"], gpus=2, name="waits")
        self.until(lambda: renzan.job(second).reason and renzan.explain(second).queue_position)
        explanation = renzan.explain(second)
        self.assertEqual((explanation.state, explanation.queue_position), ("pending", 1))
        self.assertIn("2 GPUs", explanation.why)
        self.assertTrue(explanation.would_start_with)
        self.assertLess(explanation.estimated_start, explanation.estimated_start_p90)
        pending = renzan.job(second)
        self.assertEqual((pending.workers, pending.started, pending.has_ended), (0, None, False))
        self.assertEqual(pending.reason, "resources")
        with self.assertRaisesRegex(TimeoutError, f"job {second} has not ended within 0.2 s"):
            renzan.wait(second, timeout=0.2)

        self.assertEqual([job.name for job in renzan.jobs(state="pending")], ["waits"])
        self.assertIn(first, [job.id for job in renzan.jobs()])
        self.assertEqual(renzan.jobs(user="nobody-else", all=True), [])
        self.assertEqual(len([job for job in renzan.jobs(limit=0) if job.has_ended]), 0)

        self.assertIn(renzan.cancel(first), ("stopping", "cancelled"))
        self.assertEqual(renzan.wait(first, timeout=LIMIT).state, "cancelled")
        self.assertEqual(renzan.wait(second, timeout=LIMIT).state, "done")

    def test_progress(self):
        job = renzan.submit([sys.executable, "-c", "import os, time\n"
                             "path = os.environ['RENZAN_RUN_DIR'] + '/status.json'\n"
                             "open(path + '.new', 'w').write('{\"state\": \"running\", "
                             "\"step\": 30, \"steps\": 120, \"samples_per_second\": 8.5, "
                             "\"eta_seconds\": 12.0}')\n"
                             "os.rename(path + '.new', path)\ntime.sleep(1000)\n"])
        self.until(lambda: renzan.job(job).progress is not None)
        progress = renzan.job(job).progress
        self.assertEqual((progress.step, progress.steps, progress.samples_per_second),
                         (30, 120, 8.5))
        renzan.cancel(job)
        renzan.wait(job, timeout=LIMIT)

    def test_wait_survives_a_restart_of_the_daemon(self):
        go = self.root / "go"
        job = renzan.submit(["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done"])
        ends = []
        waiting = threading.Thread(target=lambda: ends.append(renzan.wait(job, timeout=LIMIT)))
        waiting.start()
        self.renzan("cluster", "down")
        with self.assertRaises(renzan.PeerError):
            renzan.jobs()
        self.renzan("cluster", "up", self.root / "cluster.yaml")
        go.touch()
        waiting.join()
        self.assertEqual([job.state for job in ends], ["done"])

    def test_what_kubernetes_does_not_know(self):
        """A stand-in for renzan prints what renzan prints for a Kubernetes cluster."""
        program = self.root / "renzan"
        program.write_text("""#!/bin/sh
case "$1 $2" in
"submit --json") echo '{"id": null, "name": "next", "namespace": "ann"}'; echo careful >&2 ;;
"job explain") echo '{"id": null, "state": "pending", "why": null, "note": "no rights"}' ;;
"job cancel") echo '{"job": "ann/next", "state": null}' ;;
"job show") cat <<'JSON'
{"id": null, "name": "next", "queue": "default", "user": "ann", "priority": 0, "state": "pending",
 "reason": null, "workers": 0, "min_workers": 1, "max_workers": 2, "nodes": [], "submitted": 1500,
 "resources": {"cpu": 0.1, "memory_mib": 0, "gpu": 0}, "started": null, "ended": null,
 "exit_code": null, "attempts": 0, "failures": 0, "preemptions": 0, "progress": null}
JSON
esac
""")
        program.chmod(0o755)
        with mock.patch.dict(os.environ, {"RENZAN": str(program)}):
            with contextlib.redirect_stderr(io.StringIO()) as warnings:
                self.assertEqual(renzan.submit(["true"], image="trainer:7"), "ann/next")
            self.assertEqual(warnings.getvalue(), "careful\n")
            explanation = renzan.explain("ann/next")
            self.assertEqual((explanation.why, explanation.note, explanation.would_start_with,
                              explanation.queue_position), ("", "no rights", [], None))
            job = renzan.job("ann/next")
            self.assertEqual((job.id, job.max_workers, job.reason, job.started),
                             (None, 2, None, None))
            self.assertEqual(job.submitted.timestamp(), 1.5)
            self.assertIsNone(renzan.cancel("ann/next"))

    def test_errors(self):
        for wrong, kind, status, expected in (
                (lambda: renzan.submit(["true"], gpus=5), renzan.ConfigError, 78, "never run here"),
                (lambda: renzan.submit(["true"], queue="visoin"), renzan.NoInputError, 66,
                 "did you mean 'vision'"),
                (lambda: renzan.submit(["true"], settings={"retrys": 1}), renzan.ConfigError, 78,
                 "retrys"),
                (lambda: renzan.submit([]), renzan.UsageError, 64, "command"),
                (lambda: renzan.submit("true"), renzan.UsageError, 64, "list of words"),
                (lambda: renzan.submit(self.root / "none.yaml"), renzan.NoInputError, 66,
                 "none.yaml"),
                (lambda: renzan.job(10 ** 6), renzan.NoInputError, 66, "no job 1000000"),
                (lambda: renzan.explain("-x"), renzan.Error, None, "-x"),
                (lambda: renzan.wait(10 ** 6), renzan.NoInputError, 66, "no job 1000000"),
                (lambda: renzan.cancel(10 ** 6), renzan.NoInputError, 66, "no job 1000000"),
                (lambda: renzan.jobs(state="lost"), renzan.UsageError, 64, "lost")):
            with self.subTest(expected=expected):
                with self.assertRaisesRegex(kind, expected) as caught:
                    wrong()
                if status is not None:
                    self.assertEqual(caught.exception.exit_status, status)
                self.assertFalse(str(caught.exception).startswith("error"))
        with mock.patch.dict(os.environ, {"RENZAN": "/nowhere/renzan"}):
            with self.assertRaisesRegex(renzan.NoInputError, "/nowhere/renzan cannot be started"):
                renzan.jobs()


if __name__ == "__main__":
    unittest.main()
