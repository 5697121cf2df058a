"""A worker that makes every call of renzan.horovod.torch, and checks what it gets."""

import numpy as np
import torch

import renzan
import renzan.horovod.torch as hvd

hvd.init()
rank, size = hvd.rank(), hvd.size()
TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64,
         torch.uint8, torch.int8, torch.int16]


def values(r, dtype=torch.float32, shape=(5, 3)):
    generator = torch.Generator().manual_seed(r)
    numbers = torch.randint(1, 5, shape, generator=generator)
    return numbers.to(dtype)


def everyone(dtype=torch.float32, shape=(5, 3)):
    return torch.stack([values(r, dtype, shape) for r in range(size)])


def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b), (a, b)


def refused(expected, call, kind=(renzan.Error, ValueError)):
    try:
        call()
    except kind as error:
        assert expected in str(error), error
        return
    raise AssertionError(f"no error with '{expected}'")


def check_places():
    assert hvd.is_initialized() and hvd.is_homogeneous()
    assert (hvd.local_rank(), hvd.local_size()) == (rank, size)  # one host
    assert (hvd.cross_rank(), hvd.cross_size()) == (0, 1)
    assert hvd.gloo_built() and hvd.mpi_built() and not hvd.nccl_built()
    assert hvd.mpi_enabled() != hvd.gloo_enabled()


def check_reductions():
    for dtype in TYPES:
        all_of_them, mine = everyone(dtype).double(), values(rank, dtype)
        same(hvd.allreduce(mine, op=hvd.Sum), all_of_them.sum(0).to(dtype))
        same(hvd.allreduce(mine, op=hvd.Min), all_of_them.amin(0).to(dtype))
        same(hvd.allreduce(mine, op=hvd.Max), all_of_them.amax(0).to(dtype))
        same(hvd.allreduce(mine, op=hvd.Product), all_of_them.prod(0).to(dtype))
        mean = all_of_them.sum(0).to(dtype)
        mean = mean / size if dtype.is_floating_point else mean // size
        same(hvd.allreduce(mine), mean)
        same(mine, values(rank, dtype))
        assert hvd.allreduce_(mine) is mine
        same(mine, mean)
    total = everyone().sum(0)
    same(hvd.allreduce(values(rank), average=False), total)
    same(hvd.allreduce(values(rank), op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0),
         total * 2)
    same(hvd.allreduce(values(rank), op=hvd.Sum, compression=hvd.Compression.fp16), total)
    same(hvd.allreduce(values(rank, torch.int32), op=hvd.Sum, prescale_factor=2.0),
         (total * 2).int())
    same(hvd.allreduce(torch.tensor(float(rank))), torch.tensor((size - 1) / 2))
    same(hvd.allreduce(torch.zeros(0, 4)), torch.zeros(0, 4))
    transposed = values(rank).t()
    hvd.allreduce_(transposed, op=hvd.Sum)
    same(transposed, total.t())
    named = [hvd.allreduce_async(values(rank) * i, name=f"tensor.{i}", op=hvd.Sum)
             for i in range(20)]
    for i, handle in reversed(list(enumerate(named))):
        same(hvd.synchronize(handle), total * i)
        assert hvd.poll(handle)
    mixed = [values(rank), values(rank, torch.float64, (2,)), values(rank, torch.float32, (7,))]
    expected = [everyone().sum(0), everyone(torch.float64, (2,)).sum(0),
                everyone(torch.float32, (7,)).sum(0)]
    for one, other in zip(hvd.grouped_allreduce(mixed, op=hvd.Sum), expected):
        same(one, other)
    handle = hvd.grouped_allreduce_async(mixed, op=hvd.Sum)
    for one, other in zip(hvd.synchronize(handle), expected):
        same(one, other)
    for one, other, in_place in zip(hvd.grouped_allreduce_(mixed, op=hvd.Sum), expected, mixed):
        assert one is in_place
        same(one, other)
    refused("Adasum is not offered", lambda: hvd.allreduce(values(0), op=hvd.Adasum))
    refused("give op only", lambda: hvd.allreduce(values(0), average=True, op=hvd.Sum))
    refused("complex64 cannot be reduced", lambda: hvd.allreduce(torch.zeros(2) * 1j))


