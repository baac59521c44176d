"""Run a script of one's own on a rank that mpirun has started."""

from __future__ import annotations

from own_script import command_line, parser

from allranks.errors import InputError, Problem
from allranks.runtime import clean_exit, detect, failure
from allranks.runtime.__main__ import run


def prepared() -> list[str]:
    """Return the command line. Raise InputError if mpirun did not start this process."""
    args = parser(__doc__).parse_args()
    env = detect()
    if env.launcher != "mpi":
        raise InputError(
            Problem(
                where=f"rank {env.rank} of {env.world_size}",
                found=f"launcher {env.launcher}",
                expected="mpirun",
                fix="set distribution.type to mpi, or use the component run_torchrun",
            )
        )
    return command_line(args)


def main() -> None:
    try:
        command = prepared()
    except BaseException as error:
        clean_exit.leave(failure.record(error))
    run(command)


if __name__ == "__main__":
    main()
