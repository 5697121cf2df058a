"""A worker that makes every operation of torch.distributed's backend renzan and checks it."""

import os
import sys

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

import renzan
import renzan.torch
from renzan._native import library

under_mpirun = "OMPI_COMM_WORLD_RANK" in os.environ
if under_mpirun:
    for name in ("RANK", "WORLD_SIZE"):
        os.environ[name] = os.environ["OMPI_COMM_WORLD_" + name.replace("WORLD_", "")]
dist.init_process_group("renzan")
rank, world = dist.get_rank(), dist.get_world_size()
assert dist.get_backend() == "renzan"
carrier = library.renzan_comm_backend(dist.distributed_c10d._get_default_group()._comm)
assert carrier == (b"mpi" if under_mpirun else b"gloo" if world > 1 else b"local"), carrier
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
EVERY = [*FLOATS, *INTEGERS, torch.bool, torch.complex64]


def tensor(r, dtype, shape=(7, 11)):
    """The tensor of worker r."""
    generator = torch.Generator().manual_seed(r)
    values = torch.randn(shape, generator=generator) * 9
    if dtype is torch.bool:
        return values > 0
    if dtype.is_complex:
        return torch.complex(values, values.flip(0)).to(dtype)
    return (values if dtype.is_floating_point else values.abs()).to(dtype)


def tree(function, arrays):
    """The balanced binary tree over the ranks, taken literally."""
    if len(arrays) == 1:
        return arrays[0]
    half = 1 << (len(arrays) - 1).bit_length() - 1
    left, right = tree(function, arrays[:half]), tree(function, arrays[half:])
    if left.dtype in (torch.float16, torch.bfloat16):
        return function(left.float(), right.float()).to(left.dtype)
    return function(left, right)


def same(got, expected):
    assert got.dtype == expected.dtype and torch.equal(got, expected), (got, expected)


def fails(kind, text, function, *arguments, **keywords):
    try:
        function(*arguments, **keywords)
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"no error: {text}")


OPS = [(ReduceOp.SUM, torch.add), (ReduceOp.PRODUCT, torch.mul), (ReduceOp.MIN, torch.minimum),
       (ReduceOp.MAX, torch.maximum), (ReduceOp.BAND, torch.bitwise_and),
       (ReduceOp.BOR, torch.bitwise_or), (ReduceOp.BXOR, torch.bitwise_xor)]
TRUTH = [torch.logical_or, torch.logical_and, torch.logical_and, torch.logical_or,
         torch.logical_and, torch.logical_or, torch.logical_xor]
for dtype in EVERY:
    for number, (op, function) in enumerate(OPS):
        value = tensor(rank, dtype)
        if (number > 3 and dtype in FLOATS) or (number > 0 and dtype.is_complex):
            # PyTorch itself refuses reductions of complex numbers.
            name = "complex" if dtype.is_complex else str(dtype)[len("torch."):]
            fails((RuntimeError, ValueError), name, dist.all_reduce, value, op)
            continue
        function = TRUTH[number] if dtype is torch.bool else function
        expected = tree(function, [tensor(r, dtype) for r in range(world)])
        dist.all_reduce(value, op)
        same(value, expected)
        part = torch.empty(11, dtype=dtype)
        rows = torch.stack([tensor(r, dtype, (11,)) for r in range(world)]) if world > 1 else (
            tensor(0, dtype, (1, 11)))
        whole = rows.roll(rank, 0)
        dist.reduce_scatter(part, list(whole), op)
        same(part, tree(function, [rows.roll(r, 0)[rank] for r in range(world)]))
        root = number % world
        value = tensor(rank, dtype)
        dist.reduce(value, root, op)
        same(value, expected if rank == root else tensor(rank, dtype))

for dtype in (torch.float32, torch.bfloat16, torch.complex64):
    mean = tensor(rank, dtype)
    dist.all_reduce(mean, ReduceOp.AVG)
    total = tree(torch.add, [tensor(r, dtype) for r in range(world)])
    same(mean, torch.view_as_complex(torch.view_as_real(total) / world) if dtype.is_complex
         else total / world)
fails(renzan.UsageError, "AVG of torch.int32", dist.all_reduce, tensor(0, torch.int32),
      ReduceOp.AVG)

# Larger than the segments of a reduction, whose boundaries may be anywhere.
large = tensor(rank, torch.float32, (1300, 1001))
dist.all_reduce(large)
same(large, tree(torch.add, [tensor(r, torch.float32, (1300, 1001)) for r in range(world)]))

# Any strides; and several tensors at once.
across = tensor(rank, torch.float32).t()
dist.all_reduce(across)
same(across.t(), tree(torch.add, [tensor(r, torch.float32) for r in range(world)]))
both = [tensor(rank, torch.float64), tensor(rank, torch.float64, (5,))]
dist.all_reduce_coalesced(both)
same(both[1], tree(torch.add, [tensor(r, torch.float64, (5,)) for r in range(world)]))

