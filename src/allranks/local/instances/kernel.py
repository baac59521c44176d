"""Linux system calls that Python before 3.12 does not offer: namespaces, mounts, the parent-death signal,
subreapers."""

import ctypes
import os
import signal
from collections.abc import Callable
from typing import Any

NEWNS = 0x00020000
NEWUTS = 0x04000000
NEWIPC = 0x08000000
NEWUSER = 0x10000000
NEWPID = 0x20000000
NEWNET = 0x40000000

MS_RDONLY = 1
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MS_SLAVE = 1 << 19

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


def _call(function: Callable[..., int], what: str, *arguments: Any) -> None:
    if function(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def unshare(flags: int) -> None:
    """Move this process (with NEWPID: its next children) into new namespaces. Raise OSError if that is not
    permitted."""
    _call(_libc.unshare, f"unshare({flags:#x})", flags)


def map_identity(user: int, outer_user: int, group: int, outer_group: int) -> None:
    """Map this process's user and group in the user namespace that it has just created. Raise OSError if that is not
    permitted."""
    for file, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {outer_user} 1"),
        ("gid_map", f"{group} {outer_group} 1"),
    ):
        with open(f"/proc/self/{file}", "w", encoding="utf-8") as mapping:
            mapping.write(text)


def setns(descriptor: int, kind: int) -> None:
    """Move this process into the namespace of the descriptor. Raise OSError on failure."""
    _call(_libc.setns, f"setns({kind:#x})", descriptor, kind)


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Call mount(2). Raise OSError, which names the target, on failure."""
    _call(
        _libc.mount,
        f"mount {kind or 'bind'} on {target}",
        source.encode(),
        target.encode(),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )


def set_hostname(name: str) -> None:
    """Set the hostname of this UTS namespace."""
    _call(_libc.sethostname, f"sethostname({name})", name.encode(), len(name.encode()))


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Ask the kernel to send a signal to this process when the thread that forked it ends."""
    _call(_libc.prctl, "prctl(PR_SET_PDEATHSIG)", PR_SET_PDEATHSIG, number, 0, 0, 0)


def become_subreaper() -> None:
    """Make this process the parent of its descendants whose own parent ends."""
    _call(_libc.prctl, "prctl(PR_SET_CHILD_SUBREAPER)", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
