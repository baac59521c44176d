"""Variables that allranks sets and Azure ML does not."""

from __future__ import annotations

import re
from collections.abc import Mapping

from allranks.contract import variables

SIZE = "ALLRANKS_SIZE"
"""The Azure size of the instance, such as Standard_ND96asr_v4, set by `allranks submit`, a component or a user. Without
it the runtime inspects the instance."""

NO_SIZE = "none"
"""The value of SIZE that leaves every network setting to the user and to NCCL."""

GPUS_SHARED = "ALLRANKS_GPUS_SHARED"
"""Set to 1 if several ranks train on one GPU, which NCCL rejects. On Azure ML every rank has its own GPU."""


def gpus_shared(environ: Mapping[str, str]) -> bool:
    """Return whether the ranks of an instance share its GPUs."""
    return environ.get(GPUS_SHARED, "") == "1"


JOIN_SECONDS = "ALLRANKS_JOIN_SECONDS"
"""How long the ranks of a job wait at the start for those of other instances, which Azure ML starts minutes apart."""

DEFAULT_JOIN_SECONDS = 600.0


def join_seconds(environ: Mapping[str, str], default: float = DEFAULT_JOIN_SECONDS) -> float:
    """Return the seconds to wait for the ranks of other instances. Raise InputError unless it is a whole number."""
    return float(variables.integer(environ, JOIN_SECONDS, minimum=1, default=None) or default)


ELASTIC_INSTANCES = "ALLRANKS_ELASTIC_INSTANCES"
"""The range of instances of an elastic job, such as 3:4, which the user sets in the environment variables: with the
batch of 4 instances, it may continue on 3 if one does not come back."""


def elastic_instances(environ: Mapping[str, str]) -> tuple[int, int] | None:
    """Return the least and the full number of instances of an elastic job; None for any other job.

    Raise InputError for a value that is not such a range."""
    value = variables.text(environ, ELASTIC_INSTANCES)
    if value is None:
        return None
    match = re.fullmatch(r"([0-9]{1,6}):([0-9]{1,6})", value)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        expected = "MINIMUM:MAXIMUM, such as 3:4"
        raise variables.wrong(
            ELASTIC_INSTANCES, repr(value), expected, "give the least and the full number of instances"
        )
    return int(match[1]), int(match[2])
