"""Fork the workers of a per-node launcher, such as torchrun, which start as new processes of the launcher otherwise.

It gains most of a launch: torchrun with two workers that import torch takes 1.7 s of CPU time, and 6.3 s without it.

The launcher's own process has imported and changed too much, and has threads. Workers are therefore forked by a helper
that was forked before the launcher began. They are children of the launcher all the same: the helper's child forks a
worker and exits, and the launcher adopts it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from allranks.local.forkserver.preloaded import close_all_but
from allranks.local.instances import kernel

TORCHRUN = frozenset({"torchrun", "torch.distributed.run", "torch.distributed.launch"})
LAUNCHERS = TORCHRUN | {
    "accelerate",
    "accelerate.commands.launch",
    "accelerate.commands.accelerate_cli",
    "deepspeed",
    "deepspeed.launcher.launch",
    "deepspeed.launcher.runner",
}
"""Launchers that start workers: the names of their console scripts and modules."""

IMPORT_TIME = ("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "LD_", "MALLOC_", "PYTHON", "TF_", "XLA_", "HF_", "USE_")
"""Prefixes of variables that are read when packages are imported. A worker with another value of one is not forked."""

REQUEST = 1 << 18
"""Maximum bytes of a request."""

Run = Callable[[Mapping[str, Any], Sequence[int]], NoReturn]


def program_name(python: Mapping[str, Any]) -> str:
    """Return the name of a program, as of LAUNCHERS. python: as of `expanded_command.PythonProgram`"""
    return str(python["module"]) or os.path.basename(python["script"])


def start_helper(run: Run, kept: frozenset[int]) -> int:
    """Start the helper of this process, which must not have begun its work. Return the descriptor to it.

    run: runs a worker in a process that has just been forked, with the descriptors of its streams
    kept: descriptors of imported modules
    """
    kernel.become_subreaper()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork():
        theirs.close()
        return ours.detach()
    try:
        ours.close()
        signal.set_wakeup_fd(-1)
        # It shares the launcher's process group, so that workers do too, but ends only with the launcher.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        close_all_but({0, 1, 2, theirs.fileno(), *kept})
        _serve(theirs, run)
    finally:
        os._exit(1)


def fork_workers(descriptor: int) -> None:
    """Patch `subprocess` to fork the Python programs that this process starts. Other programs start as before.

    descriptor: of `start_helper`
    """
    connection = socket.socket(fileno=descriptor)
    original: Any = subprocess.Popen._execute_child  # type: ignore[attr-defined]
    own = dict(os.environ)

    def execute(
        self: Any, args: Any, executable: Any, preexec: Any, close: Any, passed: Any, cwd: Any, env: Any, *rest: Any
    ) -> None:
        # startupinfo, creationflags, shell, six pipe ends, restore_signals, gid, gids, uid, umask, start_new_session,
        # and since Python 3.11 process_group
        pipes, settings = rest[3:9], rest[9:]
        others = (executable, preexec, *passed, rest[2] or None, *settings[1:4])
        plain = all(value is None for value in others) and settings[4] == -1 and settings[6:] in ((), (-1,), (None,))
        python = _python_program(args) if plain and close else None
        environment = dict(os.environ if env is None else env)
        if python is not None and _has_same_imports(own, environment):
            request = {
                "arguments": list(args),
                "environment": environment,
                "folder": os.path.abspath(cwd or "."),
                "log": "",
                "python": python,
                "session": bool(settings[5]),
            }
            ends = [end if end != -1 else number for number, end in enumerate((pipes[0], pipes[3], pipes[5]))]
            pid = _request(connection, request, ends)
            if pid:
                self.pid = pid
                self._child_created = True
                self._close_pipe_fds(*pipes)
                return
        original(self, args, executable, preexec, close, passed, cwd, env, *rest)

    subprocess.Popen._execute_child = execute  # type: ignore[attr-defined]


def _python_program(arguments: Any) -> dict[str, Any] | None:
    """Return the Python program, as of `expanded_command.PythonProgram`, that the arguments start; None for others."""
    if not isinstance(arguments, (list, tuple)) or not all(isinstance(argument, str) for argument in arguments):
        return None
    name, *words = arguments
    if name != sys.executable:
        return None
    options = []
    while words[:1] == ["-u"]:
        options.append(words.pop(0))
    program = {"executable_name": name, "options": options, "variables": {}, "script": "", "module": ""}
    if words[:1] == ["-m"] and len(words) > 1:
        return {**program, "module": words[1], "arguments": words[2:]}
    if words and not words[0].startswith("-"):
        return {**program, "script": words[0], "arguments": words[1:]}
    return None


def _has_same_imports(own: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Return whether imports have the same effect in both environments."""
    names = {name for name in {*own, *other} if name.startswith(IMPORT_TIME)}
    return all(own.get(name) == other.get(name) for name in names)


def _request(connection: socket.socket, request: Mapping[str, Any], descriptors: Sequence[int]) -> int:
    """Return the process id of the worker; 0 if it could not be forked."""
    try:
        socket.send_fds(connection, [json.dumps(request).encode()], descriptors)
        return int(connection.recv(64) or b"0")
    except (OSError, ValueError):
        return 0


def _serve(connection: socket.socket, run: Run) -> NoReturn:
    """Fork workers until the launcher ends."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(connection, REQUEST, 3)
        if not data:
            os._exit(0)
        connection.send(str(_fork(json.loads(data), descriptors, run)).encode())
        for descriptor in descriptors:
            os.close(descriptor)


def _fork(request: Mapping[str, Any], descriptors: Sequence[int], run: Run) -> int:
    """Fork a worker that the launcher adopts. Return its process id."""
    reader, writer = os.pipe()
    adopted, hold = os.pipe()
    middle = os.fork()
    if not middle:
        worker = os.fork()
        if worker:
            os.write(writer, str(worker).encode())
            os._exit(0)
        os.close(hold)
        os.read(adopted, 1)  # ends when this process has its final parent
        run(request, descriptors)
    os.close(writer)
    pid = int(os.read(reader, 64) or b"0")
    os.waitpid(middle, 0)
    for descriptor in (reader, adopted, hold):
        os.close(descriptor)
    return pid
