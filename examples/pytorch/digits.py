"""A convolutional network with BatchNorm and augmentation learns to read digits: the 1797 images of
8 x 8 pixels that scikit-learn ships. Prints the accuracy on the last 297 of them.

    renzan run --workers 4 -- python examples/pytorch/digits.py
"""

import argparse

import renzan.torch
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


def network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(32 * 16, 64), nn.ReLU(), nn.Linear(64, 10))


def augmented(images):
    """Moved by up to one pixel, with noise: random within a step, and yet the same on any workers."""
    shifts = torch.randint(-1, 2, (len(images), 2)).tolist()
    moved = torch.stack([torch.roll(image, shift, (1, 2)) for image, shift in zip(images, shifts)])
    return moved + 0.1 * torch.randn_like(moved)


def loss(model, batch):
    images, labels = batch
    return functional.cross_entropy(model(augmented(images)), labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=96)
    arguments = parser.parse_args()

    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    train = TensorDataset(images[:1500], labels[:1500])

    torch.manual_seed(1)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    sampler = renzan.torch.Sampler(train, arguments.batch_size, epochs=arguments.epochs)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, sampler.num_steps)
    step = renzan.torch.VirtualStep(model, optimizer)
    state = renzan.torch.State(model, optimizer, scheduler=scheduler, step=step, sampler=sampler)

    for batch in DataLoader(train, batch_sampler=sampler):
        value = step(batch, loss)
        scheduler.step()
        state.commit()
        if state.step % sampler.steps_per_epoch == 0 and renzan.world().rank == 0:
            print(f"epoch {state.step // sampler.steps_per_epoch}: loss {value:.4f}", flush=True)

    model.eval()
    with torch.no_grad():
        right = (model(images[1500:]).argmax(1) == labels[1500:]).float().mean()
    if renzan.world().rank == 0:
        print(f"accuracy {right:.4f}  sha256 {state.sha256()}", flush=True)


renzan.torch.run(main)
