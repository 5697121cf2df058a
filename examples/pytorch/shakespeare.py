"""A small transformer with dropout learns to continue a text, character by character.

    renzan run --workers 4 -- python examples/pytorch/shakespeare.py input.txt
"""

import argparse
import gzip
import pathlib

import renzan.torch
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

LENGTH = 64


class Windows(Dataset):
    """Every piece of LENGTH characters, with the characters that follow each."""

    def __init__(self, codes):
        self.codes = codes

    def __len__(self):
        return len(self.codes) - LENGTH

    def __getitem__(self, i):
        return self.codes[i:i + LENGTH], self.codes[i + 1:i + LENGTH + 1]


class Transformer(nn.Module):
    def __init__(self, characters, width=64):
        super().__init__()
        self.characters = nn.Embedding(characters, width)
        self.positions = nn.Parameter(0.02 * torch.randn(LENGTH, width))
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(width, characters)
        self.register_buffer("future", torch.full((LENGTH, LENGTH), float("-inf")).triu(1))

    def forward(self, codes):
        return self.head(self.layers(self.characters(codes) + self.positions, self.future))


def loss(model, batch):
    codes, following = batch
    return functional.cross_entropy(model(codes).flatten(0, 1), following.flatten())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=32)
    arguments = parser.parse_args()
    read = gzip.open if arguments.text.suffix == ".gz" else open
    with read(arguments.text, "rt") as file:
        text = file.read()
    codes = {character: code for code, character in enumerate(sorted(set(text)))}
    windows = Windows(torch.tensor([codes[character] for character in text]))

    torch.manual_seed(1)
    model = Transformer(len(codes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    sampler = renzan.torch.Sampler(windows, arguments.batch_size, steps=arguments.steps)
    step = renzan.torch.VirtualStep(model, optimizer, clip_norm=1.0)
    state = renzan.torch.State(model, optimizer, step=step, sampler=sampler)

    for batch in DataLoader(windows, batch_sampler=sampler):
        value = step(batch, loss)
        state.commit()
        if state.step % 50 == 0 and renzan.world().rank == 0:
            print(f"step {state.step}: loss {value:.4f}", flush=True)
    if renzan.world().rank == 0:
        print(f"steps {state.step}  sha256 {state.sha256()}", flush=True)


renzan.torch.run(main)
