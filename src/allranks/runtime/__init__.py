"""The runtime inside a training process: ranks, data, checkpoints, metrics and exit.

    from allranks import runtime

    def train(ranks: runtime.Ranks) -> None:
        ...                                    # an ordinary training loop

    if __name__ == "__main__":
        runtime.main(train)

The same script runs under every launcher that the contract supports, under torchrun, and as a single process.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from allranks.contract.detect import detect
    from allranks.contract.rank_env import RankEnv
    from allranks.runtime.checkpoints import Checkpoints, Stateful
    from allranks.runtime.data.data_loader import DataLoader
    from allranks.runtime.data.global_batches import GlobalBatches
    from allranks.runtime.data.sampler import ResumableSampler
    from allranks.runtime.data.shard_sampler import ShardSampler
    from allranks.runtime.data.sharded_dataset import ShardedDataset
    from allranks.runtime.data.staging import stage
    from allranks.runtime.exit.eviction import EVICTED, Evicted
    from allranks.runtime.libraries import prepare_libraries
    from allranks.runtime.metrics.metrics import Metrics
    from allranks.runtime.notes import note
    from allranks.runtime.ranks.machines import measured_on
    from allranks.runtime.ranks.rank_mean import RankMean
    from allranks.runtime.ranks.ranks import Ranks
    from allranks.runtime.script import main, started
    from allranks.runtime.spec_arguments import argument_defaults, arguments
    from allranks.runtime.strategies import Strategy, Training
    from allranks.runtime.strategies.deepspeed_inputs import resolve_deepspeed_file
    from allranks.runtime.strategies.settings import TrainingSettings
    from allranks.runtime.training.batch_size import find_batch_size
    from allranks.runtime.training.early_stopping import EarlyStopping
    from allranks.runtime.training.exponential_moving_average import ExponentialMovingAverage
    from allranks.runtime.training.profiler import Profiler
    from allranks.runtime.training.step_times import StepTimes

__all__ = [
    "EVICTED",
    "Checkpoints",
    "DataLoader",
    "EarlyStopping",
    "Evicted",
    "ExponentialMovingAverage",
    "GlobalBatches",
    "Metrics",
    "Profiler",
    "RankEnv",
    "RankMean",
    "Ranks",
    "ResumableSampler",
    "ShardSampler",
    "ShardedDataset",
    "Stateful",
    "StepTimes",
    "Strategy",
    "Training",
    "TrainingSettings",
    "argument_defaults",
    "arguments",
    "detect",
    "find_batch_size",
    "main",
    "measured_on",
    "note",
    "prepare_libraries",
    "resolve_deepspeed_file",
    "stage",
    "started",
]

_MODULES = {
    "EVICTED": "allranks.runtime.exit.eviction",
    "Checkpoints": "allranks.runtime.checkpoints",
    "DataLoader": "allranks.runtime.data.data_loader",
    "EarlyStopping": "allranks.runtime.training.early_stopping",
    "Evicted": "allranks.runtime.exit.eviction",
    "ExponentialMovingAverage": "allranks.runtime.training.exponential_moving_average",
    "GlobalBatches": "allranks.runtime.data.global_batches",
    "Metrics": "allranks.runtime.metrics.metrics",
    "Profiler": "allranks.runtime.training.profiler",
    "RankEnv": "allranks.contract.rank_env",
    "RankMean": "allranks.runtime.ranks.rank_mean",
    "Ranks": "allranks.runtime.ranks.ranks",
    "ResumableSampler": "allranks.runtime.data.sampler",
    "TrainingSettings": "allranks.runtime.strategies.settings",
    "ShardSampler": "allranks.runtime.data.shard_sampler",
    "ShardedDataset": "allranks.runtime.data.sharded_dataset",
    "Stateful": "allranks.runtime.checkpoints",
    "StepTimes": "allranks.runtime.training.step_times",
    "Strategy": "allranks.runtime.strategies",
    "Training": "allranks.runtime.strategies",
    "argument_defaults": "allranks.runtime.spec_arguments",
    "arguments": "allranks.runtime.spec_arguments",
    "detect": "allranks.contract.detect",
    "find_batch_size": "allranks.runtime.training.batch_size",
    "main": "allranks.runtime.script",
    "measured_on": "allranks.runtime.ranks.machines",
    "note": "allranks.runtime.notes",
    "prepare_libraries": "allranks.runtime.libraries",
    "resolve_deepspeed_file": "allranks.runtime.strategies.deepspeed_inputs",
    "stage": "allranks.runtime.data.staging",
    "started": "allranks.runtime.script",
}


def __getattr__(name: str) -> Any:
    # Imported on first use (PEP 562), because torch is not installed in every environment, such as TensorFlow's.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