def check_tree_order():
    numbers = [torch.from_numpy(np.random.default_rng(r).standard_normal(999).astype("f4"))
               for r in range(size)]
    total = hvd.allreduce(numbers[rank], op=hvd.Sum)
    expected = numbers[0] if size == 1 else numbers[0] + numbers[1]
    for r in range(2, size):
        assert size <= 3
        expected = expected + numbers[r]
    same(total, expected)


def check_gathers():
    for dtype in TYPES + [torch.bool]:
        parts = [values(r, dtype, (r + 1, 2)) for r in range(size)]
        same(hvd.allgather(parts[rank]), torch.cat(parts))
        same(hvd.broadcast(values(rank, dtype), size - 1), values(size - 1, dtype))
    same(hvd.allgather(torch.tensor(rank)), torch.arange(size))
    same(hvd.allgather(torch.zeros(0 if rank else 2, 3)), torch.zeros(2, 3))
    first, second = hvd.grouped_allgather([torch.tensor([rank]), torch.tensor([rank * 2.0])])
    same(first, torch.arange(size))
    same(second, torch.arange(size) * 2.0)
    first, _ = hvd.synchronize(hvd.grouped_allgather_async([torch.tensor([rank])] * 2, name="g"))
    same(first, torch.arange(size))
    tensor = values(rank).t()
    assert hvd.broadcast_(tensor, 0) is tensor
    same(tensor, values(0).t())
    same(hvd.synchronize(hvd.broadcast_async(values(rank), 0)), values(0))
    refused(f"worker {size} is not one of", lambda: hvd.broadcast(values(0), size))


def check_all_to_all():
    rows = torch.full((size * 2,), rank) * 10 + torch.arange(size * 2)
    same(hvd.alltoall(rows),
         torch.cat([torch.tensor([10 * r + 2 * rank, 10 * r + 2 * rank + 1]) for r in range(size)]))
    # Worker r sends p + r rows to worker p.
    splits = torch.tensor([p + rank for p in range(size)], dtype=torch.int32)
    got, received = hvd.alltoall(torch.full((int(splits.sum()), 2), float(rank)), splits)
    same(received, torch.tensor([rank + r for r in range(size)], dtype=torch.int32))
    same(got, torch.cat([torch.full((rank + r, 2), float(r)) for r in range(size)]))
    refused("do not divide", lambda: hvd.alltoall(torch.zeros(3), [1] * size + [9]))
    if size > 1:
        refused("give splits", lambda: hvd.alltoall(torch.zeros(size + 1)))


def check_reduce_scatter():
    for rows in (size, size * 2 + 1, 1):
        each = [rows // size + (r < rows % size) for r in range(size)]
        total = everyone(shape=(rows, 2)).sum(0)
        mine = total.split(each)[rank]
        same(hvd.reducescatter(values(rank, shape=(rows, 2)), op=hvd.Sum), mine)
        same(hvd.reducescatter(values(rank, shape=(rows, 2))), mine / size)
        a, b = hvd.grouped_reducescatter([values(rank, shape=(rows, 2))] * 2, op=hvd.Sum)
        same(a, mine)
        same(b, mine)
        handle = hvd.grouped_reducescatter_async([values(rank, shape=(rows, 2))], op=hvd.Sum,
                                                 prescale_factor=2.0)
        same(hvd.synchronize(handle)[0], mine * 2)


def check_gradients():
    def gradient(call):
        leaf = torch.full((size, 2), float(rank), requires_grad=True)
        result = call(leaf)
        (result * (rank + 1)).sum().backward()
        return leaf.grad
    total = size * (size + 1) / 2
    same(gradient(lambda t: hvd.allreduce(t, op=hvd.Sum)), torch.full((size, 2), total))
    same(gradient(hvd.allreduce), torch.full((size, 2), total / size))
    same(gradient(lambda t: hvd.grouped_allreduce([t, t])[1]), torch.full((size, 2), total / size))
    same(gradient(hvd.allgather), torch.full((size, 2), total / size))
    same(gradient(lambda t: hvd.broadcast(t, 0)),
         torch.full((size, 2), total / size if rank == 0 else 0.0))
    same(gradient(hvd.alltoall), torch.arange(1.0, size + 1)[:, None].expand(size, 2).contiguous())
    same(gradient(lambda t: hvd.reducescatter(t, op=hvd.Sum)),
         torch.arange(1.0, size + 1)[:, None].expand(size, 2).contiguous())


def check_objects():
    assert hvd.broadcast_object({"from": rank}, size - 1) == {"from": size - 1}
    assert hvd.allgather_object(["x"] * rank) == [["x"] * r for r in range(size)]
    torch.manual_seed(rank)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    hvd.broadcast_parameters(model.state_dict(), 0)
    torch.manual_seed(0)
    same(model[0].weight.detach(), torch.nn.Linear(3, 2).weight.detach())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1 * (rank + 1))
    if rank == 0:
        model(torch.rand(4, 3)).sum().backward()
        optimizer.step()
    hvd.broadcast_optimizer_state(optimizer, 0)
    assert optimizer.param_groups[0]["lr"] == 0.1
    assert all(len(hvd.allgather(s["exp_avg"].reshape(1, -1)).unique(dim=0)) == 1
               for s in optimizer.state_dict()["state"].values())


