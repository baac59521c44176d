"""Program that starts another one on an instance as a user who can be reached by ssh: with the files of /etc and the
home that the launcher made for the instance."""

from __future__ import annotations

import os
import pwd

from allranks.local.instances import kernel

PORT = 22
UNPRIVILEGED_PORTS = "/proc/sys/net/ipv4/ip_unprivileged_port_start"


def enter(etc: str, user: str, group: str, *command: str) -> None:
    """Mount the files and execute the command in place of this process. Raise OSError if that is not permitted.

    etc:   the folder whose files and folders take the place of those of /etc with the same name
    user:  the ordinary user to be where root is not root of the machine: sshd as root changes to other users, which
           such a root cannot
    group: of the user
    """
    kernel.unshare(kernel.NEWNS)
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    for name in os.listdir(etc):
        kernel.mount(f"{etc}/{name}", f"/etc/{name}", flags=kernel.MS_BIND)
    if _only_one_user():
        with open(UNPRIVILEGED_PORTS, "w", encoding="utf-8") as file:
            file.write(str(PORT))
        outer_user, outer_group = os.geteuid(), os.getegid()
        kernel.unshare(kernel.NEWUSER)
        kernel.map_identity(int(user), outer_user, int(group), outer_group)
    account = pwd.getpwuid(os.getuid())
    login = {"HOME": account.pw_dir, "USER": account.pw_name, "LOGNAME": account.pw_name, "SHELL": account.pw_shell}
    os.execvpe(command[0], command, {**os.environ, **login})


def _only_one_user() -> bool:
    """Return whether this process is in a user namespace with a single user."""
    with open("/proc/self/uid_map", encoding="utf-8") as file:
        return [line.split()[2] for line in file] == ["1"]
