"""Become torchrun on this instance, which starts a script of one's own in several processes."""

from __future__ import annotations

import argparse
import os
import sys

from own_script import command_line, parser

from allranks.errors import InputError, Problem
from allranks.runtime import RankEnv, clean_exit, detect, failure


def torchrun(args: argparse.Namespace, env: RankEnv) -> list[str]:
    """torchrun's command line for this instance.

    The rendezvous is static, since every instance is known: it is at the launch's address and port, on rank 0's
    instance. Raise InputError if the platform started several processes, each of which would start more.
    """
    if env.local_world_size > 1:
        raise InputError(
            Problem(
                where="distribution.process_count_per_instance",
                found=f"{env.local_world_size} processes on each instance",
                expected="1: torchrun starts the rest",
                fix="set it to 1, and processes to the number that each instance is to have",
            )
        )
    rendezvous = ["--standalone", "--local-addr", "127.0.0.1"]
    if env.instance_count > 1:
        rendezvous = ["--nnodes", str(env.instance_count), "--node-rank", str(env.instance_rank)]
        rendezvous += ["--master-addr", str(env.master_addr), "--master-port", str(env.master_port)]
    options = [*rendezvous, "--nproc-per-node", str(args.processes)]
    return [sys.executable, "-m", "torch.distributed.run", *options, "-m", "allranks.runtime", *command_line(args)]


def main() -> None:
    try:
        inputs = parser(__doc__)
        inputs.add_argument("--processes", type=int, default=2)
        command = torchrun(inputs.parse_args(), detect())
    except BaseException as error:
        clean_exit.leave(failure.record(error))
    # Replace this process, so that signals reach torchrun, which ends its processes.
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
