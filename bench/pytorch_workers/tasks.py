"""What bench/pytorch trains: the models of examples/pytorch at their batch sizes, and one of 25M
parameters. Batches are random numbers in memory, so that only the steps are measured."""
import dataclasses
import time
from typing import Callable

import torch
from torch import nn
from torch.nn import functional


@dataclasses.dataclass
class Task:
    batch_size: int  # of all workers together
    make_model: Callable[[], nn.Module]
    make_batch: Callable[[int], tuple]  # of so many rows
    loss: Callable[[nn.Module, tuple], torch.Tensor]
    make_optimizer: Callable


def digits_network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(32 * 16, 64), nn.ReLU(), nn.Linear(64, 10))


def augmented(images):
    """Moved by up to one pixel, with noise."""
    shifts = torch.randint(-1, 2, (len(images), 2)).tolist()
    moved = torch.stack([torch.roll(image, shift, (1, 2)) for image, shift in zip(images, shifts)])
    return moved + 0.1 * torch.randn_like(moved)


def digits_loss(model, batch):
    return functional.cross_entropy(model(augmented(batch[0])), batch[1])


class Transformer(nn.Module):
    """Of characters."""

    def __init__(self, characters=65, length=64, width=64, layers=2):
        super().__init__()
        self.characters = nn.Embedding(characters, width)
        self.positions = nn.Parameter(0.02 * torch.randn(length, width))
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(width, characters)
        self.register_buffer("future", torch.full((length, length), float("-inf")).triu(1))

    def forward(self, codes):
        return self.head(self.layers(self.characters(codes) + self.positions, self.future))


def transformer_loss(model, batch):
    codes, following = batch
    return functional.cross_entropy(model(codes).flatten(0, 1), following.flatten())


class Ranking(nn.Module):
    """Embedding tables and a multi-layer perceptron over them and the dense features."""

    # Of `renzan data synth --format dataset`.
    ROWS = (5, 7, 9, 12, 17, 23, 32, 44, 62, 87, 122, 171, 240, 336, 473, 664, 933, 1311, 1843, 2591,
            3642, 5120, 7198, 10119, 14227, 20001)

    def __init__(self, rows=ROWS, width=8, dense=13):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(n, width, mode="sum") for n in rows)
        self.layers = nn.Sequential(nn.Linear(dense + width * len(rows), 64), nn.ReLU(),
                                    nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, dense, ids):
        pooled = [table(ids[:, i:i + 1]) for i, table in enumerate(self.tables)]
        return self.layers(torch.cat([dense, *pooled], 1)).squeeze(1)


def ranking_loss(model, batch):
    dense, ids, labels = batch
    return functional.binary_cross_entropy_with_logits(model(dense, ids), labels)


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
        self.shortcut = nn.Identity() if inputs == 4 * width else nn.Sequential(
            nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        return functional.relu(self.body(x) + self.shortcut(x))


def resnet50():
    """He et al., "Deep residual learning for image recognition" (2016): 25.6M parameters."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
              nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, width, stride if block == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


class EmulatedLayer(torch.autograd.Function):
    """A layer whose time is waited for instead of computed, as if an accelerator did it, so that
    several hosts on one machine do not share its cores: SECONDS for each sample, twice that
    backward."""

    SECONDS = 0.5e-3

    @staticmethod
    def forward(context, x, weight):
        time.sleep(EmulatedLayer.SECONDS * len(x))
        context.rows = len(x)
        context.save_for_backward(weight)
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        time.sleep(2 * EmulatedLayer.SECONDS * context.rows)
        return gradient, torch.full_like(context.saved_tensors[0], 1e-6)


class Emulated(nn.Module):
    """25M parameters in 8 layers."""

    def __init__(self, width=1760, layers=8):
        super().__init__()
        self.weights = nn.ParameterList(nn.Parameter(torch.zeros(width, width))
                                        for _ in range(layers))

    def forward(self, x):
        for weight in self.weights:
            x = EmulatedLayer.apply(x, weight)
        return x


def emulated_loss(model, batch):
    return model(batch[0]).mean()


def classification_loss(model, batch):
    return functional.cross_entropy(model(batch[0]), batch[1])


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=1e-4)


def adagrad(parameters):
    return torch.optim.Adagrad(parameters, lr=0.05)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3)


def _codes(rows, length, characters):
    codes = torch.randint(0, characters, (rows, length + 1))
    return codes[:, :-1].contiguous(), codes[:, 1:].contiguous()


TASKS = {
    "digits": Task(96, digits_network,
                   lambda n: (torch.rand(n, 1, 8, 8), torch.randint(0, 10, (n,))), digits_loss, sgd),
    "transformer": Task(32, Transformer, lambda n: _codes(n, 64, 65), transformer_loss, adamw),
    "ranking": Task(512, Ranking,
                    lambda n: (torch.rand(n, 13), torch.cat([torch.randint(0, rows, (n, 1))
                                                             for rows in Ranking.ROWS], 1),
                               torch.randint(0, 2, (n,)).float()), ranking_loss, adagrad),
    "resnet50": Task(64, resnet50,
                     lambda n: (torch.randn(n, 3, 64, 64), torch.randint(0, 1000, (n,))),
                     classification_loss, sgd),
    "emulated": Task(96, Emulated, lambda n: (torch.rand(n, 1760),), emulated_loss,
                     lambda parameters: torch.optim.SGD(parameters, lr=0.01)),
    "transformer25m": Task(
        16, lambda: Transformer(characters=256, length=128, width=512, layers=8),
        lambda n: _codes(n, 128, 256), transformer_loss, adamw),
}