def check_sparse():
    tensor = torch.sparse_coo_tensor([[0, rank + 1]], [[1.0, 2.0], [3.0, 4.0]], (size + 1, 2))
    dense = sum(torch.sparse_coo_tensor([[0, r + 1]], [[1.0, 2.0], [3.0, 4.0]],
                                        (size + 1, 2)).to_dense() for r in range(size))
    same(hvd.sparse_allreduce_async(tensor, "s", op=hvd.Sum)().to_dense(), dense)
    same(hvd.sparse_allreduce_async(tensor, "s")().to_dense(), dense / size)
    refused("sparse", lambda: hvd.allreduce(tensor))


def check_batch_norm():
    inputs = [torch.from_numpy(np.random.default_rng(r).standard_normal((4 + r, 3, 2))).float()
              for r in range(size)]
    together = torch.cat(inputs).requires_grad_()
    norm = torch.nn.BatchNorm1d(3)
    norm(together).pow(3).sum().backward()
    mine = inputs[rank].clone().requires_grad_()
    sync = hvd.SyncBatchNorm(3)
    sync(mine).pow(3).sum().backward()
    first = sum(len(i) for i in inputs[:rank])
    assert torch.allclose(mine.grad, together.grad[first:first + len(mine)], atol=1e-4)
    assert torch.allclose(sync.running_mean, norm.running_mean, atol=1e-6)
    assert torch.allclose(sync.running_var, norm.running_var, atol=1e-6)
    assert torch.allclose(hvd.allreduce(sync.weight.grad, op=hvd.Sum), norm.weight.grad, atol=1e-3)
    assert torch.allclose(sync.eval()(mine), norm.eval()(mine), atol=1e-6)


def check_process_sets():
    last = hvd.add_process_set(list(range(1, size)) or [0])
    everybody = hvd.add_process_set(hvd.ProcessSet(range(size)))
    assert last.included() == (rank > 0 or size == 1) and last.size() == max(size - 1, 1)
    if last.included():
        same(hvd.allreduce(torch.tensor(1), op=hvd.Sum, process_set=last),
             torch.tensor(last.size()))
        same(hvd.broadcast(torch.tensor(rank), size - 1, process_set=last), torch.tensor(size - 1))
        same(hvd.allgather(torch.tensor(rank), process_set=last), torch.tensor(last.ranks))
        hvd.barrier(last)
    else:
        refused("does not belong", lambda: hvd.barrier(last))
    same(hvd.allreduce(torch.tensor(1), op=hvd.Sum, process_set=everybody), torch.tensor(size))
    assert hvd.remove_process_set(last) and not hvd.remove_process_set(last)
    refused("has not been added", lambda: hvd.barrier(last))
    refused("at least one", lambda: hvd.add_process_set([]))
    refused("only", lambda: hvd.add_process_set([size]))


def check_join():
    # Worker r has r + 1 batches; the sums are over those that have one.
    for step in range(rank + 1):
        mine = torch.full((3,), 1.0)
        same(hvd.allreduce(mine, name=f"step {step}", op=hvd.Sum),
             torch.full((3,), float(size - step)))
        hvd.barrier()
    assert hvd.join() == size - 1
    same(hvd.allreduce(torch.tensor(1.0), op=hvd.Sum), torch.tensor(float(size)))


for check in (check_places, check_reductions, check_tree_order, check_gathers, check_all_to_all,
              check_reduce_scatter, check_gradients, check_objects, check_sparse, check_batch_norm,
              check_process_sets, check_join):
    check()
hvd.barrier()
hvd.shutdown()
assert not hvd.is_initialized()
print("ok", flush=True)
