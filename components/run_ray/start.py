"""Run a script of one's own on the head of a Ray cluster, once every instance has joined it."""

from __future__ import annotations

import os
import sys
import time

from own_script import command_line, parser

from allranks.contract import instance
from allranks.errors import InputError, Problem
from allranks.runtime import clean_exit, failure, note
from allranks.runtime.__main__ import run

JOIN_SECONDS = 300.0
"""Time limit for the instances to join the cluster."""


def prepared() -> list[str] | None:
    """Return the command line once the cluster is complete; None on an instance that only serves.

    Raise InputError if there is no cluster, TimeoutError if instances are missing.
    """
    inputs = parser(__doc__)
    inputs.add_argument("--join_seconds", type=float, default=JOIN_SECONDS)
    args = inputs.parse_args()
    if not os.environ.get("RAY_ADDRESS"):
        raise InputError(
            Problem(
                where="environment variable RAY_ADDRESS",
                found="is not set: Ray would start a cluster of this instance alone",
                expected="the address of the cluster's head",
                fix="set distribution.type to ray",
            )
        )
    command = command_line(args)
    rank, count = instance.read(os.environ) or (0, 1)
    if rank > 0:
        note("this instance serves the Ray cluster; the script runs on its head")
        return None
    wait_for(count, args.join_seconds)
    return command


def wait_for(count: int, seconds: float) -> None:
    """Wait until `count` nodes are in the cluster. Raise TimeoutError, or ConnectionError if there is no cluster."""
    import ray

    ray.init(log_to_driver=False, logging_level="warning")
    deadline = time.monotonic() + seconds
    while (alive := sum(node["Alive"] for node in ray.nodes())) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{alive} of {count} instances have joined the Ray cluster within {seconds:g} s")
        time.sleep(0.2)
    ray.shutdown()  # the script connects by itself


def main() -> None:
    try:
        command = prepared()
    except BaseException as error:
        clean_exit.leave(failure.record(error))
    if command is None:
        sys.exit(0)
    run(command)


if __name__ == "__main__":
    main()
