"""VirtualStep: one result on any number of workers, and clear errors."""

import ast
import pathlib
import tempfile
import unittest

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import renzan
import renzan.torch
import workers

HERE = pathlib.Path(__file__).parent
PROGRAM = HERE / "virtual_step_worker.py"


class VirtualStepTest(unittest.TestCase):
    def expect_one_result(self, variants, placements):
        """Returns the result of each variant."""
        results = {}
        for count, backend in placements:
            said = {out.strip() for out in workers.run(PROGRAM, variants, count, backend)}
            self.assertEqual(len(said), 1, f"workers differ: {said}")
            results[count, backend] = said.pop()
        self.assertEqual(len(set(results.values())), 1, results)
        lines = [line.split(" ", 1) for line in set(results.values()).pop().splitlines()]
        self.assertEqual([variant for variant, _ in lines], variants)
        return [result for _, result in lines]

    def test_one_result_on_any_number_of_workers_and_backend(self):
        self.expect_one_result(["plain"], [(1, "gloo"), (2, "gloo"), (3, "gloo"), (4, "gloo"),
                                           (2, "mpi"), (3, "mpi")])

    def test_one_result_in_every_variant(self):
        # In one process: most of a worker's time PyTorch takes to start.
        results = self.expect_one_result(
            ["float64", "twelve", "six", "clip", "bfloat16", "float16", "accumulate", "buckets",
             "channels_last"], [(1, "gloo"), (3, "gloo")])
        # Each of these has an effect.
        self.assertEqual(len(set(results)), len(results))

    def test_one_virtual_worker_is_plain_pytorch(self):
        def train(virtual):
            torch.manual_seed(1)
            model = nn.Sequential(nn.Linear(5, 9), nn.BatchNorm1d(9), nn.Tanh(), nn.Linear(9, 1))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            x, y = torch.randn(60, 5), torch.randn(60, 1)
            with renzan.Communicator("local") as comm:
                step = renzan.torch.VirtualStep(model, optimizer, 1, communicator=comm)
                for i in range(6):
                    # A batch of its own, as loaders make them: PyTorch's rounding of products
                    # depends on addresses.
                    batch = x[10 * i:10 * i + 10].clone(), y[10 * i:10 * i + 10].clone()
                    if virtual:
                        loss = step(batch, lambda m, b: functional.mse_loss(m(b[0]), b[1]))
                    else:
                        optimizer.zero_grad()
                        loss = functional.mse_loss(model(batch[0]), batch[1])
                        loss.backward()
                        optimizer.step()
            return float(loss), model.state_dict()

        (loss, state), (plain_loss, plain) = train(True), train(False)
        self.assertEqual(loss, plain_loss)
        for name, value in plain.items():
            self.assertTrue(torch.equal(state[name], value), name)

    def test_micro_batches_do_not_tell_where_they_were(self):
        # The rounding of matrix products depends on addresses and strides.
        def loss(model, micro):
            *tensors, array = micro
            self.assertTrue(array.flags.c_contiguous)
            for tensor in (*tensors, torch.from_numpy(array)):
                self.assertEqual(tensor.data_ptr() % 64, 0)
                self.assertTrue(tensor.is_contiguous()
                                or tensor.is_contiguous(memory_format=torch.channels_last))
            seen.append([tensor.clone() for tensor in (*tensors, torch.from_numpy(array))])
            return model(micro[0]).mean()

        rows, columns = torch.randn(24, 5), torch.randn(5, 24).t()
        images = torch.randn(24, 3, 4, 4).to(memory_format=torch.channels_last)
        array = np.arange(24 * 3, dtype=np.float32).reshape(3, 24).T
        for virtual_workers in (1, 8):
            seen, model = [], nn.Linear(5, 1)
            with renzan.Communicator("local") as comm:
                step = renzan.torch.VirtualStep(model, torch.optim.SGD(model.parameters(), 0.1),
                                                virtual_workers, communicator=comm)
                step((rows, columns, images, array), loss)
            for whole, parts in zip((rows, columns, images, torch.tensor(array)), zip(*seen)):
                self.assertTrue(torch.equal(torch.cat(parts), whole))
        self.assertTrue(all(micro[2].is_contiguous(memory_format=torch.channels_last)
                            for micro in seen))

    def test_a_step_after_the_communicator_is_an_error(self):
        comm = renzan.Communicator("local")
        model = nn.Linear(2, 1)
        step = renzan.torch.VirtualStep(model, torch.optim.SGD(model.parameters(), 0.1), 1,
                                        communicator=comm)
        step(torch.ones(2, 2), lambda m, x: m(x).mean())
        comm.close()
        with self.assertRaisesRegex(renzan.UsageError, "closed"):
            step(torch.ones(2, 2), lambda m, x: m(x).mean())
        del step  # must not touch what the communicator has freed

    def failure(self, code, count=1):
        """What workers print that run `code` with `model` and `batch`, or the Error that ends
        it."""
        with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            program.write(
                "import hashlib, os, numpy as np, torch, renzan, renzan.torch\n"
                "from torch import nn\nfrom torch.utils.checkpoint import checkpoint\n"
                "torch.set_num_threads(1)\n"
                "comm = renzan.init(timeout=30)\nrank = comm.rank\n"
                "def make(model, **options):\n"
                "    return renzan.torch.VirtualStep(\n"
                "        model, torch.optim.SGD(model.parameters(), 0.1), **options)\n"
                "def part(rows, step):\n"
                "    each = len(rows) // step.virtual_workers\n"
                "    return rows[step._own.start * each:step._own.stop * each]\n"
                "def print_digest(model):\n"
                "    print(hashlib.sha256(b''.join(v.detach().numpy().tobytes()\n"
                "          for v in model.state_dict().values())).hexdigest())\n"
                "torch.manual_seed(1)\n"
                "model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))\n"
                "batch = torch.ones(16, 4)\n"
                "loss = lambda m, x: m(x).mean()\n"
                "try:\n")
            program.writelines(f"    {line}\n" for line in code.splitlines())
            program.write("except renzan.Error as e:\n"
                          "    print(e.exit_status, e, flush=True)\n    os._exit(0)\n")
            program.flush()
            return workers.finish(workers.start(program.name, workers=count))

    def expect_one_digest(self, code, counts):
        digests = set()
        for count in counts:
            for status, out, err in self.failure(code, count):
                self.assertEqual(status, 0, err)
                self.assertRegex(out, "^[0-9a-f]{64}\n$", err)
                digests.add(out)
        self.assertEqual(len(digests), 1)

    SHARED_IN_SEGMENTS = (
        "class Shares(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.first, self.shared, self.last = nn.Linear(4, 8), nn.Linear(8, 8), "
        "nn.Linear(8, 1)\n"
        "        self.segments = 3\n"
        "    def segment(self, x): return torch.tanh(self.shared(x))\n"
        "    def forward(self, x):\n"
        "        x = self.first(x)\n"
        "        for _ in range(self.segments):\n"
        "            x = checkpoint(self.segment, x, use_reentrant=True)\n"
        "        return self.last(x)\n"
        "model = Shares()\n"
        "step = make(model, virtual_workers=6, bucket_bytes=1)\n")

    def test_reentrant_checkpoints_of_a_shared_layer(self):
        # Its gradient comes in pieces, one per segment: always, or from the second step on.
        for segments in ((3, 3, 3), (1, 3, 2)):
            with self.subTest(segments=segments):
                self.expect_one_digest(
                    self.SHARED_IN_SEGMENTS + f"for model.segments in {segments}:\n"
                    "    step(part(torch.randn(24, 4), step), loss)\n"
                    "print_digest(model)", (1, 2, 3))

    def test_a_piece_of_a_gradient_that_has_been_exchanged_is_an_error(self):
        # Each worker has one virtual worker, whose backward pass gives no warning.
        ends = self.failure(
            self.SHARED_IN_SEGMENTS.replace("virtual_workers=6", "virtual_workers=2")
            + "for model.segments in (1, 2): step(part(batch, step), loss)", 2)
        said = "".join(out for _, out, _ in ends)
        self.assertIn("64 the gradient of shared.bias comes in several pieces", said, ends)
        for status, out, _ in ends:
            self.assertEqual(status, 0, ends)
            self.assertRegex(out, "^(64 the gradient of shared.bias comes|69 .*lost worker)")

    def test_integer_buffers_are_exact(self):
        for count in (1, 2):
            for status, out, err in self.failure(
                    "class Counts(nn.Module):\n"
                    "    def __init__(self):\n"
                    "        super().__init__()\n"
                    "        self.linear = nn.Linear(4, 1)\n"
                    "        self.register_buffer('tag', torch.tensor(2177342782468422677))\n"
                    "        self.register_buffer('tags', torch.tensor([2177342782468422677, 3]))\n"
                    "        self.register_buffer('seen', torch.tensor(2**53 + 1))\n"
                    "        self.register_buffer('both', torch.tensor([2**60 + 1, 7]))\n"
                    "    def forward(self, x):\n"
                    "        self.seen += 1\n"
                    "        self.both += torch.tensor([3, -1])\n"
                    "        return self.linear(x)\n"
                    "model = Counts()\n"
                    "step = make(model, virtual_workers=4)\n"
                    "for _ in range(3): step(part(batch, step), loss)\n"
                    "print(model.tag.item(), model.tags.tolist(), model.seen.item(),\n"
                    "      model.both.tolist())", count):
                self.assertEqual(status, 0, err)
                self.assertEqual(out, f"2177342782468422677 [2177342782468422677, 3] {2**53 + 4} "
                                      f"[{2**60 + 10}, 4]\n")

    def test_texts_and_arrays_are_split_as_tensors_are(self):
        self.expect_one_digest(
            "step = make(model, virtual_workers=4)\n"
            "for _ in range(3):\n"
            "    x = torch.randn(16, 4)\n"
            "    batch = torch.utils.data.default_collate(\n"
            "        [{'x': x[i], 'name': 'n' * i, 'pair': (i, str(i))} for i in range(16)])\n"
            "    assert all(type(v) in (list, tuple) for v in (batch['name'], batch['pair'][1]))\n"
            "    batch['weight'] = np.arange(16, dtype=np.float32)\n"
            "    mine = {'x': part(batch['x'], step), 'name': part(batch['name'], step),\n"
            "            'weight': part(batch['weight'], step), 'scale': 0.5, 'kind': 'clicks',\n"
            "            'pair': [part(values, step) for values in batch['pair']]}\n"
            "    def weighted(m, x):\n"
            "        assert (x['scale'], x['kind'], len(x['name'])) == (0.5, 'clicks', 4)\n"
            "        assert [str(i) for i in x['pair'][0].tolist()] == list(x['pair'][1])\n"
            "        sizes = torch.tensor([float(len(n)) for n in x['name']])\n"
            "        assert sizes.tolist() == x['weight'].tolist()\n"
            "        return (m(x['x'])[:, 0] * sizes * torch.from_numpy(x['weight'])).mean() / 99\n"
            "    step(mine, weighted)\n"
            "print_digest(model)", (1, 2, 4))

    def test_a_step_that_failed_on_one_worker_cannot_be_left_out(self):
        code = ("step = make(model, virtual_workers=2)\n"
                "def bad(m, x):\n"
                "    if rank == comm.world_size - 1 and attempt == 1: raise KeyError('sample')\n"
                "    return m(x).mean()\n"
                "for attempt in range(3):\n"
                "    try: step(part(batch, step), bad)\n"
                "    except KeyError: print('caught', flush=True)\n"
                "print(step.step_count)")
        ((status, out, err),) = self.failure(code)
        self.assertEqual((status, out), (0, "caught\n2\n"), err)
        other, failed = self.failure(code, 2)
        self.assertEqual(failed[0], 0, failed)
        self.assertIn("caught\n64 step 1 has failed, and cannot be left out", failed[1])
        self.assertEqual(other[0], 0, other)
        self.assertTrue(other[1].startswith("69 "), other)

    def test_a_step_that_diverged_on_all_workers_can_be_left_out(self):
        for count in (1, 2):
            for status, out, err in self.failure(
                    "model = nn.Linear(4, 1)\n"
                    "step = make(model, virtual_workers=2)\n"
                    "for factor in (1, float('nan'), 1):\n"
                    "    try: step(part(batch * factor, step), loss)\n"
                    "    except renzan.DivergedError: print('diverged')\n"
                    "print(step.step_count, bool(torch.isfinite(model.weight).all()))", count):
                self.assertEqual((status, out), (0, "diverged\n2 True\n"), err)

    def test_bad_input(self):
        for count, code, expected in (
                (1, "make(model)(torch.ones(12, 4), loss)", "64 worker 0: a batch of 12 samples"),
                (1, "make(model)([batch, batch[:4]], loss)", "differ in their first dimension"),
                (1, "make(model)(3, loss)", "no tensors"),
                (1, "make(model)({'x': batch, 'name': ['a'] * 15}, loss)",
                 "differ in their first dimension, by which it is split: 15, 16"),
                (1, "make(model)({'x': batch, 'y': np.ones(8)}, loss)", "is split: 8, 16"),
                (1, "head = nn.Linear(3, 2)\nrenzan.torch.VirtualStep(model, torch.optim.SGD("
                 "[*model.parameters(), *head.parameters()], 0.1))(batch, loss)",
                 "64 the optimizer has a parameter [2, 3] that is not one of the model's"),
                (1, "renzan.torch.VirtualStep(model, print)",
                 "64 the optimizer is a builtin_function_or_method"),
                (1, "make(nn.Sequential(nn.Linear(4, 4), nn.LazyLinear(1)))(batch, loss)",
                 "64 '1.weight' of the model has no shape yet"),
                (1, "make(model, virtual_workers=2.5)", "78 virtual_workers=2.5: a whole number"),
                (1, "make(model)(batch, lambda m, x: m(x))", "it returned a tensor [2, 1]"),
                (1, "make(model)(batch, lambda m, x: None)", "it returned None"),
                (1, "make(nn.Embedding(9, 4, sparse=True))(torch.ones(8).long(), loss)",
                 "gradient of weight is sparse"),
                (1, "s = make(model, virtual_workers=4)\ns(batch, loss)\n"
                 "model[2].weight.requires_grad_(False)\ns(batch, loss)",
                 "the model has changed since the first step: it was 2.weight [1, 4] float32, it is "
                 "2.bias"),
                (1, "s = make(model, virtual_workers=4)\ns(batch, loss)\n"
                 "model[2].weight = nn.Parameter(torch.ones(1, 4))\ns(batch, loss)",
                 "parameter 2.weight is another object"),
                (1, "class Grows(nn.Module):\n"
                 "    def __init__(self):\n"
                 "        super().__init__()\n"
                 "        self.linear = nn.Linear(4, 1)\n"
                 "        self.register_buffer('seen', torch.zeros(1))\n"
                 "    def forward(self, x):\n"
                 "        self.seen = torch.cat([self.seen, torch.ones(1)])\n"
                 "        return self.linear(x)\n"
                 "make(Grows())(batch, loss)", "buffer seen has become [2] float32"),
                (1, "class Sets(nn.Module):\n"
                 "    def __init__(self):\n"
                 "        super().__init__()\n"
                 "        self.linear = nn.Linear(4, 1)\n"
                 "        self.register_buffer('tag', torch.zeros(2, dtype=torch.int64))\n"
                 "    def forward(self, x):\n"
                 "        self.tag.fill_(2**60 + 1)\n"
                 "        return self.linear(x)\n"
                 "make(Sets())(batch, loss)", "64 buffer tag has changed differently"),
                (1, "make(model, virtual_workers=4)(batch * float('nan'), loss)", "70 the loss"),
                (1, "make(model, virtual_workers=4)(batch, lambda m, x: (m(x) * 0).sqrt().mean())",
                 "70 the gradient of 2.bias"),
                (1, "make(model, virtual_workers=0)", "78 virtual_workers 0"),
                (1, "make(model, autocast=torch.int8)", "has no autocast to torch.int8"),
                (1, "make(nn.SyncBatchNorm(4))(batch, loss)", "SyncBatchNorm"),
                (2, "make(model, virtual_workers=1)", "64 2 workers cannot share 1 virtual worker:"),
                (2, "make(nn.Linear(4, 2 + rank))(batch, loss)",
                 "worker 0 has weight [2, 4] float32, worker 1 weight [3, 4] float32"),
                (2, "make(nn.Linear(4, 1).to([torch.float32, torch.float64][rank]))(batch, loss)",
                 "worker 0 has weight [1, 4] float32, worker 1 weight [1, 4] float64"),
                (2, "make(model, seed=rank)(batch, loss)", "disagree on seed"),
                (2, "torch.__version__ = f'9.{rank}'\nmake(model)(batch, loss)",
                 "disagree on torch: worker 0 has 9.0, worker 1 9.1"),
                (2, "torch.set_num_threads(1 + rank)\nmake(model)(batch, loss)",
                 "disagree on threads"),
                (2, "make(model)(torch.ones(8 + 8 * rank, 4), loss)",
                 "worker 0 has 2 samples, worker 1 has 4 samples"),
                (2, "s = make(model)\nfor i in range(4):\n    if rank == 0 or i != 2:\n"
                 "        s(batch[:8], loss)\n    comm.barrier()",
                 ("training step 2", "barrier")),
                (2, "s = make(model)\ns(batch[:8], loss)\ns.step_count += rank\ns(batch[:8], loss)",
                 ("training step 1", "training step 2"))):
            with self.subTest(code=code):
                for status, out, err in self.failure(code, count):
                    self.assertEqual(status, 0, err)
                    for said in (expected,) if isinstance(expected, str) else expected:
                        self.assertIn(said, out)

    def test_gradients_are_exchanged_while_backward_goes_on(self):
        for status, out, err in self.failure(
                "from renzan.reduction import Reduction\n"
                "events, start = [], Reduction.start\n"
                "Reduction.start = lambda self: (events.append('exchange'), start(self))\n"
                "model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(3)))\n"
                "for i, layer in enumerate(model):\n"
                "    layer.weight.register_hook(lambda _, i=i: events.append(f'gradient {i}'))\n"
                "step = make(model, virtual_workers=2, bucket_bytes=1)\n"
                "step(batch, loss)\n"
                "print(events)\n"
                "events.clear()\n"
                "step(batch, loss)\n"
                "print(events)", 2):
            self.assertEqual(status, 0, err)
            # The first step shows whether gradients come in pieces.
            first, events = map(ast.literal_eval, out.splitlines())
            self.assertNotIn("exchange", first[:first.index("gradient 0")])
            # The last layers' gradients come first: two buckets, weight and bias, each.
            self.assertEqual([e for e in events if e != "exchange"],
                             ["gradient 2", "gradient 1", "gradient 0"])
            before_last = events[:events.index("gradient 0")]
            self.assertGreaterEqual(before_last.count("exchange"), 2, events)

    def test_a_worker_that_dies_in_backward_is_named(self):
        died, survived = self.failure(
            "class Dies(torch.autograd.Function):\n"
            "    @staticmethod\n"
            "    def forward(context, x): return x * 1\n"
            "    @staticmethod\n"
            "    def backward(context, g):\n"
            "        if rank == 1: os._exit(9)\n"
            "        return g\n"
            "make(model)(batch, lambda m, x: Dies.apply(m(x)).mean())", 2)[::-1]
        self.assertEqual(died[0], 9)
        self.assertTrue(survived[1].startswith("69 "), survived)
        self.assertIn("lost worker 1", survived[1])
        self.assertIn("gradient bucket", survived[1])


