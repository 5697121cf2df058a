"""The catalogue's other models in PyTorch, for pytorch_reference.py. Their parameters have Renzan's
names, so that its initial weights can be loaded by name."""
import torch
from torch import nn


class BatchNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gamma = nn.Parameter(torch.empty(width))
        self.beta = nn.Parameter(torch.empty(width))
        self.register_buffer("running_mean", torch.empty(width))
        self.register_buffer("running_var", torch.empty(width))

    def forward(self, x):
        return nn.functional.batch_norm(x, self.running_mean, self.running_var, self.gamma,
                                        self.beta, self.training)


class Mlp(nn.ModuleList):
    def __init__(self, sizes, last_relu=False, m=None):
        """`m`: the configuration's `model`, for hidden layers with its normalization."""
        super().__init__([nn.ModuleDict() for _ in sizes[1:]])
        self.hidden = len(self) if last_relu else len(self) - 1
        for i, (layer, n, out) in enumerate(zip(self, sizes, sizes[1:])):
            layer.weight = nn.Parameter(torch.empty(out, n))
            layer.bias = nn.Parameter(torch.empty(out))
            if i < self.hidden and m and m.get("normalization", "none") != "none":
                layer["norm"] = {"batch": BatchNorm, "layer": LayerNorm}[m["normalization"]](out)

    def forward(self, x):
        for i, layer in enumerate(self):
            x = nn.functional.linear(x, layer.weight, layer.bias)
            if "norm" in layer:
                x = layer["norm"](x)
            if i < self.hidden:
                x = torch.relu(x)
        return x


class Linear(nn.Module):
    """The weights of dense features, and a bias for those of the tables, which are the last columns
    of their rows."""

    def __init__(self, num_dense):
        super().__init__()
        self.linear = Mlp([num_dense, 1])
        self.first_order = nn.ParameterDict({"bias": nn.Parameter(torch.empty(1, 1))})

    def forward(self, dense, rows):
        weights = torch.stack([row[:, -1] for row in rows], 1).sum(1, keepdim=True)
        return self.linear(dense) + weights + self.first_order["bias"]


class Model(nn.Module):
    """Reads pooled rows [batch, sum of dims] beside the dense features [batch, num_dense], gives
    logits [batch]."""

    def __init__(self, dims, dim, first_order):
        super().__init__()
        self.dims = [d + first_order for d in dims]
        self.projection = nn.ModuleDict()
        for table, d in enumerate(dims):
            if d != dim:
                self.projection[f"C{table + 1}"] = module = nn.Module()
                module.weight = nn.Parameter(torch.empty(dim, d))

    def rows(self, pooled):
        return torch.split(pooled, self.dims, 1)

    def vectors(self, rows):
        """[batch, tables, dim], without first-order weights."""
        vectors = []
        for table, row in enumerate(rows):
            name = f"C{table + 1}"
            vectors.append(row[:, :-1] @ self.projection[name].weight.T
                           if name in self.projection else row[:, :-1])
        return torch.stack(vectors, 1)


class Lr(Model):
    def __init__(self, num_dense, dims, m):
        super().__init__([0] * len(dims), 0, 1)
        self.wide = Linear(num_dense)

    def forward(self, dense, pooled):
        return self.wide(dense, self.rows(pooled)).squeeze(1)


class Fm(Model):
    def __init__(self, num_dense, dims, m):
        super().__init__(dims, m["embedding_dim"], 1)
        self.wide = Linear(num_dense)

    def forward(self, dense, pooled):
        rows = self.rows(pooled)
        x = self.vectors(rows)
        products = torch.bmm(x, x.transpose(1, 2))
        pairs = (products.sum((1, 2)) - torch.diagonal(products, dim1=1, dim2=2).sum(1)) / 2
        return self.wide(dense, rows).squeeze(1) + pairs


class WideDeep(Model):
    def __init__(self, num_dense, dims, m):
        super().__init__(dims, m["embedding_dim"], 1)
        self.projection = nn.ModuleDict()  # the MLP takes embeddings of any dimension
        self.wide = Linear(num_dense)
        self.deep = Mlp([sum(dims) + num_dense, *m["top_mlp"], 1], m=m)

    def forward(self, dense, pooled):
        rows = self.rows(pooled)
        x = torch.cat([row[:, :-1] for row in rows] + [dense], 1)
        return (self.wide(dense, rows) + self.deep(x)).squeeze(1)


