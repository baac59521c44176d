"""What the kernel shows of a process: its name, arguments and environment."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence

PR_SET_NAME = 15
PR_SET_MM = 35
PR_SET_MM_MAP = 14
NO_EXECUTABLE = (1 << 32) - 1


class _MemoryMap(ctypes.Structure):
    """struct prctl_mm_map."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in (
            "start_code", "end_code", "start_data", "end_data", "start_brk", "brk", "start_stack",
            "arg_start", "arg_end", "env_start", "env_end",
        )),
        ("auxv", ctypes.c_void_p),
        ("auxv_size", ctypes.c_uint32),
        ("exe_fd", ctypes.c_uint32),
    ]  # fmt: skip


def set_title(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Let /proc/PID/cmdline, comm and environ of this process be those of a program that was started with these
    arguments and this environment. Some kernels do not permit it; the process then keeps those of its parent."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_NAME, os.path.basename(os.fsencode(arguments[0]))[:15] + b"\0", 0, 0, 0)
    title = b"".join(os.fsencode(argument) + b"\0" for argument in arguments)
    variables = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in environment.items())
    with open("/proc/self/stat", "rb") as file:
        # From the fourth field on, at its number. The second is the name in parentheses.
        fields = [0, 0, 0, 0, *(int(field) for field in file.read().rpartition(b")")[2].split()[1:])]
    libc.malloc.restype = ctypes.c_void_p
    libc.sbrk.restype = ctypes.c_void_p
    area = libc.malloc(len(title) + len(variables))  # used until the process ends
    if not area:
        return
    ctypes.memmove(area, title + variables, len(title) + len(variables))
    middle = area + len(title)
    layout = _MemoryMap(
        start_code=fields[26],
        end_code=fields[27],
        start_stack=fields[28],
        start_data=fields[45],
        end_data=fields[46],
        start_brk=fields[47],
        brk=libc.sbrk(0),
        arg_start=area,
        arg_end=middle,
        env_start=middle,
        env_end=middle + len(variables),
        exe_fd=NO_EXECUTABLE,
    )
    libc.prctl(PR_SET_MM, PR_SET_MM_MAP, ctypes.byref(layout), ctypes.c_ulong(ctypes.sizeof(layout)), 0)
