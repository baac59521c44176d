"""The number of instances that a job was declared with."""

from __future__ import annotations

import os
from collections.abc import Mapping

from allranks.contract import variables
from allranks.contract.rank_env import RankEnv

LAUNCHERS = ("mpi", "pytorch", "slurm", "torchrun")
"""Launchers whose ranks are the whole job. A Ray cluster, for one, may have instances without a rank."""


def instances(env: RankEnv, environ: Mapping[str, str] = os.environ) -> int:
    """Return the number of instances that ranks should run on: what Azure ML declares in AZUREML_NODE_COUNT, else what
    the launcher says."""
    if env.launcher not in LAUNCHERS:
        return env.instance_count
    return variables.integer(environ, "AZUREML_NODE_COUNT", minimum=1, default=env.instance_count)


def elastic(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether torchrun may go on with fewer instances than declared. It sets TORCHELASTIC_MAX_RESTARTS from its
    option --max-restarts, which is 0 for a job that is not elastic."""
    return bool(variables.integer(environ, "TORCHELASTIC_MAX_RESTARTS", default=0))