class DeepFm(Fm):
    def __init__(self, num_dense, dims, m):
        super().__init__(num_dense, dims, m)
        self.deep = Mlp([len(dims) * m["embedding_dim"] + num_dense, *m["top_mlp"], 1], m=m)

    def forward(self, dense, pooled):
        x = torch.cat([self.vectors(self.rows(pooled)).flatten(1), dense], 1)
        return super().forward(dense, pooled) + self.deep(x).squeeze(1)


class CrossExperts(nn.ModuleDict):
    """A mixture of products of a low rank, with gates of its own."""

    def __init__(self, width, rank, experts):
        super().__init__()
        for e in range(experts):
            self[str(e)] = module = nn.Module()
            for name, shape in ("v", (rank, width)), ("c", (rank, rank)), ("w", (width, rank)):
                setattr(module, name, nn.Parameter(torch.empty(shape)))
        self.gate = nn.Parameter(torch.empty(experts, width))
        self.bias = nn.Parameter(torch.empty(width))

    def forward(self, x):
        outputs = [torch.tanh(torch.tanh(x @ e.v.T) @ e.c.T) @ e.w.T for e in self.values()]
        gates = torch.softmax(x @ self.gate.T, 1)
        return (torch.stack(outputs, 1) * gates.unsqueeze(2)).sum(1) + self.bias


class DcnV2(nn.Module):
    def __init__(self, num_dense, dims, m):
        super().__init__()
        width, rank = sum(dims) + num_dense, m["cross_rank"]
        self.cross = nn.ModuleList([CrossExperts(width, rank, m["cross_experts"])
                                    if m.get("cross_experts") else nn.Module()
                                    for _ in range(m["cross_layers"])])
        for layer in self.cross:
            if m.get("cross_experts"):
                continue
            if rank > 0:
                layer.v = nn.Parameter(torch.empty(rank, width))
            layer.w = nn.Parameter(torch.empty(width, rank or width))
            layer.bias = nn.Parameter(torch.empty(width))
        self.deep = Mlp([width, *m["top_mlp"]], last_relu=True, m=m)
        self.logit = Mlp([width + m["top_mlp"][-1], 1])

    def forward(self, dense, pooled):
        x0 = x = torch.cat([pooled, dense], 1)
        for layer in self.cross:
            if isinstance(layer, CrossExperts):
                x = x0 * layer(x) + x
                continue
            low = x @ layer.v.T if hasattr(layer, "v") else x
            x = x0 * (low @ layer.w.T + layer.bias) + x
        return self.logit(torch.cat([x, self.deep(x0)], 1)).squeeze(1)


class Dcn(nn.Module):
    def __init__(self, num_dense, dims, m):
        super().__init__()
        width = sum(dims) + num_dense
        self.cross = nn.ModuleList([nn.Module() for _ in range(m["cross_layers"])])
        for layer in self.cross:
            layer.w = nn.Parameter(torch.empty(1, width))
            layer.bias = nn.Parameter(torch.empty(width))
        self.deep = Mlp([width, *m["top_mlp"]], last_relu=True, m=m)
        self.logit = Mlp([width + m["top_mlp"][-1], 1])

    def forward(self, dense, pooled):
        x0 = x = torch.cat([pooled, dense], 1)
        for layer in self.cross:
            x = x0 * (x @ layer.w.T) + layer.bias + x
        return self.logit(torch.cat([x, self.deep(x0)], 1)).squeeze(1)


class FinalMlp(nn.Module):
    def __init__(self, num_dense, dims, m):
        super().__init__()
        width = sum(dims) + num_dense
        self.first = Mlp([width, *m["top_mlp"]], last_relu=True, m=m)
        self.second = Mlp([width, *m["second_mlp"]], last_relu=True, m=m)
        a, b = m["top_mlp"][-1], m["second_mlp"][-1]
        self.logit = nn.ModuleDict({"x": nn.Linear(a, 1, bias=False),
                                    "y": nn.Linear(b, 1, bias=False),
                                    "0": nn.Bilinear(a, b, 1, bias=False)})
        self.logit.bias = nn.Parameter(torch.empty(1))

    def forward(self, dense, pooled):
        x = torch.cat([pooled, dense], 1)
        x, y = self.first(x), self.second(x)
        parts = self.logit["x"](x) + self.logit["y"](y) + self.logit["0"](x, y)
        return (parts + self.logit.bias).squeeze(1)


