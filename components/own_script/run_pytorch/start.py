"""Start a user's program under a launcher, or in this process if the platform starts every process."""

import os

from launchers import LAUNCHERS, RANK
from rank import run_program

from allranks.runtime import arguments
from allranks_steps.own_script import command_line


def main() -> None:
    args = arguments()
    launcher = LAUNCHERS[args.launch](args)
    program = command_line(args)
    if not launcher:
        return
    if launcher == RANK:
        run_program(program)
    # Replace this process, so that signals reach the launcher, which ends its processes.
    os.execv(launcher[0], [*launcher, *program])


if __name__ == "__main__":
    main()
