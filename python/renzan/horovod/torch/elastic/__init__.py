"""Elastic training: a run that continues after workers were lost, added or moved.

In Horovod the surviving processes continue. Here all processes end, and the launcher (`renzan run
--min N`, or the scheduler of jobs) starts all of them again, perhaps with another number; run()
then resumes at the last commit, which is kept in RENZAN_CHECKPOINT_DIR (`renzan run` sets it).
"""

from renzan.horovod.torch.elastic.run import run
from renzan.horovod.torch.elastic.sampler import ElasticSampler
from renzan.horovod.torch.elastic.state import ObjectState, State, TorchState

__all__ = ["ElasticSampler", "ObjectState", "State", "TorchState", "run"]
