"""Fork a rank from an agent that has the modules of its script."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from allranks.local.forkserver import finish, python_state, rank_server, streams, workers
from allranks.local.forkserver.preloaded import Preloaded
from allranks.local.forkserver.process_title import set_title
from allranks.local.forkserver.python_command import PythonCommand, resolve
from allranks.local.instances.agent import spawn


def start(program: Mapping[str, Any], preloaded: Preloaded) -> int:
    """Start a program and return its process id without waiting: fork it if it is a Python program.

    program: as of `programs.Program.data`
    """
    if program["serves"]:
        return rank_server.start(program, lambda rank: run(rank, preloaded))
    if program.get("python") is None:
        return spawn.start(program)
    pid = os.fork()
    if not pid:
        run(program, preloaded)
    return pid


def run(program: Mapping[str, Any], preloaded: Preloaded) -> NoReturn:
    """Be the rank, in a process that has just been forked.

    A program that cannot be run here, such as one whose script is a folder, is executed as a new one.
    """
    helper = -1
    try:
        os.setsid()
        if workers.launches_workers(program["python"]):
            helper = workers.start_helper(partial(_run_worker, preloaded=preloaded), preloaded.descriptors)
        empty = os.open(os.devnull, os.O_RDONLY)
        log = os.open(program["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        streams.replace_descriptors(empty, log, log, kept={helper, *preloaded.descriptors})
    except BaseException as error:
        _fail(program, error)
    _run(program, preloaded, helper)


def _run_worker(program: Mapping[str, Any], descriptors: Sequence[int], preloaded: Preloaded) -> NoReturn:
    """Be a worker of a launcher, in a process that has just been forked from its helper."""
    helper = -1
    try:
        if program["session"]:
            os.setsid()
        if workers.launches_workers(program["python"]):
            helper = workers.start_helper(partial(_run_worker, preloaded=preloaded), preloaded.descriptors)
        stdin, stdout, stderr = descriptors
        streams.replace_descriptors(stdin, stdout, stderr, kept={helper, *preloaded.descriptors})
    except BaseException as error:
        _fail(program, error)
    _run(program, preloaded, helper)


def _run(program: Mapping[str, Any], preloaded: Preloaded, helper: int) -> NoReturn:
    """Run the program in this process, which has its streams. helper: of `workers.start_helper`, or -1"""
    try:
        command, environment = _become(program, preloaded)
        if command is None:
            if helper >= 0:
                os.close(helper)
            os.execve(program["arguments"][0], program["arguments"], program["environment"])
        python_state.restore(command, environment, preloaded)
        if helper >= 0:
            workers.fork_workers(helper)
    except BaseException as error:
        _fail(program, error)
    finish.leave(command.run(), preloaded)


def _become(program: Mapping[str, Any], preloaded: Preloaded) -> tuple[PythonCommand | None, dict[str, str]]:
    """Change this process's folder, environment and signals. Return its command and environment."""
    signal.set_wakeup_fd(-1)
    os.chdir(program["folder"])
    for number, handler in preloaded.handlers.items():
        if handler is not None and signal.getsignal(number) != handler:
            signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, preloaded.mask)
    environment = dict(program["environment"])
    command = resolve(program["python"], environment | program["python"]["variables"])
    if command is None:
        for number in spawn.ENDING:
            signal.signal(number, signal.SIG_DFL)
        return None, environment
    environment = _added(program, command.executable)
    set_title(command.original_arguments, environment)
    os.environ.clear()
    os.environ.update(environment)
    _repeat_changes(preloaded)
    if preloaded.output and not workers.is_torchrun(program["python"]):
        os.write(2, preloaded.output)
    return command, environment


def _repeat_changes(preloaded: Preloaded) -> None:
    """Change this process's environment as the imports have changed that of the starter."""
    here = ""
    if preloaded.temporary is not None:
        import tempfile

        tempfile.tempdir = None  # of the starter
        here = tempfile.gettempdir()
    for name, value in preloaded.variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            if preloaded.temporary and value.startswith(f"{preloaded.temporary}{os.sep}"):
                value = here + value.removeprefix(preloaded.temporary)
            os.environ.setdefault(name, value)


def _fail(program: Mapping[str, Any], error: BaseException) -> NoReturn:
    """Exit as a program that cannot be started."""
    try:
        message = f"cannot start {program['arguments'][0]} in {program['folder']}: {error}\n"
        with open(program["log"] or 2, "a", encoding="utf-8") as file:
            file.write(message)
    finally:
        os._exit(127)


def _added(program: Mapping[str, Any], executable: str) -> dict[str, str]:
    """Return the environment of a program in the working directory, as the shell of its arguments passes it on.

    executable: the path at which the shell finds the command
    """
    environment: dict[str, str] = dict(program["environment"])
    shell, *options = program["arguments"]
    if options[:1] == ["-c"]:
        inherited = environment.get("PWD", "")
        if not (os.path.isabs(inherited) and os.path.isdir(inherited) and os.path.samefile(inherited, ".")):
            environment["PWD"] = os.getcwd()
        if os.path.basename(shell) == "bash":
            environment.setdefault("SHLVL", "0")
            environment["_"] = executable
    return {**environment, **program["python"]["variables"]}
