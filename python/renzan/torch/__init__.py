"""PyTorch programs with the same bits on any number of workers, on an unmodified PyTorch.

    VirtualStep     one training step
    Sampler         which samples a worker reads
    ShardSampler    the same for data that can only be read from its beginning
    Dataset         imported data (renzan data import)
    State           saves while training, resumes at the exact step
    run             runs a program as a job that may be stopped, resized and moved

Importing it registers the torch.distributed backend "renzan".
"""

from renzan.torch import process_group as _process_group
from renzan.torch.dataset import Dataset
from renzan.torch.run import run
from renzan.torch.sampler import Sampler, ShardSampler
from renzan.torch.state import State
from renzan.torch.virtual_step import VirtualStep

__all__ = ["Dataset", "Sampler", "ShardSampler", "State", "VirtualStep", "run"]
