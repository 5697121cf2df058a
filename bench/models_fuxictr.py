#!/usr/bin/env python3
"""Trains one of FuxiCTR's models on Renzan's datasets: the peer of bench/models. Needs the Python
of `bench/setup-peers fuxictr`, whose FuxiCTR it uses as it is: its models and its BaseModel, which
trains, evaluates after each epoch, stops and takes the best epoch.

Batches are taken from memory by one index for all features: FuxiCTR's loaders take rows one by one.
As in Renzan, an epoch leaves out the rows that do not fill its last batch.

  models_fuxictr.py FUXICTR REQUEST.json      prints AUC and samples/s as JSON
"""
import importlib
import json
import pathlib
import sys
import tempfile
import time
from collections import OrderedDict

import numpy as np
import torch
import yaml

LABEL = "label"


def padded(shard, name, length):
    """A sequence's ids [rows, length], the newest last; 0 where there is none."""
    values, offsets = (np.load(shard / f"{name}.{part}.npy") for part in ("values", "offsets"))
    ids = np.zeros((len(offsets) - 1, length), dtype=np.int64)
    for row, (begin, end) in enumerate(zip(offsets, offsets[1:])):
        ids[row, length - (end - begin):] = values[begin:end]
    return torch.from_numpy(ids)


class Batches:
    def __init__(self, directory, sequences, batch, shuffle):
        directory = pathlib.Path(directory)
        self.description = yaml.safe_load((directory / "dataset.yaml").read_text())
        self.sequences = sequences
        self.names = [name for name in self.description["categorical"] if name not in sequences]
        shards = sorted(directory.glob("shard-*"))
        def load(name):
            return torch.from_numpy(np.concatenate([np.load(s / name) for s in shards]))
        self._ids, self._labels = load("ids.npy").long(), load("label.npy")
        self._histories = {
            name: torch.cat([padded(shard, name, one["max_length"]) for shard in shards])
            for name, one in sequences.items()}
        self._batch, self._shuffle = batch, shuffle

    def __len__(self):
        rows = len(self._labels)
        return rows // self._batch if self._shuffle else -(-rows // self._batch)

    def __iter__(self):
        rows = len(self._labels)
        order = torch.randperm(rows) if self._shuffle else torch.arange(rows)
        for begin in range(0, len(self) * self._batch, self._batch):
            taken = order[begin:begin + self._batch]
            ids = self._ids[taken]
            yield {**{name: ids[:, i] for i, name in enumerate(self.names)},
                   **{name: ids[taken] for name, ids in self._histories.items()},
                   LABEL: self._labels[taken]}


def feature_map(batches, folder):
    from fuxictr.features import FeatureMap
    described = FeatureMap("renzan", folder)
    described.features = OrderedDict(
        (name, {"type": "categorical", "source": "",
                "vocab_size": batches.description["features"][name]["num_embeddings"]})
        for name in batches.names)
    # Its models of sequences need a row of zeros for positions that are not used.
    for one in described.features.values():
        one |= {"padding_idx": 0} if batches.sequences else {}
    for name, sequence in batches.sequences.items():
        described.features[name] = {
            **described.features[sequence["table"]], "type": "sequence",
            "max_len": sequence["max_length"], "share_embedding": sequence["table"]}
    described.labels = [LABEL]
    described.num_fields = len(described.features)
    return described


class Clock:
    """Seconds of each epoch, without its evaluation."""

    def __init__(self, model):
        self.epochs, self._evaluation = [], 0.0
        train_epoch, eval_step = model.train_epoch, model.eval_step

        def timed_evaluation():
            begin = time.perf_counter()
            eval_step()
            self._evaluation += time.perf_counter() - begin

        def timed_epoch(data):
            begin, self._evaluation = time.perf_counter(), 0.0
            train_epoch(data)
            self.epochs.append(time.perf_counter() - begin - self._evaluation)

        model.train_epoch, model.eval_step = timed_epoch, timed_evaluation


def read_request():
    """What the command line names; FuxiCTR can be imported from then on."""
    source = pathlib.Path(sys.argv[1])
    request = json.loads(pathlib.Path(sys.argv[2]).read_text())
    sys.path[:0] = [str(source), str(source / "model_zoo" / request["folder"])]
    from fuxictr.pytorch.torch_utils import seed_everything
    torch.set_num_threads(request["threads"])
    seed_everything(request["seed"])
    return request


def make_model(request, train, folder):
    (pathlib.Path(folder) / "renzan").mkdir()
    options = request["options"]
    described = feature_map(train, folder)
    described.default_emb_dim = options.get("embedding_dim", 1)
    return getattr(importlib.import_module("src"), request["class"])(
        described, model_root=folder, **options)


def main():
    request = read_request()
    data = request["data"]
    train, valid, test = (Batches(data[part]["path"], data["sequences"], request["batch"],
                                  shuffle=part == "train") for part in ("train", "valid", "test"))
    with tempfile.TemporaryDirectory() as folder:
        model = make_model(request, train, folder)
        clock = Clock(model)
        model.fit(train, epochs=request["epochs"], validation_data=valid,
                  max_gradient_norm=request["max_gradient_norm"])
        result = model.evaluate(test)
    samples = len(train) * request["batch"]
    # The first epoch warms up.
    counted = clock.epochs[1:] or clock.epochs
    print(json.dumps({"auc": result["AUC"], "log_loss": result["logloss"],
                      "epochs": len(clock.epochs), "torch": torch.__version__,
                      "samples_per_second": samples * len(counted) / sum(counted)}))


if __name__ == "__main__":
    main()
