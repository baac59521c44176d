"""torchrun (reading side only), which starts the ranks of an instance in a per-node launch.

`python -m torch.distributed.launch` and `accelerate launch` with several processes use torchrun.
"""

from __future__ import annotations

from collections.abc import Mapping

from allranks.contract import master, variables
from allranks.contract.rank_env import RankEnv, checked


def read(environ: Mapping[str, str]) -> RankEnv | None:
    """Return the rank and layout that torchrun set; None if it did not start this process, that is, has set no run id.

    torchrun overrides RANK, LOCAL_RANK, WORLD_SIZE and LOCAL_WORLD_SIZE in each process. A group is torchrun on one
    instance, so GROUP_RANK is the instance's rank. NODE_RANK may come from an outer launch and is not read. Raise
    InputError if one of the variables is missing or contradicts another.
    """
    if variables.text(environ, "TORCHELASTIC_RUN_ID") is None:
        return None
    instance_count = variables.integer(environ, "GROUP_WORLD_SIZE", minimum=1)
    return checked(
        RankEnv(
            rank=variables.integer(environ, "RANK"),
            local_rank=variables.integer(environ, "LOCAL_RANK"),
            world_size=variables.integer(environ, "WORLD_SIZE", minimum=1),
            local_world_size=variables.integer(environ, "LOCAL_WORLD_SIZE", minimum=1),
            instance_rank=variables.integer(environ, "GROUP_RANK"),
            instance_count=instance_count,
            master_addr=master.address(environ, instance_count),
            master_port=master.port(environ),
            launcher="torchrun",
        ),
        rank="RANK",
        world_size="WORLD_SIZE",
        local_rank="LOCAL_RANK",
        local_world_size="LOCAL_WORLD_SIZE",
        instance_rank="GROUP_RANK",
        instance_count="GROUP_WORLD_SIZE",
    )
