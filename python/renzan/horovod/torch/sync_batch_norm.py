"""Batch normalization with the statistics of all workers' batches."""

from __future__ import annotations

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from renzan.horovod.torch.process_set import ProcessSet, global_process_set
from renzan.horovod.torch.reductions import Sum, allreduce


class SyncBatchNorm(_BatchNorm):
    """torch.nn.BatchNorm1d to 3d, whose mean and variance in training are those of all workers'
    inputs [n, channels, ...] together. Their n may differ. Statistics are added in float64."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
                 affine: bool = True, track_running_stats: bool = True,
                 process_set: ProcessSet = global_process_set):
        """As torch.nn.BatchNorm1d; `process_set`: the workers whose inputs count."""
        super().__init__(num_features, eps, momentum,  # type: ignore[arg-type]  # it takes None
                         affine, track_running_stats)
        self.process_set = process_set

    def _check_input_dim(self, input: torch.Tensor) -> None:  # pylint: disable=redefined-builtin
        if input.dim() < 2:
            raise ValueError(f"SyncBatchNorm of {input.dim()} dimensions: expected at least 2")

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # pylint: disable=redefined-builtin
        """The normalized input. While training all workers of the process set call it."""
        self._check_input_dim(input)
        if not self.training and self.track_running_stats:
            return super().forward(input)
        axes = [axis for axis in range(input.dim()) if axis != 1]
        shape = [1, -1] + [1] * (input.dim() - 2)
        count = torch.tensor([input.numel() / input.shape[1]], dtype=torch.float64,
                             device=input.device)
        sums = self._over_workers(torch.cat([input.sum(axes, dtype=torch.float64), count]))
        count = sums[-1]
        mean = sums[:-1] / count
        centered = input - mean.to(input.dtype).view(shape)
        squares = (centered * centered).sum(axes, dtype=torch.float64)
        variance = self._over_workers(squares) / count
        if self.track_running_stats:
            self._track(mean.detach(), variance.detach() * count.detach() / (count.detach() - 1))
        scale = torch.rsqrt(variance + self.eps).to(input.dtype)
        if not self.affine:
            return centered * scale.view(shape)
        return centered * (scale * self.weight).view(shape) + self.bias.view(shape)

    def _over_workers(self, values: torch.Tensor) -> torch.Tensor:
        return allreduce(values, op=Sum, name="batch normalization", process_set=self.process_set)

    def _track(self, mean: torch.Tensor, variance: torch.Tensor) -> None:
        assert self.num_batches_tracked is not None
        assert self.running_mean is not None and self.running_var is not None
        self.num_batches_tracked.add_(1)
        factor = self.momentum
        if factor is None:
            factor = 1.0 / float(self.num_batches_tracked)
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), factor)
        self.running_var.lerp_(variance.to(self.running_var.dtype), factor)