for dtype in EVERY:
    all_of_them = [tensor(r, dtype) for r in range(world)]
    last = world - 1
    value = tensor(rank, dtype)
    dist.broadcast(value, last)
    same(value, all_of_them[last])

    places = [torch.empty(11, 7, dtype=dtype).t() for _ in range(world)]
    dist.all_gather(places, tensor(rank, dtype))
    for got, expected in zip(places, all_of_them):
        same(got, expected)
    group = dist.distributed_c10d._get_default_group()
    for gather in {getattr(dist, "all_gather_into_tensor", dist._all_gather_base)}:
        flat = torch.empty(world * 7, 11, dtype=dtype)
        gather(flat, tensor(rank, dtype))
        same(flat, torch.cat(all_of_them))
    places = [[torch.empty(7, 11, dtype=dtype)] for _ in range(world)]
    group.allgather_coalesced(places, [tensor(rank, dtype)]).wait()
    same(places[last][0], all_of_them[last])

    places = [torch.empty(7, 11, dtype=dtype) for _ in range(world)] if rank == last else None
    dist.gather(tensor(rank, dtype), places, last)
    for got, expected in zip(places or [], all_of_them):
        same(got, expected)
    value = torch.empty(7, 11, dtype=dtype)
    dist.scatter(value, all_of_them if rank == last else None, last)
    same(value, all_of_them[rank])

    sent = [tensor(world * rank + p, dtype, (p + 1, 2)) for p in range(world)]
    places = [torch.empty(rank + 1, 2, dtype=dtype) for _ in range(world)]
    expected = [tensor(world * p + rank, dtype, (rank + 1, 2)) for p in range(world)]
    dist.all_to_all(places, sent)
    same(torch.cat(places), torch.cat(expected))
    flat = torch.empty(world * (rank + 1), 2, dtype=dtype)
    dist.all_to_all_single(flat, torch.cat(sent), [rank + 1] * world,
                           [p + 1 for p in range(world)])
    same(flat, torch.cat(expected))

flat = torch.empty(4)
scatter = getattr(dist, "reduce_scatter_tensor", dist._reduce_scatter_base)
scatter(flat, torch.full((4 * world,), float(rank)))
same(flat, torch.full((4,), float(sum(range(world)))))

empty = torch.empty(0, 3)
dist.all_reduce(empty)
dist.broadcast(empty, 0)
dist.all_gather([torch.empty(0, 3) for _ in range(world)], empty)
dist.barrier()

objects = [None] * world
dist.all_gather_object(objects, {"rank": rank})
assert objects == [{"rank": r} for r in range(world)]
objects = [f"from {rank}", rank]
dist.broadcast_object_list(objects, world - 1)
assert objects == [f"from {world - 1}", world - 1]

# Operations that nobody waits for run in order, and complete their futures.
value = torch.ones(1000)
works = [dist.all_reduce(value, async_op=True) for _ in range(5)]
doubled = works[-1].get_future().then(lambda future: 2 * future.value()[0])
same(doubled.wait(), torch.full((1000,), 2.0 * world ** 5))
assert all(work.is_completed() and work.is_success() for work in works)

# Messages: both ways at once, and out of order by their tags.
if world > 1:
    right, left = (rank + 1) % world, (rank - 1) % world
    got = [torch.empty(2, 3, dtype=torch.bfloat16) for _ in range(2)]
    works = [dist.isend(tensor(rank, torch.bfloat16, (2, 3)), right, tag=1),
             dist.isend(tensor(rank + 9, torch.bfloat16, (2, 3)), right, tag=2),
             dist.irecv(got[1], left, tag=2), dist.irecv(got[0], left, tag=1)]
    for work in works:
        work.wait()
    same(got[0], tensor(left, torch.bfloat16, (2, 3)))
    same(got[1], tensor(left + 9, torch.bfloat16, (2, 3)))
    fails(renzan.UsageError, "cannot exchange messages", dist.isend, value, rank)
    fails(renzan.UsageError, "worker that is named", dist.recv, value)
    work = dist.isend(torch.zeros(3), right)
    fails(renzan.UsageError, "12 bytes were sent", dist.recv, torch.zeros(4), left)
    work.wait()

# Overlapping groups; a worker that is not in one takes no part in it.
for members in ([0], list(range(world)), list(range(0, world, 2)), list(range(1, world, 2))):
    if not members:
        continue
    group = dist.new_group(members)
    if rank in members:
        value = tensor(rank, torch.float32)
        dist.all_reduce(value, group=group)
        same(value, tree(torch.add, [tensor(r, torch.float32) for r in members]))
        dist.destroy_process_group(group)

fails(renzan.UsageError, "is on meta", dist.all_reduce, torch.empty(2, device="meta"))
fails(renzan.UsageError, "sparse=False", dist.all_reduce, torch.eye(2).to_sparse())
if world > 1:
    fails(renzan.UsageError, "all_reduce of", dist.all_reduce, torch.zeros(2 + rank))
    dist.barrier()
dist.destroy_process_group()
print("ok")
sys.stdout.flush()
