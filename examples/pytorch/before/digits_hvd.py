"""A program for Horovod. docs/pytorch.md takes it to Renzan."""

import horovod.torch as hvd
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

hvd.init()
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
train = TensorDataset(images, torch.tensor(digits.target))

torch.manual_seed(1)
model = nn.Sequential(nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(),
                      nn.Dropout(0.2), nn.Linear(576, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
sampler = DistributedSampler(train, num_replicas=hvd.size(), rank=hvd.rank())
for epoch in range(3):
    sampler.set_epoch(epoch)
    for images, labels in DataLoader(train, 96 // hvd.size(), sampler=sampler, drop_last=True):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
if hvd.rank() == 0:
    print(f"loss {loss.item():.4f}")
    torch.save(model.state_dict(), "model.pt")
