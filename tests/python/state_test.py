"""renzan.torch.State: the same bits after kills, stops and resizes; what is saved; what is refused."""

import collections
import contextlib
import io
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import unittest
from unittest import mock

import numpy as np

import workers

try:
    import torch
except ImportError:
    raise SystemExit(77) from None

import renzan
import renzan.torch
from renzan.checkpoint import list_checkpoints
from renzan.torch.tree import flatten, restore, unflatten

WORKER = pathlib.Path(__file__).parent / "state_worker.py"
STEPS = 16


class StateTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = directory.name + "/checkpoints"

    def train(self, *options, count=1, steps=STEPS):
        """Trains and returns [(exit status, stdout, stderr)] by rank."""
        return workers.finish(workers.start(WORKER, [self.dir, steps, *options], count))

    def reference(self):
        ((status, out, err),) = self.train("every=1000")
        self.assertEqual(status, 0, err)
        shutil.rmtree(self.dir)
        return out.splitlines()[-1]

    def test_kills_and_stops_on_any_number_of_workers(self):
        end = self.reference()
        for seed in range(2):
            with self.subTest(seed=seed):
                shutil.rmtree(self.dir, ignore_errors=True)
                chance, done, log = random.Random(seed), 0, []
                for attempt in range(40):
                    count = chance.choice([1, 2, 3, 4])
                    at = done + chance.randrange(2, 7)
                    what = chance.choice(["kill_at", "stop_at"])
                    ends = self.train(f"{what}={at}", f"kill_rank={chance.randrange(count)}",
                                      count=count)
                    log.append((count, what, at, ends))
                    out = ends[0][1].splitlines()
                    if at >= STEPS:
                        self.assertEqual({e[0] for e in ends}, {0}, log)
                        self.assertEqual(out[-1], end, log)
                        break
                    resumed_at = int(out[0].split()[1])
                    if what == "stop_at":
                        self.assertEqual({e[0] for e in ends}, {75}, log)
                        saved = renzan.load_checkpoint(self.dir).step
                        self.assertGreater(saved, resumed_at, log)
                        done = saved
                    else:
                        self.assertIn(-signal.SIGKILL, {e[0] for e in ends}, log)
                        self.assertLessEqual({e[0] for e in ends}, {-signal.SIGKILL, 69}, log)
                        done = at
                else:
                    self.fail(log)

    def test_without_a_virtual_step(self):
        program = pathlib.Path(__file__).parent / "plain_state_worker.py"
        end = None
        for count in (3, 1):
            shutil.rmtree(self.dir, ignore_errors=True)
            first = workers.finish(workers.start(program, [self.dir, 1], count))
            self.assertEqual([e[0] for e in first], [75] * count, first)
            (out,) = set(workers.run(program, [self.dir, -1], 2))
            end = end or out
            self.assertEqual(out, end)

    def test_a_checkpoint_on_request(self):
        (status, _, err), _ = self.train("usr1_at=3", "kill_rank=1", "stop_at=6", "every=1000",
                                         count=2)
        self.assertEqual(status, 75, err)
        steps = [entry.step for entry in list_checkpoints(self.dir)]
        self.assertEqual(len(steps), 2, steps)
        self.assertIn(steps[1], (3, 4))

    def test_the_command_line_reads_what_it_saves(self):
        self.train()
        path = renzan.load_checkpoint(self.dir).path
        copy = path + "-copy"
        shutil.copytree(path, copy)
        tool = os.environ["RENZAN"]

        def run(*command):
            return subprocess.run([tool, "checkpoint", *command], text=True, capture_output=True,
                                  check=False)

        listed = run("list", self.dir)
        self.assertIn("step-00000016", listed.stdout, listed)
        self.assertEqual(run("verify", path).returncode, 0)
        same = run("diff", path, copy)
        self.assertTrue(same.stdout.startswith("same: 38 tensors"), same)
        exported = os.path.join(self.dir, "weights.safetensors")
        saved = run("export", path, "--output", exported, "--weights-only")
        self.assertEqual(saved.returncode, 0, saved)
        data = pathlib.Path(exported).read_bytes()
        self.assertIn(b"model.1.num_batches_tracked", data)
        self.assertNotIn(b"exp_avg", data)

    def test_damaged_checkpoints_are_skipped_and_moved_aside(self):
        end = self.reference()
        self.train("stop_at=9")
        newest = renzan.load_checkpoint(self.dir)
        file = pathlib.Path(newest.path) / "state.safetensors"
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
        ends = self.train(count=2)
        self.assertEqual([e[0] for e in ends], [0, 0], ends)
        self.assertIn("skipping " + newest.path, ends[0][2])
        self.assertEqual(ends[0][1].splitlines()[-1], end)
        self.assertTrue(os.path.exists(newest.path + ".corrupt"))

    def test_nothing_valid_is_an_error_on_all_workers(self):
        self.train("stop_at=3", "every=1000")
        for entry in list_checkpoints(self.dir):
            pathlib.Path(entry.path, "manifest.json").write_text("{}")
        for status, _, err in self.train(count=3):
            self.assertEqual(status, 65, err)
            self.assertIn("no checkpoint in", err)

    def test_another_run_is_refused(self):
        self.train("stop_at=3")
        for option, expected in (
                ("hidden=20", "parameter '0.weight' is float32 [16, 10] there and float32 [20, 10]"),
                ("seed=2", "seed is 1 there and 2 here"),
                ("batch=48", "batch_size is 24 there and 48 here"),
                ("optimizer=SGD", "its optimizer is AdamW, and SGD here")):
            for status, _, err in self.train(option, count=2):
                self.assertEqual(status, 78, err)
                self.assertIn("is another run's checkpoint: " + expected, err)

    def test_changed_arithmetic_is_told(self):
        self.train("stop_at=3", "batch=48")
        before = self.dir + "-before"
        shutil.move(self.dir, before)
        for option, expected in (
                ("clip_norm=1", ["clip_norm is 1.0 now and was None"]),
                ("accumulate=3", ["accumulate is 3 now and was 1"]),
                ("loss_scale=2", ["loss_scale is 2.0 now and was 1.0"]),
                ("autocast=bfloat16", ["autocast is torch.bfloat16 now and was None"]),
                ("compression=bfloat16", ["compression is bfloat16 now and was None"]),
                ("every=3", [])):
            with self.subTest(option=option):
                shutil.copytree(before, self.dir)
                ends = self.train(option, "batch=48", count=2, steps=5)
                self.assertEqual([end[0] for end in ends], [0, 0], ends)
                said = ends[0][2].splitlines()
                warnings = [line for line in said if "warning" in line]
                self.assertEqual(len(warnings), len(expected), said)
                for warning, start in zip(warnings, expected):
                    self.assertIn(f"warning: step.{start} when {self.dir}/step-", warning)
                shutil.rmtree(self.dir)

    def test_a_directory_that_cannot_be_written(self):
        pathlib.Path(self.dir).write_text("a file")
        for status, _, err in self.train(count=2):
            self.assertEqual(status, 73, err)
            self.assertIn(self.dir, err)


