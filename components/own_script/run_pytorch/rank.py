"""Run a user's program in a process that a launcher has started: `python rank.py PROGRAM [ARGUMENT ...]`."""

import os
import shlex
import sys
from pathlib import Path
from typing import NoReturn

from allranks.runtime import clean_exit
from allranks.runtime.__main__ import run
from allranks_steps.messages import bad_input
from allranks_steps.own_script import expanded


def run_program(command: list[str]) -> NoReturn:
    """Run the program with variables such as $LOCAL_RANK in its arguments replaced by this process's, and exit.

    A Python script runs in this process, with the libraries that the runtime prepares. Anything else replaces it.
    """
    try:
        program, *arguments = command
        arguments = expanded(arguments, os.environ)
        if not program.endswith(".py"):
            _become(program, arguments)
    except BaseException as error:
        clean_exit.leave(clean_exit.record(error))
    run([program, *arguments])


def _become(program: str, arguments: list[str]) -> None:
    """Replace this process by a program. Files of a mount are not executable: the first line of a script names its
    interpreter, and a binary is copied into memory."""
    content = Path(program).read_bytes()
    if content.startswith(b"#!"):
        interpreter = shlex.split(content.splitlines()[0][2:].decode())
        os.execvp(interpreter[0], [*interpreter, program, *arguments])
    if program.endswith(".sh"):
        os.execvp("bash", ["bash", program, *arguments])
    if not content.startswith(b"\x7fELF"):
        found = f"{program}, which is neither a script with #! nor a Linux program"
        raise bad_input("input script", found, "a .py or .sh file, or a program", "name another file")
    if os.access(program, os.X_OK):
        os.execv(program, [program, *arguments])
    memory = os.memfd_create(Path(program).name)
    with open(memory, "wb", closefd=False) as copy:
        copy.write(content)
    os.execve(memory, [program, *arguments], os.environ)


if __name__ == "__main__":
    run_program(sys.argv[1:])
