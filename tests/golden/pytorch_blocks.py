"""A graph of blocks (docs/models.md#your-own-graph) in PyTorch, for the configurations here that
state one. Parameters and running statistics are those that Renzan saved, by their names; each kind
of block is a method."""
import itertools

import torch
from torch import nn
from torch.nn import functional as F


class Value:
    """Vectors of each sample by their names, [n, dim] each. `used` [n, vectors]: which of them a
    sample has, if they are the positions of a sequence; the others are zeros."""

    def __init__(self, vectors, used=None):
        self.vectors, self.used = vectors, used

    def columns(self):
        return torch.cat(list(self.vectors.values()), 1)

    def stacked(self):
        """[n, vectors, dim]"""
        return torch.stack(list(self.vectors.values()), 1)

    def with_stacked(self, x):
        """The same vectors with other values."""
        if self.used is not None:
            x = x * self.used.unsqueeze(2)
        return Value(dict(zip(self.vectors, x.unbind(1))), self.used)

    def mask(self):
        return torch.ones_like(self.stacked()[:, :, 0], dtype=bool) if self.used is None else self.used


def positions_of(x, used=None):
    """Of [n, positions, dim]."""
    return Value({str(i): each for i, each in enumerate(x.unbind(1))}, used)


class BlockGraph(nn.Module):
    def __init__(self, m, saved):
        super().__init__()
        self.blocks, self.key = m["blocks"], lambda name: name.replace(".", "/")
        for name, tensor in saved.items():
            if ".running_" in name:
                self.register_buffer(self.key(name), tensor.clone())
            else:
                self.register_parameter(self.key(name), nn.Parameter(tensor.clone()))

    def has(self, name):
        return hasattr(self, self.key(name))

    def p(self, name):
        return getattr(self, self.key(name))

    def logit(self, inputs):
        """`inputs`: Values by their names. Returns the logit of the block that no other takes, [n]."""
        values, left = dict(inputs), dict(self.blocks)
        while left:
            name = next(n for n, o in left.items() if all(i in values for i in o.get("inputs", [])))
            options = left.pop(name)
            self.n = len(next(iter(values["dense"].vectors.values())))
            made = getattr(self, options["type"])(
                name, options, *(values[i] for i in options.get("inputs", [])))
            values[name] = made if isinstance(made, Value) else Value({name: made})
        taken = {i for o in self.blocks.values() for i in o.get("inputs", [])}
        last, = (name for name in self.blocks if name not in taken)
        return values[last].columns().squeeze(1)

    # Parts of blocks.

    def function(self, name, function, z):
        if function == "prelu":
            return torch.where(z > 0, z, self.p(name + ".slope") * z)
        if function == "dice":
            share = torch.sigmoid(F.batch_norm(
                z, self.p(name + ".running_mean"), self.p(name + ".running_var"), None, None,
                self.training, 0.01, 1e-9))
            return share * z + (1 - share) * self.p(name + ".slope") * z
        return getattr(F, function)(z) if function in ("silu", "gelu") else getattr(torch, function)(z)

    def normalized(self, name, kind, z):
        gamma, beta = (self.p(f"{name}.{part}") for part in ("gamma", "beta"))
        if kind == "layer":
            return F.layer_norm(z, z.shape[-1:], gamma, beta)
        return F.batch_norm(z, self.p(name + ".running_mean"), self.p(name + ".running_var"), gamma,
                            beta, self.training)

    def layers(self, name, o, x):
        for i in range(len(o["layers"])):
            layer = f"{name}.{i}"
            z = F.linear(x, self.p(layer + ".weight"), self.p(layer + ".bias"))
            if i + 1 == len(o["layers"]) and o.get("linear_output"):
                return z
            if o.get("normalization", "none") != "none":
                z = self.normalized(layer + ".norm", o["normalization"], z)
            if o.get("residual") and i > 0:
                z = z + x
            x = self.function(layer, o.get("activation", "relu"), z)
        return x

    # The blocks: of their names, options and inputs.

    def mlp(self, name, o, x):
        if o.get("per_vector"):
            return x.with_stacked(self.layers(name, o, x.stacked()))
        return self.layers(name, o, x.columns())

    def concat(self, name, o, *inputs):
        return Value({(i, name): vector for i, x in enumerate(inputs)
                      for name, vector in x.vectors.items()})

    def sum(self, name, o, *inputs):
        if all(x.used is not None for x in inputs):
            return inputs[0].with_stacked(torch.stack([x.stacked() for x in inputs]).sum(0))
        return torch.stack([x.columns() for x in inputs]).sum(0)

    def multiply(self, name, o, x, y):
        if x.used is not None and y.used is not None:
            return x.with_stacked(x.stacked() * y.stacked())
        return x.columns() * y.columns()

    def activation(self, name, o, x):
        y = self.function(name, o.get("function", "relu"), x.columns())
        parts = y.split([vector.shape[1] for vector in x.vectors.values()], 1)
        if x.used is not None:
            return x.with_stacked(torch.stack(parts, 1))
        return Value(dict(zip(x.vectors, parts)))

    def dot(self, name, o, x):
        x = x.stacked()
        rows, columns = torch.tril_indices(x.shape[1], x.shape[1], -1)
        return torch.cat([x[:, 0], torch.bmm(x, x.transpose(1, 2))[:, rows, columns]], 1)

    def fm(self, name, o, x):
        pairs = itertools.combinations(x.vectors.values(), 2)
        return sum((a * b).sum(1, keepdim=True) for a, b in pairs)

    def cross(self, name, o, x):
        x0 = x = x.columns()
        for layer in range(o.get("layers", 3)):
            part = lambda what: self.p(f"{name}.{layer}.{what}")
            if o.get("kind") == "vector":
                x = x0 * (x @ part("w").T) + part("bias") + x
                continue
            if o.get("experts"):
                gates = torch.softmax(x @ part("gate").T, 1)
                y = sum(gates[:, e:e + 1] * (torch.tanh(torch.tanh(x @ part(f"{e}.v").T)
                                                        @ part(f"{e}.c").T) @ part(f"{e}.w").T)
                        for e in range(o["experts"]))
            else:
                y = (x @ part("v").T if o.get("rank") else x) @ part("w").T
            x = x0 * (y + part("bias")) + x
        return x

    def bilinear(self, name, o, x, y):
        x, y, heads = x.columns(), y.columns(), o.get("heads", 1)
        z = x @ self.p(name + ".x.weight").T + y @ self.p(name + ".y.weight").T + self.p(name + ".bias")
        for h, (a, b) in enumerate(zip(x.chunk(heads, 1), y.chunk(heads, 1))):
            z = z + (a @ self.p(f"{name}.{h}.weight") * b).sum(1, keepdim=True)
        return z

    def cin(self, name, o, x):
        x0, x, sums = x.stacked(), x.stacked(), []
        for layer in range(len(o["layers"])):
            weight = self.p(f"{name}.{layer}.weight").unflatten(1, (x.shape[1], x0.shape[1]))
            x = torch.einsum("hij,bid,bjd->bhd", weight, x, x0)
            sums.append(x.sum(2))
        return torch.cat(sums, 1)

    def self_attention(self, name, o, value):
        x, used = value.stacked(), value.mask()
        project = lambda part: x @ self.p(f"{name}.{part}.weight").T
        split = lambda y: y.unflatten(2, (o.get("heads", 1), -1)).transpose(1, 2)
        query, key, value_of = (split(project(part)) for part in ("query", "key", "value"))
        scores = query @ key.transpose(2, 3)
        if o.get("scale", True):
            scores = scores / query.shape[-1] ** 0.5
        allowed = used.unsqueeze(1).expand(-1, x.shape[1], -1)
        if o.get("causal"):
            allowed = allowed & torch.ones_like(allowed).tril()
        scores = scores.masked_fill(~allowed.unsqueeze(1), -1e30)  # a row may have no position
        y = (scores.softmax(3) @ value_of).transpose(1, 2).flatten(2)
        if o.get("residual", True):
            y = y + (project("residual") if self.has(f"{name}.residual.weight") else x)
        return value.with_stacked(torch.relu(y) if o.get("relu", True) else y)

    def hstu(self, name, o, value):
        x = value.stacked()
        positions, heads = x.shape[1], o.get("heads", 1)
        distance = torch.arange(positions).unsqueeze(1) - torch.arange(positions).unsqueeze(0)
        u, v, q, k = F.silu(x @ self.p(name + ".projection.weight").T).chunk(4, 2)
        split = lambda y: y.unflatten(2, (heads, -1)).transpose(1, 2)
        scores = split(q) @ split(k).transpose(2, 3)
        if o.get("positions", "relative") == "relative":
            scores = scores + self.p(name + ".distance")[distance.clamp(min=0)]
        a = F.silu(scores) / positions * (distance >= 0) * value.mask().view(-1, 1, 1, positions)
        y = (a @ split(v)).transpose(1, 2).flatten(2)
        y = F.layer_norm(y, y.shape[2:], eps=1e-6) * u
        return value.with_stacked(F.linear(y, self.p(name + ".output.weight"),
                                           self.p(name + ".output.bias")) + x)

    def positions(self, name, o, value):
        x, lengths = value.stacked(), value.mask().sum(1, keepdim=True)
        places = self.p(name + ".weight").view(x.shape[1:])
        from_end = torch.arange(x.shape[1]).unsqueeze(0) + x.shape[1] - lengths
        return value.with_stacked(x + places[from_end.clamp(max=x.shape[1] - 1)])

    def append(self, name, o, value, vector):
        x, used = value.stacked(), value.mask()
        x = torch.cat([x, torch.zeros_like(x[:, :1])], 1)
        here = F.one_hot(used.sum(1), x.shape[1])  # behind the newest
        return positions_of(x + here.unsqueeze(2) * vector.columns().unsqueeze(1),
                            torch.cat([used, torch.zeros_like(used[:, :1])], 1) | here.bool())

    def pool(self, name, o, value):
        x, lengths = value.stacked(), value.mask().sum(1)
        method = o.get("method", "mean")
        if method == "last":
            last = x[torch.arange(len(x)), (lengths - 1).clamp(min=0)]
            return last * (lengths > 0).unsqueeze(1)
        return x.sum(1) / (lengths.clamp(min=1).unsqueeze(1) if method == "mean" else 1)

    def target_attention(self, name, o, query, value):
        keys, used = value.stacked(), value.mask()
        x = query.columns().unsqueeze(1).expand_as(keys)
        x = torch.cat([x, keys, x - keys, x * keys], 2)
        hidden = o.get("layers", [64])
        for i in range(len(hidden)):
            x = self.function(f"{name}.{i}", o.get("activation", "sigmoid"), F.linear(
                x, self.p(f"{name}.{i}.weight"), self.p(f"{name}.{i}.bias")))
        last = f"{name}.{len(hidden)}"
        shares = (x @ self.p(last + ".weight").T).squeeze(2)
        if o.get("softmax"):
            shares = shares.masked_fill(~used, -1e30).softmax(1)
        else:
            shares = shares + self.p(last + ".bias")
        return ((shares * used).unsqueeze(2) * keys).sum(1)

    def gate(self, name, o, x, *experts):
        shares = torch.softmax(x.columns() @ self.p(name + ".weight").T, 1)
        return (torch.stack([e.columns() for e in experts], 1) * shares.unsqueeze(2)).sum(1)

    def l2_normalize(self, name, o, x):
        epsilon = o.get("epsilon", 1e-12)
        if o.get("per_vector"):
            return x.with_stacked(F.normalize(x.stacked(), dim=2, eps=epsilon))
        return F.normalize(x.columns(), eps=epsilon)

    def batch_norm(self, name, o, x):
        gamma, beta = (self.p(f"{name}.{part}") if o.get("affine", True) else None
                       for part in ("gamma", "beta"))
        return F.batch_norm(x.columns(), self.p(name + ".running_mean"),
                            self.p(name + ".running_var"), gamma, beta, self.training,
                            o.get("momentum", 0.1), o.get("epsilon", 1e-5))

    def layer_norm(self, name, o, x):
        if o.get("per_vector"):
            return x.with_stacked(self.normalized(name, "layer", x.stacked()))
        return self.normalized(name, "layer", x.columns())

    def project(self, name, o, x):
        if x.used is not None:
            y = x.stacked()
            return x.with_stacked(y @ self.p(name + ".weight").T if self.has(name + ".weight") else y)
        return Value({each: vector @ self.p(f"{name}.{each}.weight").T
                      if self.has(f"{name}.{each}.weight") else vector
                      for each, vector in x.vectors.items()})

    def match(self, name, o, query, item):
        return (query.columns() * item.columns()).sum(1, keepdim=True) / o.get("temperature", 1)

    def product_of_probabilities(self, name, o, *logits):
        shares = [torch.sigmoid(x.columns().double()) for x in logits]
        return torch.logit(torch.stack(shares).prod(0)).float()

    def first_order(self, name, o, x):
        last = torch.stack([vector[:, -1:] for vector in x.vectors.values()])
        return last.sum(0) + self.p(name + ".bias")

    def factors(self, name, o, x):
        return Value({each: vector[:, :-1] for each, vector in x.vectors.items()}, x.used)

    def zeros(self, name, o):
        return torch.zeros(self.n, o["dim"])


class PooledBlocks(BlockGraph):
    """Reads pooled rows [batch, sum of dims] beside the dense features, gives logits [batch]."""

    def __init__(self, m, saved, features, dims):
        super().__init__(m, saved)
        self.features, self.dims = features, dims

    def forward(self, dense, pooled):
        rows = dict(zip(self.features, pooled.split(self.dims, 1)))
        return self.logit({"dense": Value({"dense": dense}), "embeddings": Value(rows),
                           **{f"embeddings.{f}": Value({f: row}) for f, row in rows.items()}})
