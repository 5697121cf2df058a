"""A worker that makes every call of renzan.chainermn, and checks what it gets."""

import numpy as np
import torch

import renzan.chainermn as chainermn

comm = chainermn.create_communicator("pure_nccl")
rank, size = comm.rank, comm.size
assert (comm.intra_rank, comm.intra_size, comm.inter_rank, comm.inter_size) == (rank, size, 0, 1)
total = size * (size - 1) // 2
assert comm.allreduce(np.full(3, rank)).tolist() == [total] * 3
assert comm.bcast(np.full(2, rank), size - 1).tolist() == [size - 1] * 2
assert [a.tolist() for a in comm.allgather(np.full(rank, 7))] == [[7] * r for r in range(size)]
assert comm.bcast_obj({"a": rank}) == {"a": 0}
assert comm.gather_obj(rank) == (list(range(size)) if rank == 0 else None)
assert comm.allreduce_obj([rank]) == list(range(size))

torch.manual_seed(rank)
model = torch.nn.Linear(2, 1)
comm.bcast_data(model)
torch.manual_seed(0)
start = torch.nn.Linear(2, 1).weight.detach()
assert torch.equal(model.weight, start)
model.weight.grad = torch.full((1, 2), float(rank))
comm.allreduce_grad(model, zero_fill=True)
assert model.weight.grad.tolist() == [[total / size] * 2] and model.bias.grad.tolist() == [0]
optimizer = chainermn.create_multi_node_optimizer(torch.optim.SGD(model.parameters(), 1.0), comm)
optimizer.zero_grad()
(model(torch.ones(1, 2)) * rank).sum().backward()
optimizer.step()
assert torch.allclose(model.weight, start - total / size)

for shuffle in (False, True):
    for equal in (False, True):
        mine = chainermn.scatter_dataset(list(range(10)), comm, shuffle=shuffle, seed=1,
                                         force_equal_length=equal)
        parts = comm.allgather(np.array(list(mine)))
        everyone = np.concatenate(parts).tolist()
        assert sorted(set(everyone)) == list(range(10))
        assert len({len(part) for part in parts}) == 1 if equal else len(everyone) == 10
        assert size > 1 or (everyone != list(range(10))) == shuffle

evaluate = chainermn.create_multi_node_evaluator(lambda x: {"loss": x * rank}, comm)
assert evaluate(2) == {"loss": 2 * total / size}
comm.finalize()
print("ok", flush=True)
