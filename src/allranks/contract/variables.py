"""Read environment variables as numbers and texts, with errors for invalid ones, and the master's address and port.

An empty variable counts as not set. The ranks of a job connect to the master, on the first instance. Variables whose
names begin with ALLRANKS are set by allranks, not by Azure ML.
"""

import re
from collections.abc import Mapping
from typing import Literal, TypeVar

from allranks.errors import InputError, Problem

_Default = TypeVar("_Default", bound="int | None")

MASTER_PORT = 6105
"""The default port of Azure ML (its distributed GPU training guide)."""

LOOPBACK = "127.0.0.1"


def text(environ: Mapping[str, str], name: str) -> str | None:
    """Return a variable's value; None if it is not set or blank."""
    return environ.get(name, "").strip() or None


def integer(
    environ: Mapping[str, str],
    name: str,
    *,
    minimum: int = 0,
    below: int | None = None,
    default: _Default | Literal["required"] = "required",
) -> int | _Default:
    """Return a variable's value as an integer, at least `minimum` and less than `below`; `default` if it is not set.

    Raise InputError if it is not set and has no default, is not an integer, or is out of range.
    """
    value = text(environ, name)
    expected = f"a whole number of at least {minimum}" + (f", below {below}" if below is not None else "")
    if value is None:
        if default == "required":
            raise missing(name, expected)
        return default
    # int() would also accept "1_000" and digits of other scripts.
    digits = value.removeprefix("-")
    number = int(value) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None
    if number is None or number < minimum or (below is not None and number >= below):
        raise wrong(name, repr(value), expected)
    return number


def missing(name: str, expected: str, fix: str = "") -> InputError:
    """Return the InputError for a required variable that is not set."""
    return wrong(name, "is not set", expected, fix or f"start the process with a launcher that sets {name}, or set it")


def wrong(name: str, found: str, expected: str, fix: str = "") -> InputError:
    """Return the InputError for an invalid variable, or for two variables that contradict each other."""
    fix = fix or f"unset {name} if it is left from another launcher, or correct it"
    return InputError(Problem(f"environment variable {name}", found, expected, fix))


def master_port(environ: Mapping[str, str]) -> int:
    """Return MASTER_PORT, or Azure ML's default. Raise InputError if the variable is not a port."""
    return integer(environ, "MASTER_PORT", minimum=1, below=65536, default=MASTER_PORT)


def master_address(environ: Mapping[str, str], instance_count: int) -> str | None:
    """Return the first instance's address; None if there are several instances and no variable has the address.

    MASTER_ADDR comes first: if Azure ML does not set it, the user or an outer launcher did. Next is
    AZ_BATCH_MASTER_NODE, such as `10.0.0.4:6000`, whose port is Azure Batch's own and is dropped.
    AZ_BATCHAI_MPI_MASTER_NODE is meant for a single instance, and may be `localhost`, which is not an address for
    several (hi-ml#588). Some clusters outside Azure ML set MASTER_IP.
    """
    if master_addr := text(environ, "MASTER_ADDR"):
        return master_addr
    if batch := text(environ, "AZ_BATCH_MASTER_NODE"):
        return split_endpoint(batch)[0]
    single = text(environ, "AZ_BATCHAI_MPI_MASTER_NODE")
    if single and (instance_count == 1 or single not in ("localhost", LOOPBACK)):
        return single
    return text(environ, "MASTER_IP") or (LOOPBACK if instance_count == 1 else None)


def unusual_port(port: int) -> dict[str, str]:
    """Return {"MASTER_PORT": port} if the port is not the default, else {}."""
    return {} if port == MASTER_PORT else {"MASTER_PORT": str(port)}


def split_endpoint(endpoint: str) -> tuple[str, int | None]:
    """Split `host:port` into host and port. Without a port, return the host and None."""
    host, _, tail = endpoint.rpartition(":")
    return (host, int(tail)) if host and tail.isdecimal() else (endpoint, None)


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
"""Seconds that the ranks of a job wait at the start for other instances, which Azure ML starts minutes apart."""

DEFAULT_JOIN_SECONDS = 600.0


def join_seconds(environ: Mapping[str, str], default: float = DEFAULT_JOIN_SECONDS) -> float:
    """Return the seconds to wait for the ranks of other instances. Raise InputError unless it is a whole number."""
    return float(integer(environ, JOIN_SECONDS, minimum=1, default=None) or default)


ELASTIC_INSTANCES = "ALLRANKS_ELASTIC_INSTANCES"
"""The range of instances of an elastic job, such as 3:4: it trains with the batch of 4 instances, and may continue on 3
if one is lost. Set by the user."""


def elastic_instances(environ: Mapping[str, str]) -> tuple[int, int] | None:
    """Return the minimum and the full number of instances of an elastic job; None for any other job.

    Raise InputError for a value that is not such a range."""
    value = text(environ, ELASTIC_INSTANCES)
    if value is None:
        return None
    match = re.fullmatch(r"([0-9]{1,6}):([0-9]{1,6})", value)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        expected = "MINIMUM:MAXIMUM, such as 3:4"
        raise wrong(ELASTIC_INSTANCES, repr(value), expected, "give the least and the full number of instances")
    return int(match[1]), int(match[2])