class InProcessTest(unittest.TestCase):
    """Tests of a State on one worker, in this process."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = directory.name + "/checkpoints"
        self.communicator = renzan.Communicator("local")
        self.addCleanup(self.communicator.close)

    def state(self, model, *arguments, **options):
        return renzan.torch.State(model, *arguments, communicator=self.communicator,
                                  **{"directory": self.dir, "every_seconds": None, **options})

    def save(self, *arguments, **options):
        state = self.state(*arguments, **options)
        try:
            state.commit()
            state.finish()
        finally:
            state.close()

    @contextlib.contextmanager
    def said(self):
        """The warnings on stderr, line by line."""
        lines = []
        with contextlib.redirect_stderr(io.StringIO()) as stream:
            yield lines
        lines += [line for line in stream.getvalue().splitlines() if "warning" in line]

    def test_a_parameter_that_would_not_be_saved_is_refused(self):
        model, head = torch.nn.Linear(2, 2), torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], 0.1, momentum=0.9)
        with self.assertRaisesRegex(renzan.ConfigError, r"a parameter \[1, 3\] that is neither"):
            self.state(model, optimizer)
        scale = torch.nn.Parameter(torch.ones(2))
        optimizer.add_param_group({"params": [scale]})
        extra = {"head": head, "more": {"scale": scale}}
        self.save(model, optimizer, extra=extra)
        before = head.weight.tolist(), scale.tolist()
        with torch.no_grad():
            head.weight.zero_()
            scale.zero_()
        self.state(model, optimizer, extra=extra).close()
        self.assertEqual((head.weight.tolist(), scale.tolist()), before)

    def test_what_cannot_be_saved_is_refused_at_once(self):
        for value, expected in ((np.uint16(3), "'extra.x.1' is a NumPy uint16"),
                                (np.zeros(2, np.uint16), "'extra.x.1' is a NumPy uint16"),
                                (np.zeros(2, ">f4"), "'extra.x.1' is a NumPy >f4"),
                                (object(), "'extra.x.1' is a object"),
                                (torch.zeros(1, dtype=torch.complex64), "complex64")):
            with self.subTest(value=value), self.assertRaisesRegex(renzan.ConfigError, expected):
                self.state(torch.nn.Linear(2, 2), extra={"x": [1, value]})
        lazy = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.LazyLinear(3))
        with self.assertRaisesRegex(renzan.ConfigError, "'1.weight' of the model has no shape yet"):
            self.state(lazy)
        lazy(torch.ones(1, 2))
        self.save(lazy, extra={"text": np.str_("text"), "number": np.float64(0.5)})

    def test_another_run_is_refused(self):
        def sampler(shuffle=True):
            return renzan.torch.Sampler(48, 8, shuffle=shuffle, communicator=self.communicator)

        def shards(number):
            return renzan.torch.ShardSampler(range, number, 8, 9, communicator=self.communicator)

        def scheduler(kind, **options):
            return getattr(torch.optim.lr_scheduler, kind)(optimizer, **options)

        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for first, second, expected in (
                ({"scheduler": scheduler("StepLR", step_size=2)},
                 {"scheduler": scheduler("ExponentialLR", gamma=0.5)},
                 "its scheduler is StepLR, and ExponentialLR here"),
                ({"sampler": sampler()}, {"sampler": sampler(shuffle=False)},
                 "shuffle is True there and False here"),
                ({"sampler": shards(8)}, {"sampler": shards(9)}, "shards is 8 there and 9 here")):
            with self.subTest(expected):
                shutil.rmtree(self.dir, ignore_errors=True)
                self.save(model, optimizer, **first)
                self.state(model, optimizer, **first).close()
                refused = None
                try:
                    self.state(model, optimizer, **second)
                except renzan.ConfigError as error:
                    refused = error  # kept, as a notebook does, and with it the State
                self.assertRegex(str(refused), expected)
                # It does not keep others out of the directory.
                self.state(model, optimizer, **first).close()

    def test_a_checkpoint_of_before_shuffle_and_shards_were_recorded(self):
        describe = renzan.torch.State._describe
        model = torch.nn.Linear(2, 2)
        for sampler in (renzan.torch.Sampler(48, 8, communicator=self.communicator),
                        renzan.torch.ShardSampler(range, 8, 8, 9, communicator=self.communicator)):
            shutil.rmtree(self.dir, ignore_errors=True)
            with mock.patch.object(renzan.torch.State, "_describe", lambda state: {
                    key: value for key, value in describe(state).items()
                    if key not in ("shuffle", "shards")}):
                self.save(model, sampler=sampler)
            state = self.state(model, sampler=sampler)
            self.assertEqual(state.step, 1)
            state.close()

    def test_other_hyperparameters_are_told(self):
        model = torch.nn.Linear(2, 2)

        def train(lr, momentum, steps=3, betas=None):
            """Trains and returns the warnings of a continued run, and its lr at the end."""
            groups = [{"params": [model.weight]}, {"params": [model.bias], "lr": 0.5}]
            optimizer = (torch.optim.SGD(groups, lr, momentum=momentum) if betas is None else
                         torch.optim.Adam(groups, lr, betas=betas))
            scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: step / 4)
            with self.said() as lines:
                state = self.state(model, optimizer, scheduler)
            for _ in range(steps):
                optimizer.step()
                scheduler.step()
                state.commit()
            state.finish()
            state.close()
            return lines, optimizer.param_groups[0]["lr"]

        self.assertEqual(train(0.1, 0.9)[0], [])
        # The scheduler has changed lr; the program has not.
        self.assertEqual(train(0.1, 0.9)[0], [])
        lr = ("renzan: warning: lr of the optimizer's group 0 is 0.01 now and was 0.1 when the run "
              "began: the checkpoint's is used")
        lines, used = train(0.01, 0.9)
        self.assertEqual(lines, [lr])
        self.assertAlmostEqual(used, 0.1 * 9 / 4)
        # The values that the run began with are still known to those that resume later.
        lines, _ = train(0.01, 0.8)
        self.assertEqual(lines, [lr] + [
            f"renzan: warning: momentum of the optimizer's group {i} is 0.8 now and was 0.9 when "
            "the run began: the checkpoint's is used" for i in range(2)])
        self.assertEqual(train(0.1, 0.9)[0], [])
        shutil.rmtree(self.dir)
        train(0.1, 0, betas=(0.9, 0.99))
        self.assertEqual(train(0.1, 0, betas=(0.9, 0.99))[0], [])
        self.assertIn("betas of the optimizer's group 1 is [0.8, 0.99] now and was [0.9, 0.99]",
                      train(0.1, 0, betas=(0.8, 0.99))[0][1])

    def test_changed_buffers_that_are_not_saved_are_told(self):
        class Remembers(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(2, 1)
                for name in ("count", "mean", "constant", "kept"):
                    self.register_buffer(name, torch.zeros(2, dtype=torch.int64)
                                         if name == "count" else torch.ones(2), persistent=False)
                self.register_buffer("saved", torch.zeros(2))

            def forward(self, x):
                self.count += 1
                self.mean += x.mean()
                self.kept += 1
                self.saved += 1
                return self.linear(x)

        model = Remembers()
        step = renzan.torch.VirtualStep(model, torch.optim.SGD(model.parameters(), 0.1), 2,
                                        communicator=self.communicator)
        state = self.state(model, step.optimizer, step=step, extra={"kept": model.kept},
                           every_steps=1)
        with self.said() as lines:
            for _ in range(3):
                step(torch.ones(4, 2), lambda m, x: m(x).mean())
                state.commit()
            state.finish()
        state.close()
        self.assertEqual(lines, [
            f"renzan: warning: buffer {name} is changed by steps and is registered with "
            "persistent=False: it is not saved, and a resumed run begins with a new one: make it "
            "persistent" for name in ("count", "mean")])

    def test_an_empty_directory_turns_saving_off(self):
        model = torch.nn.Linear(2, 2)
        with mock.patch.dict(os.environ, {"RENZAN_CHECKPOINT_DIR": self.dir}):
            self.save(model, directory="")
            self.assertFalse(os.path.exists(self.dir))
            self.save(model, directory=None)
            self.assertEqual(renzan.load_checkpoint(self.dir).step, 1)


class ContentsTest(unittest.TestCase):
    def test_trees(self):
        value = {"a": [1, 2.5, float("inf"), None, True, "x", b"\0\xff"], "t": (1, (2,)),
                 3: {"n": np.arange(3), "s": np.float32(0.1)}, "c": collections.Counter([5, 5, 7]),
                 "w": torch.ones(2, dtype=torch.bfloat16), "$odd": {}, "f": lambda: 1}
        tensors = {}
        again = unflatten(json.loads(json.dumps(flatten("x", value, tensors))), tensors.__getitem__)
        self.assertEqual(sorted(tensors), ["x.3.n", "x.3.s", "x.w"])
        self.assertEqual(again["a"], value["a"])
        self.assertEqual(again["t"], (1, (2,)))
        self.assertEqual(again[3]["n"].tolist(), [0, 1, 2])
        self.assertEqual(again[3]["s"], np.float32(0.1))
        self.assertEqual(again["c"], value["c"])
        self.assertIsInstance(again["c"], collections.Counter)
        self.assertEqual(again["$odd"], {})
        self.assertNotIn("f", again)
        with self.assertRaisesRegex(renzan.ConfigError, "'x.z' is a object"):
            flatten("x", {"z": object()}, {})
        with self.assertRaisesRegex(renzan.ConfigError, "complex64"):
            flatten("x", torch.zeros(1, dtype=torch.complex64), {})

    def test_restoring_in_place(self):
        tensor, inner = torch.zeros(2), [1]
        current = {"t": tensor, "l": inner, "n": 1}
        restore(current, {"t": torch.ones(2), "l": [3, 4], "n": 2, "new": "x"}, "extra")
        self.assertEqual(tensor.tolist(), [1, 1])
        self.assertEqual(inner, [3, 4])
        self.assertEqual((current["n"], current["new"]), (2, "x"))
        with self.assertRaisesRegex(renzan.ConfigError, "'extra.t' is float32"):
            restore(current, {"t": torch.ones(3)}, "extra")

    def test_random_state_without_a_virtual_step(self):
        def draw():
            return [torch.rand(2).tolist(), np.random.randn(), random.gauss(0, 1)]
        with tempfile.TemporaryDirectory() as directory:
            model = torch.nn.Linear(2, 2)
            state = renzan.torch.State(model, directory=directory)
            draw()
            state.commit()
            digest = state.sha256()
            state.finish()
            state.close()
            expected = draw()
            draw()
            state = renzan.torch.State(model, directory=directory)
            self.assertEqual((state.step, draw()), (1, expected))
            self.assertEqual(state.sha256(), digest)
            self.assertEqual(renzan.load_checkpoint(directory).sha256, digest)
            state.close()

    def test_every_type_and_optimizer_comes_back_exactly(self):
        for kind, options in ((torch.optim.SGD, {"momentum": 0.9}), (torch.optim.Adam, {}),
                              (torch.optim.Adagrad, {}), (torch.optim.RMSprop, {"momentum": 0.5}),
                              (torch.optim.LBFGS, {}), (torch.optim.AdamW, {"amsgrad": True})):
            with self.subTest(kind=kind.__name__), tempfile.TemporaryDirectory() as directory:
                def make():
                    torch.manual_seed(0)
                    model = torch.nn.Sequential(
                        torch.nn.Conv2d(2, 3, 3), torch.nn.Flatten(), torch.nn.Linear(12, 2))
                    if kind is not torch.optim.LBFGS:  # PyTorch's own takes no other format
                        model.to(memory_format=torch.channels_last)
                    for i, dtype in enumerate((torch.int8, torch.int16, torch.bool, torch.float16,
                                               torch.bfloat16, torch.uint8, torch.int32)):
                        model.register_buffer(f"b{i}", torch.ones(i, dtype=dtype))
                    return model, kind(model.parameters(), lr=0.1, **options)

                def steps(model, optimizer, begin, end, state):
                    for i in range(begin, end):
                        x = torch.randn(8, 2, 4, 4, generator=torch.Generator().manual_seed(i))

                        def closure():
                            optimizer.zero_grad()
                            loss = model(x).square().mean()
                            loss.backward()
                            return loss
                        optimizer.step(closure)
                        state.commit()
                    return state.sha256()

                def state_of(model, optimizer, where):
                    return renzan.torch.State(model, optimizer, directory=where, every_seconds=None)

                model, optimizer = make()
                straight = steps(model, optimizer, 0, 6,
                                 state_of(model, optimizer, directory + "/straight"))
                model, optimizer = make()
                state = state_of(model, optimizer, directory + "/a")
                steps(model, optimizer, 0, 3, state)
                state.finish()
                state.close()
                model, optimizer = make()
                state = state_of(model, optimizer, directory + "/a")
                self.assertEqual(state.step, 3)
                self.assertEqual(steps(model, optimizer, 3, 6, state), straight)
                state.finish()
                self.assertEqual(renzan.load_checkpoint(directory + "/a").sha256, straight)
                state.close()


if __name__ == "__main__":
    unittest.main()
