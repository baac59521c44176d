"""The reading side of the contract: read the rank and layout of this process from its environment, for every
launcher."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from allranks.contract import pytorch, single, variables
from allranks.contract.distributions import DISTRIBUTIONS
from allranks.contract.rank_env import RankEnv
from allranks.contract.single import Single

READERS: tuple[Callable[[Mapping[str, str]], RankEnv | None], ...] = (
    pytorch.read_torchrun,
    *(kind.module.read for name, kind in DISTRIBUTIONS.items() if name != Single.type),
    single.read,
)
"""Functions that read each launcher's variables. The first one that finds its variables belongs to the launcher that
started the process.

Launchers nest, and processes of an inner launcher also see the variables of an outer one. So launchers that can only be
innermost come first, and names that an outer launch also sets come late.
- torchrun sets TORCHELASTIC_RUN_ID, and runs inside PyTorch and MPI launches with one process per instance.
- mpirun sets OMPI_* or PMI_* in every process, and runs inside PyTorch and TensorFlow launches. A plain RANK
  that torchrun did not set is then the same number, or comes from the outer launch.
- TF_CONFIG is specific to one process. RANK and WORLD_SIZE are generic names that may come from an outer launch.
- A Ray cluster spans the launch, and the processes that Ray Train starts in it have their own RANK and WORLD_SIZE.
"""


def detect(environ: Mapping[str, str] = os.environ) -> RankEnv:
    """Return the rank and layout of this process, from the variables of the innermost launcher.

    A process without a launcher is rank 0 of 1. Raise InputError if a launcher's variables are incomplete, not numbers,
    or contradict each other, or if a launcher within an Azure ML job has more instances than the job. A wrong rank, or
    waiting for ranks that do not exist, would make all other ranks hang.
    """
    # The last reader, for no launcher, always returns a result.
    env = next(env for read in READERS if (env := read(environ)))
    count = variables.integer(environ, "AZUREML_NODE_COUNT", minimum=1, default=env.instance_count)
    if env.instance_count > count:
        raise variables.wrong(
            "AZUREML_NODE_COUNT",
            f"{count}, with ranks on {env.instance_count} instances (launcher {env.launcher})",
            "no more instances than the step has",
            "set the step's resources.instance_count, or the hostfile or --nnodes of the launcher that it starts",
        )
    return env
