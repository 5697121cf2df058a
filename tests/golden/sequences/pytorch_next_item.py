"""The models of the next item, for pytorch_sequences.py."""
import torch
from torch import nn


def stack(widths):
    layers = []
    for i, (fan_in, fan_out) in enumerate(zip(widths, widths[1:])):
        layers += [nn.Linear(fan_in, fan_out)] + [nn.ReLU()] * (i + 2 < len(widths))
    return nn.Sequential(*layers)


class NextItem(nn.Module):
    """Compares an item and its negatives with a query: an MLP of the user, the price and what
    newest() makes of the items clicked before."""

    def __init__(self, users, items, m, positions):
        super().__init__()
        dim = m["embedding_dim"]
        self.user, self.item = nn.Embedding(users, dim), nn.Embedding(items, dim)
        self.query = stack([2 * dim + 1, *m["top_mlp"], dim])
        self.named = {}
        self.add("query", self.query)
        self.build(dim, m["attention_heads"], m["attention_layers"], positions)

    def add(self, name, module):
        """Records a module's parameters by Renzan's names."""
        if isinstance(module, nn.Sequential):
            linears = [layer for layer in module if isinstance(layer, nn.Linear)]
            for i, linear in enumerate(linears):
                self.named |= {f"{name}.{i}.weight": linear.weight, f"{name}.{i}.bias": linear.bias}
        elif isinstance(module, nn.LayerNorm):
            self.named |= {f"{name}.gamma": module.weight, f"{name}.beta": module.bias}
        elif isinstance(module, nn.Linear):
            self.named |= {f"{name}.{part}": p for part, p in module.named_parameters()}
        else:
            self.named[name] = module
        return module

    def parts(self):
        return self.named

    def forward(self, price, user, item, clicked, used, negatives):
        lengths = used.sum(1)
        last = self.encode(self.item(clicked), lengths)[torch.arange(len(item)), lengths - 1]
        newest = torch.where(lengths.unsqueeze(1) > 0, last, torch.zeros_like(last))
        query = self.query(torch.cat([newest, self.user(user), price], 1))
        score = (query * self.item(item)).sum(1)
        others = torch.einsum("nd,nkd->nk", query, self.item(negatives))
        return score - torch.logsumexp(others, 1)


class Sasrec(NextItem):
    def build(self, dim, heads, layers, positions):
        self.heads, self.layers = heads, []
        self.positions = self.add("positions.weight", nn.Parameter(torch.zeros(positions * dim)))
        for l in range(layers):
            layer = {"heads": {part: self.add(f"heads_{l}.{part}", nn.Linear(dim, dim, bias=False))
                               for part in ("query", "key", "value")},
                     "attention": self.add(f"attention_{l}", stack([dim, dim])),
                     "forward": self.add(f"forward_{l}", stack([dim, dim, dim]))}
            for norm in ("attention_norm", "forward_norm"):
                layer[norm] = self.add(f"{norm}_{l}", nn.LayerNorm(dim))
            self.layers.append(layer)
        self.normalized = self.add("normalized", nn.LayerNorm(dim))

    def encode(self, x, lengths):
        n, positions, dim = x.shape
        from_end = torch.arange(positions).unsqueeze(0) + positions - lengths.unsqueeze(1)
        x = x + self.positions.view(positions, dim)[from_end.clamp(max=positions - 1)]
        split = lambda y: y.view(n, positions, self.heads, -1).transpose(1, 2)
        for layer in self.layers:
            y = layer["attention_norm"](x)
            q, k, v = (split(layer["heads"][part](y)) for part in ("query", "key", "value"))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + layer["attention"](y.transpose(1, 2).reshape(n, positions, dim))
            x = x + layer["forward"](layer["forward_norm"](x))
        return self.normalized(x)


class HstuModel(NextItem):
    def build(self, dim, heads, layers, positions):
        self.heads, self.layers = heads, []
        for l in range(layers):
            name = f"hstu_{l}"
            self.layers.append({
                "norm": self.add(f"norm_{l}", nn.LayerNorm(dim)) if l > 0 else nn.Identity(),
                "projection": self.add(f"{name}.projection", nn.Linear(dim, 4 * dim, bias=False)),
                "distance": self.add(f"{name}.distance", nn.Parameter(torch.zeros(positions))),
                "output": self.add(f"{name}.output", nn.Linear(dim, dim))})

    def encode(self, x, lengths):
        n, positions, dim = x.shape
        distance = torch.arange(positions).unsqueeze(1) - torch.arange(positions).unsqueeze(0)
        split = lambda y: y.view(n, positions, self.heads, -1).transpose(1, 2)
        for layer in self.layers:
            x = layer["norm"](x)
            u, v, q, k = nn.functional.silu(layer["projection"](x)).chunk(4, 2)
            scores = split(q) @ split(k).transpose(2, 3) + layer["distance"][distance.clamp(min=0)]
            a = torch.where(distance >= 0, nn.functional.silu(scores) / positions, 0.0)
            attended = (a @ split(v)).transpose(1, 2).reshape(n, positions, dim)
            normed = nn.functional.layer_norm(attended, (dim,), eps=1e-6)
            x = layer["output"](normed * u) + x
        return x
