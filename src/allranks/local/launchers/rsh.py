"""An rsh client and an rsh server, with which mpirun reaches an emulated instance as by ssh and sshd on a real one.

The server listens on a Unix socket in a folder that every instance sees and only this user may enter. It does not
depend on the instances' network. Both programs import the standard library only, as does `mpi_rank`.
"""

import contextlib
import os
import signal
import socket
import sys
import time

CLIENT_SECONDS = 30.0
"""Seconds until a server must accept connections. All instances of a step start at about the same time."""


def socket_name(host: str) -> str:
    return f"{host}.sock"


def client(folder: str, host: str, *command: str) -> None:
    """Run the command and exit with its exit code. Exit with 255, as ssh does, if the instance cannot be reached.

    folder: the folder with the sockets of the servers
    """
    os.chdir(folder)
    end = time.monotonic() + CLIENT_SECONDS
    while True:
        server_socket = socket.socket(socket.AF_UNIX)
        try:
            server_socket.connect(socket_name(host))
            break
        except (FileNotFoundError, ConnectionRefusedError) as error:
            server_socket.close()
            if time.monotonic() > end:
                print(f"{host} is not an instance of this step, or did not start: {error}", file=sys.stderr)
                os._exit(255)
            time.sleep(0.01)
    # Like ssh: one line, which the shell of the server parses, including its quotes.
    socket.send_fds(server_socket, [" ".join(command).encode()], [0, 1, 2])
    answer = server_socket.recv(1)
    os._exit(answer[0] if answer else 255)


def server(path: str) -> None:
    """Serve until this process is killed. The agent of the instance ends the commands."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the child processes
    folder, name = os.path.split(path)
    os.chdir(folder)  # the path of a socket may have 108 characters; a run's folder has more
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name)
        listener.listen()
        while True:
            connection, _ = listener.accept()
            if os.fork():
                connection.close()
                continue
            listener.close()
            os._exit(_serve(connection))


def _serve(connection: socket.socket) -> int:
    """Run one command with the client's stdin, stdout and stderr, and send it the exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    command, descriptors, _, _ = socket.recv_fds(connection, 1 << 17, 3)
    pid = os.fork()
    if not pid:
        os.setsid()
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        os.chdir("/")
        os.execv("/bin/sh", ["sh", "-c", command.decode()])
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    with contextlib.suppress(BrokenPipeError):  # the client may have exited
        connection.sendall(bytes([code if code >= 0 else 128 - code]))
    return 0
