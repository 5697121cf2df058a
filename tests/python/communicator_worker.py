"""A worker that makes every exchange and checks what it gets."""

import sys

import numpy as np

import renzan

comm = renzan.init()
rank, world = comm.rank, comm.world_size


def leaf(r, dtype):
    random = np.random.default_rng(r)
    return (random.standard_normal(1003) * 2.0 ** random.integers(-8, 8, 1003)).astype(dtype)


def tree(arrays):
    """The balanced binary tree over the ranks, taken literally."""
    if len(arrays) == 1:
        return arrays[0]
    half = 1 << (len(arrays) - 1).bit_length() - 1
    left, right = tree(arrays[:half]), tree(arrays[half:])
    if left.dtype == np.float16:
        return (left.astype(np.float32) + right.astype(np.float32)).astype(np.float16)
    return left + right


for dtype in ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8"):
    every = [np.abs(leaf(r, "float64") % 100).astype(dtype) if "int" in dtype else leaf(r, dtype)
             for r in range(world)]
    total = comm.all_reduce(every[rank])
    assert total.tobytes() == tree(every).tobytes(), dtype
    assert comm.all_reduce(every[rank], renzan.Op.MAX).tobytes() == np.max(every, 0).tobytes()
    rows = np.concatenate(every)
    part = comm.reduce_scatter(rows)
    assert part.tobytes() == tree([every[rank]] * world).tobytes(), dtype

assert comm.all_reduce(np.full((2, 0), 1.0)).shape == (2, 0)
everyone = comm.all_gather_v(np.full((rank + 1, 2), rank))
assert [a.tolist() for a in everyone] == [[[r, r]] * (r + 1) for r in range(world)]
assert [a.item() for a in comm.all_gather(np.array(rank))] == list(range(world))
assert comm.all_gather(np.array(rank))[0].shape == comm.all_reduce(np.array(rank)).shape == ()
assert comm.broadcast(np.array([rank, 7]), world - 1).tolist() == [world - 1, 7]
assert comm.broadcast_bytes(b"from %d" % rank, world - 1) == b"from %d" % (world - 1)
assert comm.all_to_all(np.arange(world) + 10 * rank).tolist() == [10 * p + rank
                                                                 for p in range(world)]
got = comm.all_to_all_v([np.full(p, rank) for p in range(world)])
assert [a.tolist() for a in got] == [[p] * rank for p in range(world)]

# Arrays in the other byte order.
swapped = np.array([1, 2, 3], ">f4") if sys.byteorder == "little" else np.array([1, 2, 3], "<f4")
native = swapped.astype(np.float32)
assert comm.all_reduce(swapped).tolist() == (native * world).tolist()
rows = np.repeat(swapped, world)
assert comm.reduce_scatter(rows).tolist() == (np.repeat(native, world) * world)[
    3 * rank:3 * rank + 3].tolist()
for got in (comm.broadcast(swapped), *comm.all_gather(swapped), *comm.all_gather_v(swapped),
            *comm.all_to_all_v([swapped] * world)):
    assert got.tolist() == [1, 2, 3], got
    assert got.dtype.isnative
assert comm.all_to_all(np.concatenate([swapped] * world)).tolist() == [1, 2, 3] * world
# Some workers may pass the one, some the other.
mixed = swapped if rank == 0 else native
assert comm.all_reduce(mixed).tolist() == (native * world).tolist()
assert [a.tolist() for a in comm.all_gather(mixed)] == [[1, 2, 3]] * world
record = comm.broadcast(np.array([(1, 2.5)], [("a", swapped.dtype.byteorder + "i2"), ("b", "=f8")]))
assert record.tolist() == [(1, 2.5)]
comm.barrier()

# The sum over virtual workers is the same wherever they are.
from renzan.reduction import Parts, Reduction, virtual_worker_range  # noqa: E402

reduction = Reduction(comm, 12, 1003)
for v in virtual_worker_range(12, world, rank):
    array = leaf(v, "float32")
    reduction.add(Parts([(1000, "float32"), (3, "float32")],
                        [array.ctypes.data, array[1000:].ctypes.data]))
total = np.empty(1003, np.float32)
reduction.start()
reduction.continue_()
assert reduction.finish(Parts([(1003, "float32")], [total.ctypes.data]), scale=0.25)
assert total.tobytes() == (tree([leaf(v, "float32") for v in range(12)])
                           * np.float32(0.25)).tobytes()
reduction.close()
renzan.finalize()
print("ok")
sys.stdout.flush()
