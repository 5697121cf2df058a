"""Renzan for Python programs: the same bits on any number of workers, and exact resumption.

    renzan.init()                joins the workers that a launcher started
    renzan.load_checkpoint       named arrays of a checkpoint
    renzan.Communicator          exchanges of NumPy arrays between them
    renzan.torch                 PyTorch: the step, data, state, a torch.distributed backend
    renzan.data.open(DIR)        an imported dataset as arrays
    renzan.data.write(...)       a dataset of a DataFrame or another table
    renzan.log(step, {...})      metrics for TensorBoard
    renzan.submit([...])         the job system: also jobs(), job(), explain(), wait(), cancel()
"""

try:
    import numpy as _numpy  # noqa: F401
except ImportError as _missing:
    raise ImportError(f"{_missing}: renzan needs NumPy: pip install numpy, or install Renzan's wheel, "
                      "which brings it") from _missing

from renzan import data
from renzan._native import library as _library
from renzan._world import finalize, init, is_initialized, world
from renzan.checkpoint import Checkpoint, load_checkpoint
from renzan.communicator import Communicator, Op
from renzan.errors import (ConfigError, DataError, DivergedError, Error, NoInputError, PeerError,
                           Stopped, UsageError)
from renzan.events import EventLog, log
from renzan.job_system import cancel, explain, job, jobs, submit, wait

__all__ = ["Checkpoint", "Communicator", "ConfigError", "DataError", "DivergedError", "Error",
           "EventLog", "NoInputError", "Op", "PeerError", "Stopped", "UsageError", "cancel", "data",
           "explain", "finalize", "init", "is_initialized", "job", "jobs", "load_checkpoint", "log",
           "submit", "wait", "world"]
__version__ = _library.renzan_version().decode()
