"""A worker that trains with hvd.DistributedOptimizer, and compares with one process that has all
workers' gradients."""

import copy
import gc
import os

import torch

import renzan
import renzan.horovod.torch as hvd

hvd.init()
rank, size = hvd.rank(), hvd.size()
torch.set_num_threads(1)


class Network(torch.nn.Module):
    def __init__(self, sparse=False):
        super().__init__()
        self.embedding = torch.nn.Embedding(10, 6, sparse=sparse)
        self.hidden = torch.nn.Linear(6, 5)
        self.unused = torch.nn.Linear(2, 2)
        self.out = torch.nn.Linear(5, 1)
        self.frozen = torch.nn.Parameter(torch.ones(1), requires_grad=False)

    def forward(self, ids):
        return self.out(torch.tanh(self.hidden(self.embedding(ids)))) * self.frozen


def batch(r, step):
    return torch.randint(0, 10, (4,), generator=torch.Generator().manual_seed(100 * step + r))


def loss_of(model, r, step):
    return (model(batch(r, step)) ** 2).mean()


def reference(model, steps, scale, passes=1, clip=None, momentum=0.9):
    """Parameters after `steps` with the sum of all workers' gradients times `scale`."""
    model = copy.deepcopy(model)
    model.embedding.sparse = False
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=momentum)
    for step in range(steps):
        optimizer.zero_grad()
        for r in range(size):
            for p in range(passes):
                (loss_of(model, r, step * passes + p) * scale).backward()
        for p in model.unused.parameters():
            p.grad = torch.zeros_like(p)
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return [p.detach() for p in model.parameters()]


def check(label, scale=1 / size, passes=1, clip=None, sparse=False, tolerance=1e-6, momentum=0.9,
          closure=False, **options):
    torch.manual_seed(5)
    model = Network(sparse)
    expected = reference(model, 4, scale, passes, clip, momentum)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=momentum)
    if callable(options.get("groups")):
        options["groups"] = options["groups"](model)
    distributed = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(),
                                           backward_passes_per_step=passes, **options)
    assert isinstance(distributed, torch.optim.SGD)
    torch.optim.lr_scheduler.StepLR(distributed, 100)  # accepts it
    for step in range(4):
        distributed.zero_grad()
        if closure:
            def evaluate(step=step):
                loss = loss_of(model, rank, step)
                loss.backward()
                return loss
            assert float(distributed.step(evaluate)) > 0
            continue
        for p in range(passes):
            loss_of(model, rank, step * passes + p).backward()
        if clip:
            distributed.synchronize()
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            with distributed.skip_synchronize():
                distributed.step()
        else:
            distributed.step()
    for name, (mine, theirs) in zip(dict(model.named_parameters()),
                                    zip(model.parameters(), expected)):
        assert torch.allclose(mine, theirs, atol=tolerance), (label, name, mine - theirs)
        everyone = hvd.allgather(mine.detach().reshape(1, -1))
        assert len(everyone.unique(dim=0)) == 1, (label, name)


check("average")
check("sum", scale=1.0, op=hvd.Sum)
check("16 bits", compression=hvd.Compression.fp16, tolerance=2e-3)
check("predivided", gradient_predivide_factor=float(size))
check("passes", passes=3)
check("clipped", clip=0.01)
check("closure", closure=True)
check("groups by number", num_groups=3)
check("groups", groups=lambda m: [[m.embedding.weight, m.out.weight], [m.hidden.weight]])
check("sparse as dense", sparse=True, sparse_as_dense=True, clip=0.01)
check("sparse", sparse=True, momentum=0.0)
os.environ["HOROVOD_FUSION_THRESHOLD"] = "64"
check("a bucket each")
check("a bucket each, passes", passes=2)
os.environ["HOROVOD_FUSION_THRESHOLD"] = "much"
try:
    check("wrong")
except renzan.ConfigError as wrong:
    assert "HOROVOD_FUSION_THRESHOLD=much" in str(wrong)
else:
    raise AssertionError("HOROVOD_FUSION_THRESHOLD=much was accepted")
del os.environ["HOROVOD_FUSION_THRESHOLD"]

# The state of the wrapped optimizer continues, and can be saved and loaded.
model = torch.nn.Linear(2, 1)
hvd.broadcast_parameters(model.state_dict(), 0)
plain = torch.optim.Adam(model.parameters())
model(torch.ones(1, 2)).sum().backward()
plain.step()
optimizer = hvd.DistributedOptimizer(plain)
assert optimizer.state is plain.state and len(optimizer.state) == 2
optimizer.load_state_dict(optimizer.state_dict())


def refused(expected, call, kind=(renzan.Error, ValueError)):
    try:
        call()
    except kind as error:
        assert expected in str(error), error
        return
    raise AssertionError(f"no error with '{expected}'")


names = list(model.named_parameters())
refused("have no name", lambda: hvd.DistributedOptimizer(plain, names[:1]))
refused("appears twice", lambda: hvd.DistributedOptimizer(plain, names + names))
refused("model.named_parameters()", lambda: hvd.DistributedOptimizer(plain, model.parameters()))
refused("Adasum is not offered", lambda: hvd.DistributedOptimizer(plain, names, op=hvd.Adasum))
refused("op=Average", lambda: hvd.DistributedOptimizer(plain, names, op=hvd.Sum,
                                                       gradient_predivide_factor=2.0))
refused("already", lambda: hvd.DistributedOptimizer(optimizer))
optimizer.zero_grad()
model(torch.ones(1, 2)).sum().backward()
refused("zero_grad() between", optimizer.zero_grad)
refused("more than backward_passes_per_step=1", lambda: model(torch.ones(1, 2)).sum().backward())
optimizer.step()
optimizer.set_backward_passes_per_step(2)
optimizer.zero_grad()
for _ in range(2):
    model(torch.ones(1, 2)).sum().backward()
optimizer.step()

# An optimizer that is no longer used submits nothing.
del optimizer
gc.collect()
optimizer = hvd.DistributedOptimizer(plain, names)
optimizer.zero_grad()
model(torch.full((1, 2), float(rank))).sum().backward()
optimizer.step()
assert torch.allclose(model.weight.grad, torch.tensor((size - 1) / 2)), model.weight.grad
optimizer.zero_grad()

# Uneven data: worker r has r + 1 batches, and its gradient is r + 1.
weight = torch.nn.Parameter(torch.zeros(1))
optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
for _ in range(rank + 1):
    optimizer.zero_grad()
    (weight * (rank + 1)).sum().backward()
    optimizer.step()
last = hvd.join()
assert last == size - 1
hvd.broadcast_parameters([("weight", weight)], root_rank=last)
expected = -sum((r + 1) / size for step in range(size) for r in range(step, size))
assert torch.allclose(weight, torch.tensor([expected])), (weight, expected)
print("ok", flush=True)
