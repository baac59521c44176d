"""The program `python` at the front of the PATH of a step's shell. It asks the instance's agent to fork the program,
and represents the forked process: it passes signals on, and exits as that process exits.

A program that the agent does not fork is executed in place of this one. This module imports built-in modules only, and
is imported by itself: the package `allranks` would double the time of its start.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import fcntl
import marshal
import posix
import sys

SOCKET, PROGRAMS, EXECUTABLE = "socket", "bin", "python"
"""In the folder of an instance: the socket of the agent, the folder on PATH, and `sys.executable` of launchers."""

EXECUTE, FORKED = b"execute", b"forked"
"""The agent's answers. After the second one it sends the exit code of the process."""

_PEER = 17  # SO_PEERCRED
_ENCODING = sys.getfilesystemencoding()


def main(folder: str, program: str, name: str) -> None:
    """Run a program with the arguments of this process, and exit as the program exits.

    folder:  the folder of the instance
    program: the path of the program that this process represents
    name:    its argv[0]
    """
    environment = _environment(folder, program)
    mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
    agent = _request_fork(folder, (program, name, sys.argv[1:], environment, [int(number) for number in mask]))
    if agent is None:
        _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)  # Python ignores it
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
        posix.execve(program, [name, *sys.argv[1:]], environment)
    else:
        _leave(_wait(agent))


def _environment(folder: str, program: str) -> dict[bytes, bytes]:
    """Return the environment as it would be without this program."""
    with open("/proc/self/environ", "rb") as file:  # Python itself may have set LC_CTYPE
        variables = file.read().split(b"\0")
    environment = dict(variable.split(b"=", 1) for variable in variables if b"=" in variable)
    own = f"{folder}/{PROGRAMS}".encode(_ENCODING, "surrogateescape")
    if b"PATH" in environment:
        environment[b"PATH"] = b":".join(entry for entry in environment[b"PATH"].split(b":") if entry != own)
    if environment.get(b"_", b"").startswith(own):
        environment[b"_"] = program.encode(_ENCODING, "surrogateescape")
    return environment


def _request_fork(folder: str, request: tuple[object, ...]) -> _socket.socket | None:
    """Have the program forked. Return the connection to the agent; None if it is to be executed."""
    descriptors = [number for number in map(int, posix.listdir("/proc/self/fd")) if _is_inherited(number)]
    agent = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    try:
        place = posix.open(folder, posix.O_PATH | posix.O_CLOEXEC)
        agent.connect(f"/proc/self/fd/{place}/{SOCKET}")  # the path of a socket may have 107 characters
        posix.close(place)
        numbers = b"".join(number.to_bytes(4, sys.byteorder) for number in descriptors)
        rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, numbers)] if descriptors else []
        agent.sendmsg([marshal.dumps([*request, descriptors], 2)], rights)
        if agent.recv(16) != FORKED:
            return None
    except OSError:  # no agent forks here, or the request is too large
        return None
    for number in descriptors:
        posix.close(number)  # a reader of a pipe would wait for this process, too
    return agent


def _is_inherited(descriptor: int) -> bool:
    try:
        return posix.get_inheritable(descriptor)
    except OSError:  # the descriptor of the listing itself
        return False


def _wait(agent: _socket.socket) -> int:
    """Pass signals on until the process has ended. Return its exit code; if negative, the number of a signal."""
    credentials = agent.getsockopt(_socket.SOL_SOCKET, _PEER, 12)
    leads, sender = posix.getpgrp() == posix.getpid(), int.from_bytes(credentials[:4], sys.byteorder)
    # SIGIO announces messages. The first one may have arrived already.
    fcntl.fcntl(agent.fileno(), fcntl.F_SETOWN, posix.getpid())
    fcntl.fcntl(agent.fileno(), fcntl.F_SETFL, posix.O_ASYNC)
    posix.kill(posix.getpid(), _signal.SIGIO)
    while True:
        signal = _signal.sigwaitinfo(_signal.valid_signals())
        try:
            if signal.si_signo == _signal.SIGIO:
                return _code(agent)
            # The agent has sent its own signals to the forked process, too.
            if signal.si_signo != _signal.SIGCHLD and signal.si_pid != sender:
                agent.send(bytes([signal.si_signo, leads]))  # who signals the leader of a group signals all of it
        except (BlockingIOError, BrokenPipeError):  # SIGIO also comes when the connection can be written again
            continue


def _code(agent: _socket.socket) -> int:
    try:
        answer = agent.recv(16, _socket.MSG_DONTWAIT)
    except ConnectionResetError:  # the agent has not read the last signal. Its last message is still there.
        answer = agent.recv(16, _socket.MSG_DONTWAIT)
    return int(answer or -_signal.SIGKILL)


def _leave(code: int) -> None:
    if code < 0:
        if -code not in (_signal.SIGKILL, _signal.SIGSTOP):
            _signal.signal(-code, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [-code])
        posix.kill(posix.getpid(), -code)
    posix._exit(code)