class XDeepFm(Model):
    def __init__(self, num_dense, dims, m):
        super().__init__(dims, m["embedding_dim"], 1)
        self.wide = Linear(num_dense)
        self.cin = nn.ModuleList([nn.Module() for _ in m["cin_layers"]])
        before = len(dims)
        for layer, maps in zip(self.cin, m["cin_layers"]):
            layer.weight = nn.Parameter(torch.empty(maps, before * len(dims)))
            before = maps
        self.cin_logit = Mlp([sum(m["cin_layers"]), 1])
        self.deep = Mlp([len(dims) * m["embedding_dim"] + num_dense, *m["top_mlp"], 1], m=m)

    def forward(self, dense, pooled):
        rows = self.rows(pooled)
        x0 = x = self.vectors(rows)
        sums = []
        for layer in self.cin:
            weight = layer.weight.unflatten(1, (x.shape[1], x0.shape[1]))
            x = torch.einsum("hij,bid,bjd->bhd", weight, x, x0)
            sums.append(x.sum(2))
        deep = self.deep(torch.cat([x0.flatten(1), dense], 1))
        return (self.wide(dense, rows) + self.cin_logit(torch.cat(sums, 1)) + deep).squeeze(1)



class LayerNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gamma = nn.Parameter(torch.empty(width))
        self.beta = nn.Parameter(torch.empty(width))

    def forward(self, x):
        return nn.functional.layer_norm(x, x.shape[1:], self.gamma, self.beta)


class MaskNet(nn.Module):
    def __init__(self, num_dense, dims, m):
        super().__init__()
        width, out = sum(dims) + num_dense, m["mask_width"]
        self.blocks = range(m["mask_blocks"])
        self.normalized = LayerNorm(width)
        for i in self.blocks:
            setattr(self, f"mask_{i}", Mlp([width, round(m["mask_ratio"] * width), width]))
            setattr(self, f"sums_{i}", Mlp([width, out]))
            setattr(self, f"scaled_{i}", LayerNorm(out))
        self.top = Mlp([len(self.blocks) * out, *m["top_mlp"], 1], m=m)

    def forward(self, dense, pooled):
        x = torch.cat([pooled, dense], 1)
        normalized, outputs = self.normalized(x), []
        for i in self.blocks:
            masked = normalized * getattr(self, f"mask_{i}")(x)
            sums = getattr(self, f"sums_{i}")(masked)
            outputs.append(torch.relu(getattr(self, f"scaled_{i}")(sums)))
        return self.top(torch.cat(outputs, 1)).squeeze(1)


class Attention(nn.Module):
    """An interacting layer as FuxiCTR's MultiHeadSelfAttention defines it."""

    def __init__(self, dim, heads, head_dim):
        super().__init__()
        self.heads = heads
        names = ["query", "key", "value"] + (["residual"] if dim != heads * head_dim else [])
        for name in names:
            setattr(self, name, nn.Linear(dim, heads * head_dim, bias=False))

    def forward(self, x):
        q, k, v = (layer(x).unflatten(2, (self.heads, -1)).transpose(1, 2)
                   for layer in (self.query, self.key, self.value))
        attended = nn.functional.scaled_dot_product_attention(q, k, v)
        residual = self.residual(x) if hasattr(self, "residual") else x
        return torch.relu(attended.transpose(1, 2).flatten(2) + residual)


class AutoInt(Model):
    def __init__(self, num_dense, dims, m):
        dim, heads, layers = m["embedding_dim"], m["attention_heads"], m["attention_layers"]
        head_dim = m["attention_dim"] or dim // heads
        super().__init__(dims, dim, 1)
        self.wide = Linear(num_dense)
        self.deep = Mlp([len(dims) * dim + num_dense, *m["top_mlp"], 1], m=m)
        self.layers = range(layers)
        for i in self.layers:
            setattr(self, f"attention_{i}",
                    Attention(dim if i == 0 else heads * head_dim, heads, head_dim))
        self.attention_logit = Mlp([len(dims) * heads * head_dim, 1])

    def forward(self, dense, pooled):
        rows = self.rows(pooled)
        x = self.vectors(rows)
        logit = self.wide(dense, rows) + self.deep(torch.cat([x.flatten(1), dense], 1))
        for i in self.layers:
            x = getattr(self, f"attention_{i}")(x)
        return (logit + self.attention_logit(x.flatten(1))).squeeze(1)


MODELS = {"lr": Lr, "fm": Fm, "wide_deep": WideDeep, "deepfm": DeepFm, "dcn": Dcn, "dcnv2": DcnV2,
          "finalmlp": FinalMlp, "xdeepfm": XDeepFm, "masknet": MaskNet, "autoint": AutoInt}


def load_by_name(model, saved):
    """Takes the parameters and buffers from `saved` by their names."""
    with torch.no_grad():
        for name, parameter in [*model.named_parameters(), *model.named_buffers()]:
            parameter.copy_(saved[name.removeprefix("wide.")])
