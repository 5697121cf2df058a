"""A program for DistributedDataParallel. docs/pytorch.md takes it to Renzan."""

import torch
import torch.distributed
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    torch.distributed.init_process_group("gloo")
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    train = TensorDataset(images, torch.tensor(digits.target))

    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(),
                          nn.Dropout(0.2), nn.Linear(576, 10))
    model = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    sampler = DistributedSampler(train)
    batch_size = 96 // torch.distributed.get_world_size()
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for images, labels in DataLoader(train, batch_size, sampler=sampler, drop_last=True):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
    if torch.distributed.get_rank() == 0:
        print(f"loss {loss.item():.4f}")
        torch.save(model.module.state_dict(), "model.pt")


main()
