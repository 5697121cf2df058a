"""Trains a small network for a few steps, once in each of some variants. Prints a line for each: its
name, the digest of the network's state and the last loss.

virtual_step_worker.py VARIANT...
"""

import hashlib
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import renzan
import renzan.torch

BATCH, STEPS = 48, 6
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
comm = renzan.init()


class Net(nn.Module):
    """Everything that makes results depend on the number of workers."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(1, 6, 3)
        self.norm = nn.BatchNorm2d(6)
        self.cumulative = nn.BatchNorm1d(24, momentum=None)
        self.dropout = nn.Dropout(0.3)
        self.hidden = nn.Linear(6 * 36, 24)
        self.shared = nn.Linear(24, 24)
        self.head = nn.Linear(24, 10)
        self.frozen = nn.Linear(24, 24).requires_grad_(False)
        self.unused = nn.Linear(3, 3)
        self.rare = nn.Parameter(torch.ones(10))
        self.register_buffer("constant", torch.full((3,), 0.1))
        self.register_buffer("average", torch.zeros(10))

    def forward(self, x):
        x = functional.relu(self.norm(self.convolution(x)))
        x = self.dropout(self.hidden(x.flatten(1)))
        x = self.cumulative(self.frozen(self.shared(functional.relu(self.shared(x)))))
        self.average = 0.9 * self.average + x.detach()[:, :10].mean(0)  # another tensor
        x = self.head(x + 0.1 * torch.randn_like(x) * self.constant[0])
        # Some virtual workers do not use it.
        return x * self.rare if np.random.rand() < 0.4 else x


def train(variant):
    torch.manual_seed(comm.rank)  # worker 0's model is everyone's
    model = Net()
    if variant == "float64":
        model = model.double()
    if variant == "channels_last":
        model = model.to(memory_format=torch.channels_last)
    groups = [{"params": [p for n, p in model.named_parameters() if n.endswith("bias")],
               "weight_decay": 0.0},
              {"params": [p for n, p in model.named_parameters() if not n.endswith("bias")]}]
    optimizer = torch.optim.AdamW(groups, lr=1e-2)
    constant = model.constant.clone()
    options = {"plain": {}, "float64": {}, "channels_last": {}, "twelve": {"virtual_workers": 12},
               "six": {"virtual_workers": 6}, "clip": {"clip_norm": 0.5},
               "bfloat16": {"compression": "bfloat16", "autocast": torch.bfloat16},
               "float16": {"compression": "float16", "loss_scale": 64.0},
               "accumulate": {"accumulate": 2}, "buckets": {"bucket_bytes": 4096}}[variant]
    step = renzan.torch.VirtualStep(model, optimizer, seed=3, **options)

    random = np.random.default_rng(0)
    inputs = torch.tensor(random.standard_normal((500, 1, 8, 8)),
                          dtype=torch.float64 if variant == "float64" else torch.float32)
    targets = torch.tensor(random.integers(0, 10, 500))
    dataset = torch.utils.data.TensorDataset(inputs, targets)
    sampler = renzan.torch.Sampler(dataset, BATCH, seed=5, virtual_workers=step.virtual_workers)
    loader = torch.utils.data.DataLoader(dataset, batch_sampler=sampler)
    for number, batch in zip(range(STEPS), loader):
        loss = step(batch, lambda m, micro: functional.cross_entropy(m(micro[0]), micro[1]))

    digest = hashlib.sha256()
    for name, value in [*model.state_dict().items(),
                        *((f"{i}.{k}", v) for i, s in optimizer.state_dict()["state"].items()
                          for k, v in s.items())]:
        digest.update(name.encode() + np.asarray(value).tobytes())
    assert model.unused.weight.grad is None
    assert torch.equal(model.constant, constant)
    assert model.average.abs().min() > 0
    assert int(model.norm.num_batches_tracked) == STEPS * options.get("accumulate", 1)
    own = len(step._own)
    assert step.gradient_arrays <= max(1, (own - 1).bit_length() + (own & (own - 1) != 0)), own
    print(f"{variant} {digest.hexdigest()} {loss}", flush=True)


for variant in sys.argv[1:]:
    train(variant)
renzan.finalize()
