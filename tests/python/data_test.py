"""renzan.data: what it reads is what is on disk, byte by byte, and checked."""

import pathlib
import pickle
import shutil
import tempfile
import unittest

import numpy as np

import datasets
import renzan

class DataTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.work.name)
        cls.clicks = datasets.generated(cls.root / "clicks")

    @classmethod
    def tearDownClass(cls):
        cls.work.cleanup()

    def expect_rows(self, dataset, rows):
        """What the dataset reads for these rows must equal what NumPy alone reads from the .npy
        files."""
        got = dataset[rows]
        shards = sorted(pathlib.Path(dataset.directory).glob("shard-*"))
        label = np.concatenate([np.load(s / "label.npy") for s in shards])
        dense = np.concatenate([np.load(s / "dense.npy") for s in shards])
        one_hot = np.concatenate([np.load(s / "ids.npy") for s in shards])
        self.assertEqual(got.label.tobytes(), label[rows].tobytes())
        self.assertEqual(got.dense.tobytes(), dense[rows].tobytes())
        self.assertEqual(got.dense.shape, (len(rows), dense.shape[1]))
        column = 0
        for feature in dataset.schema.categorical:
            ids = got.ids[feature.name]
            if not feature.multi_hot:
                self.assertEqual(ids.tobytes(), one_hot[rows, column].astype(np.int64).tobytes())
                column += 1
                continue
            bags = []
            for shard in shards:
                values = np.load(shard / f"{feature.name}.values.npy")
                bags += np.split(values, np.load(shard / f"{feature.name}.offsets.npy")[1:-1])
            self.assertEqual(ids.offsets.dtype, np.int64)
            self.assertEqual(len(ids), len(rows))
            self.assertEqual([bag.tolist() for bag in ids], [bags[row].tolist() for row in rows])

    def test_gathers_across_shards(self):
        clicks = renzan.data.open(self.clicks)
        self.assertEqual((len(clicks), clicks.num_rows, len(clicks.shards)), (1000, 1000, 4))
        for rows in (list(range(1000)), [999, 0, 300, 299, 0], [5], [],
                     np.random.default_rng(3).integers(0, 1000, 500)):
            self.expect_rows(clicks, rows)
        for one, other in ((slice(10, 700, 7), range(10, 700, 7)), ([-1, -1000], [999, 0]),
                           (7, [7]), (np.array([1, 2], np.uint8), [1, 2]), (slice(-3, None),
                                                                            [997, 998, 999])):
            self.assertEqual(clicks[one].dense.tobytes(), clicks[list(other)].dense.tobytes())

    def test_arrays_outlive_the_dataset(self):
        batch = renzan.data.open(self.clicks)[range(1000)]
        copies = [batch.dense.copy(), batch.ids["M1"].values.copy()]
        for _ in range(20):
            renzan.data.open(self.clicks)[range(1000)]
        self.assertEqual([batch.dense.tobytes(), batch.ids["M1"].values.tobytes()],
                         [copy.tobytes() for copy in copies])

    def test_weights_of_bags(self):
        (self.root / "tags.csv").write_text("y,tags,relevance,other\n1,a|b,0.5|2,x\n0,,,\n1,b,-3,x\n")
        (self.root / "tags.yaml").write_text(
            "columns: {y: {role: label}, tags: {role: multi_hot}, other: {role: multi_hot},"
            " relevance: {role: bag_weights, bag: tags}}\n")
        datasets.run("data", "import", "--format", "csv", "--schema", self.root / "tags.yaml",
                     "--output", self.root / "tags", self.root / "tags.csv")
        tags = renzan.data.open(self.root / "tags")
        self.assertEqual([f.weights for f in tags.schema.categorical], ["relevance", ""])
        for batch in (tags[:], tags.shards[0]):
            self.assertEqual(batch.ids["tags"].weights.tolist(), [0.5, 2, -3])
            self.assertIsNone(batch.ids["other"].weights)
        self.assertEqual(tags[[2, 0]].ids["tags"].weights.tolist(), [-3, 0.5, 2])
        self.assertEqual(tags[:].ids["tags"][1:].weights.tolist(), [-3])

    def test_tables_and_sequences(self):
        (self.root / "clicks.csv").write_text("y,item,seen\n1,a,a|b\n0,b,\n")
        (self.root / "clicks.yaml").write_text(
            "columns: {y: {role: label}, item: {role: categorical},"
            " seen: {role: multi_hot, table: item, max_length: 5}}\n")
        datasets.run("data", "import", "--format", "csv", "--schema", self.root / "clicks.yaml",
                     "--output", self.root / "sequences", self.root / "clicks.csv")
        features = renzan.data.open(self.root / "sequences").schema.categorical
        self.assertEqual([(f.name, f.table, f.max_length) for f in features],
                         [("item", "item", 0), ("seen", "item", 5)])

    def test_schema(self):
        clicks = renzan.data.open(self.clicks)
        names = [(f.name, f.multi_hot) for f in clicks.schema.categorical]
        self.assertEqual(names, [("C1", False), ("C2", False), ("C3", False), ("M1", True),
                                 ("M2", True)])
        self.assertEqual(clicks.schema.categorical[2].num_embeddings, 20001)
        self.assertEqual((clicks.schema.label, len(clicks.schema.dense)), ("label", 13))
        self.assertGreater(clicks.best_possible["best_auc"], 0.5)
        same = datasets.generated(self.root / "same")
        other = datasets.generated(self.root / "other", rows=900)
        self.assertEqual(renzan.data.open(same).fingerprint, clicks.fingerprint)
        self.assertNotEqual(renzan.data.open(other).fingerprint, clicks.fingerprint)
        self.assertRegex(clicks.fingerprint, "^[0-9a-f]{64}$")

    def test_memory_maps(self):
        clicks = renzan.data.open(self.clicks)
        first, last = clicks.shards[0], clicks.shards[3]
        self.assertEqual([len(shard.label) for shard in clicks.shards], [300, 300, 300, 100])
        self.assertIsInstance(first.dense, np.memmap)
        self.assertFalse(first.dense.flags.writeable)
        read = clicks[slice(900, 1000)]
        self.assertEqual(last.dense.tobytes(), read.dense.tobytes())
        self.assertEqual(last.ids["C3"].tolist(), read.ids["C3"].tolist())
        self.assertEqual([bag.tolist() for bag in last.ids["M2"]],
                         [bag.tolist() for bag in read.ids["M2"]])

    def test_bags(self):
        bags = renzan.data.open(self.clicks)[range(50)].ids["M1"]
        part = bags[10:20]
        self.assertEqual([b.tolist() for b in part], [b.tolist() for b in bags][10:20])
        self.assertEqual((part.offsets[0], len(bags[20:10]), len(bags[50:])), (0, 0, 0))
        self.assertEqual(bags[-1].tolist(), bags[49].tolist())
        with self.assertRaises(IndexError):
            bags[50]
        with self.assertRaisesRegex(renzan.UsageError, "consecutive"):
            bags[::2]

    def test_names_and_wide_ids(self):
        wide = datasets.imported(
            self.root / "wide", "label,user:id,user:geo,x\n1,a,1|2,0.5\n0,b,,1.5\n1,a,3,2.5\n",
            {"label": "{role: label}", "user:id": "{role: categorical}",
             "user:geo": "{role: multi_hot}", "x": "{role: dense}"},
            "--vocabulary", "hash:3000000000")
        dataset = renzan.data.open(wide)
        user, geo = (dataset[range(3)].ids[name] for name in ("user:id", "user:geo"))
        self.assertEqual(user[0], user[2])
        self.assertNotEqual(user[0], user[1])
        self.assertEqual(np.diff(geo.offsets).tolist(), [2, 0, 1])
        self.assertEqual(dataset.shards[0].ids["user:id"].tolist(), user.tolist())
        self.assertEqual(dataset.shards[0].ids["user:geo"].values.tolist(), geo.values.tolist())
        self.assertEqual(dataset.schema.categorical[0].num_embeddings, 3000000000)
        self.assertEqual(dataset.schema.categorical[0].vocabulary, "hash:3000000000")

    def test_no_dense_features(self):
        bare = datasets.imported(self.root / "bare", "label,a\n1,x\n0,y\n",
                                 {"label": "{role: label}", "a": "{role: categorical}"})
        dataset = renzan.data.open(bare)
        self.assertEqual(dataset[[1, 0, 1]].dense.shape, (3, 0))
        self.assertEqual(dataset.shards[0].dense.shape, (2, 0))

    def test_no_labels(self):
        dataset = renzan.data.open(datasets.unlabelled(self.root / "unlabelled"))
        self.assertIsNone(dataset.schema.label)
        self.assertIsNone(dataset[:].label)
        self.assertEqual((dataset[:].labels, list(dataset.schema.labels)), (None, []))
        self.assertIsNone(dataset.shards[0].label)
        self.assertEqual(dataset[[1, 0]].ids["a"].tolist(), [1, 2])

    def test_several_labels(self):
        columns = {"click": "{role: label, optional: true}", "x": "{role: dense}",
                   "buy": "{role: label, values: no/yes, optional: true}",
                   "stars": "{role: label, values: number}"}
        csv = "click,buy,stars,x\n1,yes,4.5,0\n,no,-1,1\n0,,2,2\n"
        dataset = renzan.data.open(datasets.imported(self.root / "labels", csv, columns))
        self.assertEqual([tuple(label) for label in dataset.schema.labels],
                         [("click", "", True), ("buy", "values no/yes", True),
                          ("stars", "values number", False)])
        self.assertEqual((dataset.schema.label, dataset.schema.labels[1].name), ("click", "buy"))
        expected = np.array([[1, 1, 4.5], [np.nan, 0, -1], [0, np.nan, 2]], np.float32)
        for batch, rows in ((dataset[:], [0, 1, 2]), (dataset[[2, 0, 2]], [2, 0, 2]),
                            (dataset[[]], []), (dataset.shards[0], [0, 1, 2]),
                            (pickle.loads(pickle.dumps(dataset[:2])), [0, 1])):
            np.testing.assert_array_equal(batch.labels, expected[rows].reshape(-1, 3))
            np.testing.assert_array_equal(batch.label, expected[rows, 0])
            np.testing.assert_array_equal(batch.further_labels, expected[rows, 1:].reshape(-1, 2))
            self.assertEqual(batch.labels.dtype, np.float32)
        clicks = renzan.data.open(self.clicks)
        self.assertEqual([tuple(label) for label in clicks.schema.labels], [("label", "", False)])
        self.assertEqual(clicks[:5].labels.tolist(), [[label] for label in clicks[:5].label])
        self.assertIsNone(clicks[:5].further_labels)

    def test_weights_and_negatives(self):
        columns = {"label": "{role: label}", "w": "{role: weight}", "a": "{role: categorical}"}
        csv = "label,w,a\n" + "1,0.5,x\n0,2,y\n0,1,z\n" * 50
        dataset = renzan.data.open(datasets.imported(
            self.root / "weighted", csv, columns, "--keep-negatives", "0.5", "--shard-rows", "60"))
        self.assertEqual((dataset.schema.weight, dataset.schema.negatives_kept), ("w", 0.5))
        self.assertEqual([f.name for f in dataset.schema.categorical], ["a"])
        batch = dataset[:]
        expected = np.concatenate([np.load(shard / "weight.npy") for shard in
                                   sorted(pathlib.Path(dataset.directory).glob("shard-*"))])
        self.assertEqual(batch.weight.tobytes(), expected.tobytes())
        self.assertEqual(set(batch.weight[batch.label == 1]), {0.5})
        self.assertEqual(set(batch.weight[batch.label == 0]), {1, 2})
        self.assertTrue(50 < len(dataset) < 150, len(dataset))
        self.assertEqual(dataset.shards[0].weight.tolist(), expected[:60].tolist())
        self.assertEqual(len(dataset[[]].weight), 0)
        dense, ids, label = batch  # still three
        self.assertEqual(label.tobytes(), batch.label.tobytes())
        copy = pickle.loads(pickle.dumps(batch))
        self.assertEqual(copy.weight.tobytes(), expected.tobytes())
        plain = renzan.data.open(self.clicks)
        self.assertEqual((plain.schema.weight, plain.schema.negatives_kept), (None, 1))
        self.assertIsNone(plain[[1]].weight)
        self.assertIsNone(plain.shards[0].weight)

    def test_a_copy_in_another_process_opens_it_again(self):
        clicks = renzan.data.open(self.clicks)
        copy = pickle.loads(pickle.dumps(clicks))
        self.assertEqual(copy[[7]].dense.tobytes(), clicks[[7]].dense.tobytes())

    def damaged(self, name, source, file, offset, value):
        copy = self.root / name
        shutil.copytree(source, copy)
        with open(copy / file, "r+b") as stream:
            stream.seek(offset)
            stream.write(value)
        return copy

    def test_corrupt_files(self):
        # The label of row 30000 + 20010, in the second block of its file, becomes 2.
        large = datasets.generated(self.root / "large", rows=100_000, multi_hot=0)
        copy = self.damaged("damaged", large, "shard-00001/label.npy", 128 + 4 * 20010,
                            np.float32(2).tobytes())
        dataset = renzan.data.open(copy)
        dataset[[49, 30010, 90010]]
        with self.assertRaisesRegex(renzan.DataError, "shard-00001/label.npy: bytes .* corrupt"):
            dataset[[49, 50000]]
        with self.assertRaisesRegex(renzan.DataError, "shard-00001/label.npy: SHA-256"):
            dataset.verify()
        unchecked = renzan.data.open(copy, verify_blocks=False)
        unchecked[[50009, 50011]]
        with self.assertRaisesRegex(renzan.DataError, "row 50010 .*'label' is 2, not 0 or 1"):
            unchecked[[1, 50010]]
        with open(copy / "shard-00002/dense.npy", "r+b") as stream:
            stream.truncate(1000)
        with self.assertRaisesRegex(renzan.DataError, "shard-00002/dense.npy"):
            renzan.data.open(copy)
        copy = self.damaged("manifest", self.clicks, "dataset.yaml", 2, b"X")
        with self.assertRaisesRegex(renzan.DataError, "dataset.yaml is corrupt"):
            renzan.data.open(copy)
        renzan.data.open(self.clicks).verify()

    def test_iteration_ends(self):
        clicks = renzan.data.open(self.clicks)
        rows = list(clicks)
        self.assertEqual(len(rows), 1000)
        self.assertEqual(b"".join(row.label.tobytes() for row in rows), clicks[:].label.tobytes())

    def test_bad_arguments(self):
        clicks = renzan.data.open(self.clicks)
        for rows, expected in (([1000], "no row 1000: it has 1000 rows"),
                               ([-1001], "no row -1001: it"), (-20001, "no row -20001: it"),
                               ([5, 1 << 62], f"no row {1 << 62}"),
                               (np.uint64(2**64 - 1), f"no row {2**64 - 1}: it"),
                               ([0.5], "not by float64"), ([[1]], r"not by int64 \[1, 1\]"),
                               (np.ones(1000, bool), "not by bool")):
            with self.subTest(rows=rows), self.assertRaisesRegex(renzan.UsageError, expected):
                clicks[rows]
        for row in (1000, -1001, np.uint64(2**64 - 1)):
            with self.assertRaises(IndexError):
                clicks[row]
        self.assertEqual(len(clicks[np.array([200, 255], np.uint8)]), 3)
        with self.assertRaisesRegex(renzan.NoInputError, "nowhere"):
            renzan.data.open(self.root / "nowhere")


if __name__ == "__main__":
    unittest.main()
