"""State dicts as named tensors and JSON, without pickle: safe to read, and readable by anyone.

Tensors keep their names (`optimizer.fc.weight/exp_avg`); numbers, texts and the structure around
them become JSON, in which a tensor is {"$tensor": its key}.
"""

from __future__ import annotations

import base64
import collections
import functools
import math
import types
import weakref
from typing import Any, Callable, Mapping

import numpy as np
import torch

from renzan.errors import ConfigError

# Safetensors' names of types.
DTYPES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
          torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8",
          torch.uint8: "U8", torch.bool: "BOOL"}
TORCH_DTYPES = {name: dtype for dtype, name in DTYPES.items()}

Tensors = dict[str, torch.Tensor]


def add_tensor(key: str, tensor: torch.Tensor, tensors: Tensors) -> None:
    """Enters a tensor under its key. A ConfigError if its kind cannot be saved."""
    if tensor.dtype not in DTYPES:
        raise ConfigError(f"'{key}' is {tensor.dtype}, which a checkpoint cannot hold: use one of "
                          + ", ".join(str(dtype) for dtype in DTYPES))
    if tensor.layout != torch.strided or tensor.device.type == "meta":
        raise ConfigError(f"'{key}' is a {tensor.layout} tensor on {tensor.device}, which a "
                          "checkpoint cannot hold: only dense ones")
    if key in tensors:
        raise ConfigError(f"two tensors would be saved as '{key}': rename one of them")
    tensors[key] = tensor.detach()


def flatten(key: str, value: Any, tensors: Tensors) -> Any:
    """`value` as JSON. The tensors in it go to `tensors`, under keys that begin with `key`."""
    if isinstance(value, torch.Tensor):
        add_tensor(key, value, tensors)
        return {"$tensor": key}
    if value is None or isinstance(value, (bool, str)) or type(value) is int:
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        try:
            add_tensor(key, torch.from_numpy(np.array(value)), tensors)
        except (TypeError, ValueError):  # PyTorch has no such type, or the byte order differs
            raise ConfigError(f"'{key}' is a NumPy {value.dtype}, which a checkpoint cannot hold: "
                              "convert it to another type") from None
        return {"$array" if isinstance(value, np.ndarray) else "$number": key}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, (list, tuple)):
        items = [flatten(f"{key}.{i}", item, tensors) for i, item in enumerate(value)]
        return items if isinstance(value, list) else {"$tuple": items}
    if isinstance(value, Mapping):
        return _flatten_mapping(key, value, tensors)
    if hasattr(value, "state_dict"):
        return flatten(key, value.state_dict(), tensors)
    raise ConfigError(f"'{key}' is a {type(value).__name__}, which a checkpoint cannot hold: use "
                      "tensors, NumPy arrays, numbers, texts, lists and dicts of them, or objects "
                      "with state_dict and load_state_dict")


def _flatten_mapping(key: str, value: Mapping[Any, Any], tensors: Tensors) -> Any:
    # Schedulers keep functions in their state; the program recreates these.
    items = {k: flatten(f"{key}.{k}", v, tensors) for k, v in value.items() if not _is_function(v)}
    if isinstance(value, collections.Counter):
        return {"$counter": [[flatten(key, k, tensors), v] for k, v in items.items()]}
    if all(isinstance(k, str) and not k.startswith("$") for k in items):
        return items
    return {"$dict": [[flatten(key, k, tensors), v] for k, v in items.items()]}


def _is_function(value: Any) -> bool:
    return isinstance(value, (types.FunctionType, types.MethodType, types.BuiltinFunctionType,
                              functools.partial, weakref.WeakMethod))


def unflatten(value: Any, tensor: Callable[[str], torch.Tensor]) -> Any:
    """The inverse of flatten. tensor(key) returns the tensors."""
    if isinstance(value, list):
        return [unflatten(item, tensor) for item in value]
    if not isinstance(value, dict):
        return value
    first: tuple[str, Any] = next(iter(value.items()), ("", None))
    kind, content = first
    if not kind.startswith("$"):
        return {k: unflatten(v, tensor) for k, v in value.items()}
    if kind == "$tensor":
        return tensor(content)
    if kind == "$array":
        return tensor(content).numpy()
    if kind == "$number":
        return tensor(content).numpy()[()]
    if kind == "$float":
        return float(content)
    if kind == "$bytes":
        return base64.b64decode(content)
    if kind == "$tuple":
        return tuple(unflatten(item, tensor) for item in content)
    pairs = {unflatten(k, tensor): unflatten(v, tensor) for k, v in content}
    return collections.Counter(pairs) if kind == "$counter" else pairs


def restore(current: Any, saved: Any, key: str) -> Any:
    """What `current` becomes when given the `saved` value: objects by load_state_dict, tensors,
    dicts and lists in place, anything else replaced."""
    if hasattr(current, "load_state_dict"):
        current.load_state_dict(saved)
        return current
    if isinstance(current, torch.Tensor) and isinstance(saved, torch.Tensor):
        if current.shape != saved.shape or current.dtype != saved.dtype:
            raise ConfigError(f"'{key}' is {describe(saved)} in the checkpoint and "
                              f"{describe(current)} here")
        with torch.no_grad():
            current.copy_(saved)
        return current
    if isinstance(current, dict) and isinstance(saved, dict):
        for name, item in saved.items():
            current[name] = restore(current[name], item, f"{key}.{name}") if name in current else item
        return current
    if isinstance(current, list) and isinstance(saved, list):
        restored = [restore(a, b, f"{key}.{i}") for i, (a, b) in enumerate(zip(current, saved))]
        current[:] = restored + saved[len(restored):]
        return current
    return saved


def describe(tensor: torch.Tensor) -> str:
    """ "float32 [3, 4]" """
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
