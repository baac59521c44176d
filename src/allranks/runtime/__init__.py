"""The runtime inside a training process: ranks, data, checkpoints, metrics and exit.

    from allranks import runtime

    def train(ranks: runtime.Ranks) -> None:
        ...                                    # an ordinary training loop

    if __name__ == "__main__":
        runtime.main(train)

The same script runs under every launcher that the contract supports, under torchrun, and as a single process.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from allranks.contract.rank_env import RankEnv as RankEnv
    from allranks.contract.world import detect as detect
    from allranks.runtime.checkpoints.checkpoints import Checkpoints as Checkpoints
    from allranks.runtime.checkpoints.checkpoints import Stateful as Stateful
    from allranks.runtime.clean_exit import EVICTED as EVICTED
    from allranks.runtime.clean_exit import Evicted as Evicted
    from allranks.runtime.data.data_loader import DataLoader as DataLoader
    from allranks.runtime.data.sampler import GlobalBatches as GlobalBatches
    from allranks.runtime.data.sampler import ResumableSampler as ResumableSampler
    from allranks.runtime.data.shards import ShardedDataset as ShardedDataset
    from allranks.runtime.data.shards import ShardSampler as ShardSampler
    from allranks.runtime.data.staging import stage as stage
    from allranks.runtime.libraries import prepare_libraries as prepare_libraries
    from allranks.runtime.metrics.metrics import Metrics as Metrics
    from allranks.runtime.notes import note as note
    from allranks.runtime.ranks.machines import measured_on as measured_on
    from allranks.runtime.ranks.ranks import RankMean as RankMean
    from allranks.runtime.ranks.ranks import Ranks as Ranks
    from allranks.runtime.ranks.step_times import StepTimes as StepTimes
    from allranks.runtime.script import main as main
    from allranks.runtime.script import started as started
    from allranks.runtime.spec_arguments import argument_defaults as argument_defaults
    from allranks.runtime.spec_arguments import arguments as arguments
    from allranks.runtime.strategies.exponential_moving_average import (
        ExponentialMovingAverage as ExponentialMovingAverage,
    )
    from allranks.runtime.strategies.settings import TrainingSettings as TrainingSettings
    from allranks.runtime.strategies.training import Strategy as Strategy
    from allranks.runtime.strategies.training import Training as Training

_NAMES = {
    "contract.world": "detect",
    "contract.rank_env": "RankEnv",
    "runtime.checkpoints.checkpoints": "Checkpoints Stateful",
    "runtime.data.data_loader": "DataLoader",
    "runtime.data.sampler": "GlobalBatches ResumableSampler",
    "runtime.data.shards": "ShardSampler ShardedDataset",
    "runtime.data.staging": "stage",
    "runtime.clean_exit": "EVICTED Evicted",
    "runtime.libraries": "prepare_libraries",
    "runtime.metrics.metrics": "Metrics",
    "runtime.ranks.step_times": "StepTimes",
    "runtime.notes": "note",
    "runtime.ranks.machines": "measured_on",
    "runtime.ranks.ranks": "RankMean Ranks",
    "runtime.script": "main started",
    "runtime.spec_arguments": "argument_defaults arguments",
    "runtime.strategies.training": "Strategy Training",
    "runtime.strategies.exponential_moving_average": "ExponentialMovingAverage",
    "runtime.strategies.settings": "TrainingSettings",
}
"""The public names by their modules. They are imported on first use (PEP 562), because torch is not installed in every
environment, such as TensorFlow's."""

_MODULES = {name: f"allranks.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
