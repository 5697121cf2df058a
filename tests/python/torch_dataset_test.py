"""renzan.torch.Dataset: one row, a batch, and every way in which a DataLoader asks for them."""

import pathlib
import sys
import tempfile
import unittest

try:
    import torch
    from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, Subset
except ImportError:
    print("skipped: no PyTorch")
    sys.exit(77)

import datasets
import renzan
from renzan.torch.dataset import Dataset


def flat(batch):
    """A batch as nested lists, for comparison."""
    dense, ids, label = batch
    return (dense.tolist(), {name: (of.values.tolist(), of.offsets.tolist())
                             if isinstance(of, renzan.data.Bags) else of.tolist()
                             for name, of in ids.items()}, label.tolist())


class TorchDatasetTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.TemporaryDirectory()
        root = pathlib.Path(cls.work.name)
        cls.clicks = Dataset(datasets.generated(root / "clicks"))
        cls.one_hot = Dataset(datasets.generated(root / "one_hot", multi_hot=0))

    @classmethod
    def tearDownClass(cls):
        cls.work.cleanup()

    def test_a_row_and_a_batch(self):
        dense, ids, label = self.clicks[7]
        self.assertEqual((dense.dtype, dense.shape), (torch.float32, (13,)))
        self.assertEqual((label.dtype, label.shape), (torch.float32, ()))
        self.assertEqual((ids["C1"].dtype, ids["C1"].shape), (torch.int64, ()))
        expected = self.clicks.source[[3, 7]]
        self.assertEqual(dense.numpy().tobytes(), expected.dense[1].tobytes())
        self.assertEqual(ids["M2"].tolist(), expected.ids["M2"][1].tolist())
        batch = self.clicks[torch.tensor([3, 7])]
        self.assertEqual(batch[0].numpy().tobytes(), expected.dense.tobytes())
        self.assertEqual(batch[1]["C3"].tolist(), expected.ids["C3"].tolist())
        self.assertEqual(batch[1]["M2"].offsets.dtype, torch.int64)
        self.assertEqual(len(self.clicks), 1000)

    def test_iteration_ends(self):
        labels = [label for _, _, label in self.clicks]
        self.assertEqual(torch.stack(labels).tolist(), self.clicks[range(1000)][2].tolist())
        for row in (1000, -1001, torch.tensor(1000)):
            with self.assertRaisesRegex(IndexError, f"no row {int(row)}: it has 1000 rows"):
                self.clicks[row]

    def test_rows_without_labels_are_refused(self):
        with tempfile.TemporaryDirectory() as root:
            directory = datasets.unlabelled(pathlib.Path(root) / "unlabelled")
            with self.assertRaisesRegex(renzan.UsageError, "has no labels"):
                Dataset(directory)

    def test_bags_go_into_an_embedding_bag(self):
        _, ids, _ = self.clicks[range(40)]
        bag = torch.nn.EmbeddingBag(2001, 4, mode="sum")
        pooled = bag(ids["M2"].values, ids["M2"].offsets[:-1])
        for row, one in enumerate(ids["M2"]):
            torch.testing.assert_close(pooled[row], bag.weight[one].sum(0))

    def test_several_labels(self):
        with tempfile.TemporaryDirectory() as root:
            directory = datasets.imported(
                pathlib.Path(root) / "labels", "click,buy,x\n1,1,0\n,0,1\n0,,2\n",
                {"click": "{role: label, optional: true}", "buy": "{role: label, optional: true}",
                 "x": "{role: dense}"})
            nan = float("nan")
            for labels, expected in ((None, [1, nan, 0]), ("buy", [1, 0, nan]),
                                     (["buy"], [[1], [0], [nan]]),
                                     (["buy", "click"], [[1, 1], [0, nan], [nan, 0]])):
                visits = Dataset(directory, labels)
                expected = torch.tensor(expected)
                for label in (visits[range(3)][2], torch.stack([row[2] for row in visits]),
                              next(iter(DataLoader(visits, batch_size=3)))[2]):
                    torch.testing.assert_close(label, expected, equal_nan=True)
            label = Dataset(directory, labels=["click", "buy"])[range(3)][2]
            known = ~torch.isnan(label)
            self.assertEqual(known.sum(0).tolist(), [2, 2])
            for wrong, message in ((["click", "cart"], "no label 'cart', but click, buy"),
                                   ("cart", "no label 'cart'"), ([], "names no label")):
                with self.assertRaisesRegex(renzan.UsageError, message):
                    Dataset(directory, labels=wrong)

    def test_weights_are_part_of_batches_only(self):
        with tempfile.TemporaryDirectory() as root:
            tags = Dataset(datasets.imported(
                pathlib.Path(root) / "tags", "y,t,w\n1,a|b,0.5|2\n0,,\n1,b,-3\n",
                {"y": "{role: label}", "t": "{role: multi_hot}",
                 "w": "{role: bag_weights, bag: t}"}))
            _, ids, _ = tags[range(3)]
            bag = torch.nn.EmbeddingBag(100_000, 4, mode="sum")
            pooled = bag(ids["t"].values, ids["t"].offsets[:-1],
                         per_sample_weights=ids["t"].weights)
            a, b = bag.weight[ids["t"].values[:2]]
            torch.testing.assert_close(pooled, torch.stack([0.5 * a + 2 * b, 0 * a, -3 * b]))
            batch, = DataLoader(tags, batch_size=3, collate_fn=tags.collate)
            self.assertEqual(batch[1]["t"].weights.tolist(), [0.5, 2, -3])
            with self.assertRaisesRegex(renzan.UsageError, "the ids of 't' have weights"):
                tags[0]

    def test_loaders(self):
        """All loaders give the same batches."""
        batches = [list(batch) for batch in BatchSampler(SequentialSampler(self.clicks), 64, False)]
        expected = [flat(self.clicks[batch]) for batch in batches]
        collate = self.clicks.collate
        for name, loader in (
                ("batches", DataLoader(self.clicks, batch_size=None, sampler=batches)),
                ("subset", DataLoader(Subset(self.clicks, range(1000)), batch_size=None,
                                      sampler=batches)),
                ("workers", DataLoader(self.clicks, batch_size=None, sampler=batches,
                                       num_workers=2)),
                ("spawned", DataLoader(self.clicks, batch_size=None, sampler=batches,
                                       num_workers=1, multiprocessing_context="spawn")),
                ("collate", DataLoader(self.clicks, batch_size=64, collate_fn=collate)),
                ("batch_sampler", DataLoader(self.clicks, batch_sampler=batches,
                                             collate_fn=collate))):
            with self.subTest(name):
                self.assertEqual([flat(batch) for batch in loader], expected)

    def test_the_default_collate(self):
        expected = [flat(self.one_hot[range(i, min(i + 64, 1000))]) for i in range(0, 1000, 64)]
        got = [flat(batch) for batch in DataLoader(self.one_hot, batch_size=64)]
        self.assertEqual(got, expected)

    def test_rows_are_gathered_at_once(self):
        """If PyTorch asks for several rows, the source is asked once."""
        class Counting(renzan.data.Dataset):
            calls = 0

            def __getitem__(self, rows):
                Counting.calls += 1
                return super().__getitem__(rows)

        dataset = Dataset(Counting(self.clicks.source.directory))
        rows = dataset.__getitems__(list(range(500)))
        batch = dataset.collate(rows)
        self.assertEqual((Counting.calls, len(rows)), (1, 500))
        self.assertEqual(flat(batch), flat(self.clicks[range(500)]))
        self.assertEqual(flat(rows[499]), flat(self.clicks[499]))


if __name__ == "__main__":
    unittest.main()
