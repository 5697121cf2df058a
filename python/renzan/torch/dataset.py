"""Imported datasets for a DataLoader."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, Sequence, Tuple, Union

import numpy as np
import torch
import torch.utils.data
from torch import Tensor

from renzan import data
from renzan.data import Bags
from renzan.errors import UsageError

Ids = Dict[str, Union[Tensor, "Bags[Tensor]"]]
Batch = Tuple[Tensor, Ids, Tensor]


class Dataset(torch.utils.data.Dataset[Batch]):
    """A dataset in a directory (renzan.data): (dense, ids, label) by row or by batch.

    dataset[7] is one row: dense float32 [dense features], ids {feature: int64 [] or, of a multi-hot
    feature, [its ids]}, label float32 []. dataset[[7, 3]] is a batch: dense [batch, features], ids
    {feature: int64 [batch], or Bags of a multi-hot one}, label [batch]. Bags go into an
    nn.EmbeddingBag as bag(bags.values, bags.offsets[:-1]). If the feature has weights, they are the
    per_sample_weights=bags.weights, and only batches have them: a row alone is a UsageError. Sample
    weights are not part of either: dataset.source[rows].weight has them.

    Of several labels (schema.labels), the label is the first, unless `labels` names others: with
    Dataset(source, labels=["click", "buy"]), label is [2] of a row and [batch, 2] of a batch, in this
    order; with labels="buy", it is that one. A row that lacks an optional label has NaN, to be left
    out of its loss: known = ~torch.isnan(label).

    In a DataLoader a sampler of lists of row numbers asks for whole batches:

        DataLoader(dataset, batch_size=None, sampler=renzan.torch.Sampler(dataset, 256, seed=1))

    The ordinary forms, with batch_size or batch_sampler, need collate_fn=dataset.collate if there
    are multi-hot features, and are slower without it.
    """

    def __init__(self, source: data.Dataset | str | os.PathLike[str],
                 labels: str | Sequence[str] | None = None):
        """`source`: a dataset that renzan.data.open() returned, or its directory."""
        self.source = source if isinstance(source, data.Dataset) else data.open(source)
        if self.source.schema.label is None:
            raise UsageError(f"{self.source.directory} has no labels: read its rows, for "
                             "predictions, with renzan.data.open(directory)[rows]")
        self._columns = None if labels is None else self._columns_of(labels)

    def _columns_of(self, labels: str | Sequence[str]) -> int | list[int]:
        """Where these are in Batch.labels."""
        names = [label.name for label in self.schema.labels]
        wanted = [labels] if isinstance(labels, str) else list(labels)
        for name in wanted:
            if name not in names:
                raise UsageError(f"{self.source.directory} has no label {name!r}, but "
                                 f"{', '.join(names)}")
        if not wanted:
            raise UsageError("labels=[] names no label: leave it out for the first one")
        return names.index(labels) if isinstance(labels, str) else list(map(names.index, wanted))

    @property
    def schema(self) -> data.Schema:
        """What the columns are."""
        return self.source.schema

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, rows: int | Sequence[int] | np.ndarray | Tensor) -> Batch:
        if isinstance(rows, (int, np.integer)) or (isinstance(rows, Tensor) and rows.ndim == 0):
            return _row(self._gather([int(rows)]), 0)
        return self._gather(rows)

    def __getitems__(self, rows: Sequence[int]) -> _Rows:
        """For PyTorch 2: the rows of a batch, gathered at once."""
        return _Rows(self._gather(rows))

    @staticmethod
    def collate(rows: Sequence[Batch]) -> Batch:
        """The batch of some rows."""
        if isinstance(rows, _Rows):
            return rows.batch
        dense, ids, label = zip(*rows)
        return (torch.stack(dense), {name: _join([of[name] for of in ids]) for name in ids[0]},
                torch.stack(label))

    def _gather(self, rows: Any) -> Batch:
        batch = self.source[rows]
        ids: Ids = {}
        for name, array in batch.ids.items():
            if isinstance(array, Bags):
                weights = None if array.weights is None else torch.from_numpy(array.weights)
                ids[name] = Bags(torch.from_numpy(array.values), torch.from_numpy(array.offsets),
                                 weights)
            else:
                ids[name] = torch.from_numpy(array)
        label = batch.label
        if self._columns is not None:
            labels = batch.labels
            assert labels is not None
            label = np.ascontiguousarray(labels[:, self._columns])
        assert label is not None
        return torch.from_numpy(batch.dense), ids, torch.from_numpy(label)


class _Rows:
    """The rows of a batch, one by one."""

    def __init__(self, batch: Batch):
        self.batch = batch

    def __len__(self) -> int:
        return len(self.batch[2])

    def __getitem__(self, row: int) -> Batch:
        return _row(self.batch, row)

    def __iter__(self) -> Iterator[Batch]:
        return (_row(self.batch, row) for row in range(len(self)))


def _row(batch: Batch, row: int) -> Batch:
    dense, ids, label = batch
    for name, of in ids.items():
        if isinstance(of, Bags) and of.weights is not None:
            raise UsageError(f"the ids of '{name}' have weights, which a row alone has no place "
                             "for: read batches, dataset[[7, 3]]")
    return dense[row], {name: of[row] for name, of in ids.items()}, label[row]


def _join(rows: Sequence[Any]) -> Tensor | Bags[Tensor]:
    """Joins the ids of a feature: [] per one-hot row, [any number] per multi-hot row."""
    if rows[0].ndim == 0:
        return torch.stack(list(rows))
    offsets = torch.zeros(len(rows) + 1, dtype=torch.int64)
    torch.cumsum(torch.tensor([len(row) for row in rows]), 0, out=offsets[1:])
    return Bags(torch.cat(list(rows)), offsets)
