"""A ranking model (embeddings and a multilayer perceptron) learns clicks of an imported dataset.

    renzan data synth --format dataset --rows 200000 --output data/clicks
    renzan run --workers 4 -- python examples/pytorch/ranking.py data/clicks
"""

import argparse

import renzan
import renzan.torch
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader


class Ranker(nn.Module):
    def __init__(self, schema, width=8):
        super().__init__()
        self.features = [feature.name for feature in schema.categorical]
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(feature.num_embeddings, width, mode="sum")
            for feature in schema.categorical)
        inputs = len(schema.dense) + width * len(self.tables)
        self.layers = nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(),
                                    nn.Linear(32, 1))

    def forward(self, dense, ids):
        pooled = [dense]
        for name, table in zip(self.features, self.tables):
            if isinstance(ids[name], renzan.data.Bags):
                pooled.append(table(ids[name].values, ids[name].offsets[:-1]))
            else:
                pooled.append(table(ids[name].unsqueeze(1)))
        return self.layers(torch.cat(pooled, 1)).squeeze(1)


def loss(model, batch):
    dense, ids, label = batch
    return functional.binary_cross_entropy_with_logits(model(dense, ids), label)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=512)
    arguments = parser.parse_args()

    clicks = renzan.torch.Dataset(arguments.data)
    torch.manual_seed(1)
    model = Ranker(clicks.schema)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    sampler = renzan.torch.Sampler(clicks, arguments.batch_size, epochs=arguments.epochs)
    step = renzan.torch.VirtualStep(model, optimizer)
    state = renzan.torch.State(model, optimizer, step=step, sampler=sampler)

    for batch in DataLoader(clicks, batch_size=None, sampler=sampler):
        value = step(batch, loss)
        state.commit()
        renzan.log(state.step, {"train/loss": value})
        if state.step % 50 == 0 and renzan.world().rank == 0:
            print(f"step {state.step}: loss {value:.4f}", flush=True)
    if renzan.world().rank == 0:
        print(f"steps {state.step}  sha256 {state.sha256()}", flush=True)


renzan.torch.run(main)