class SamplerTest(unittest.TestCase):
    def test_all_workers_together_read_every_sample_once_an_epoch(self):
        dealt = []
        for world in (1, 2, 3):
            steps = []
            for step in range(2 * 10):
                of_step = []
                for rank in range(world):
                    sampler = renzan.torch.Sampler(103, 10, seed=7, epochs=2, virtual_workers=5,
                                                   communicator=Placed(rank, world))
                    of_step += sampler.indices(step)
                steps.append(of_step)
            dealt.append(steps)
        self.assertEqual(dealt[0], dealt[1])
        self.assertEqual(dealt[0], dealt[2])
        epochs = [sum(dealt[0][:10], []), sum(dealt[0][10:], [])]
        for epoch in epochs:
            self.assertEqual(len(set(epoch)), 100)
        self.assertNotEqual(*epochs)

    def test_it_begins_where_it_is_told(self):
        with renzan.Communicator("local") as comm:
            sampler = renzan.torch.Sampler(range(64), 16, virtual_workers=4, communicator=comm)
            all_steps = list(sampler)
            self.assertEqual(len(sampler), 4)
            sampler.step = 3
            self.assertEqual(list(sampler), all_steps[3:])
            shards = renzan.torch.ShardSampler(lambda i: range(100 * i, 100 * i + 5 + i), 6, 8, 20,
                                               virtual_workers=4, communicator=comm)
            read = [batch.tolist() for batch in shards]
            self.assertEqual(len(read), 20)
            shards.step = 13
            self.assertEqual([batch.tolist() for batch in shards], read[13:])

    def test_shards_do_not_depend_on_the_workers(self):
        def read(world):
            streams = []
            for rank in range(world):
                streams.append(renzan.torch.ShardSampler(
                    lambda i: range(100 * i, 100 * i + 7 + i), 9, 12, 15, seed=2, virtual_workers=4,
                    communicator=Placed(rank, world)))
            return [sum((part.tolist() for part in parts), []) for parts in zip(*streams)]

        self.assertEqual(read(1), read(3))
        self.assertEqual(read(1), read(4))

    def test_bad_arguments(self):
        with renzan.Communicator("local") as comm:
            for wrong, expected in (
                    (lambda: renzan.torch.Sampler(100, 12, communicator=comm), "multiple"),
                    (lambda: renzan.torch.Sampler(5, 8, communicator=comm), "larger than"),
                    (lambda: renzan.torch.Sampler(100, 10, virtual_workers=2.5, communicator=comm),
                     "virtual_workers=2.5: a whole number"),
                    (lambda: renzan.torch.ShardSampler(range, 3, 8, 1, communicator=comm), "3 shards"),
                    (lambda: list(renzan.torch.ShardSampler(lambda i: [], 8, 8, 1,
                                                            communicator=comm)), "empty")):
                with self.assertRaisesRegex(renzan.Error, expected):
                    wrong()


class Placed:
    """The place of a worker in a group that does not exist."""

    def __init__(self, rank, world_size):
        self.rank, self.world_size = rank, world_size


if __name__ == "__main__":
    unittest.main()
