"""Print what a process can see of itself, as JSON."""

# ruff: noqa: E402

import sys

before = sorted(sys.modules)

import atexit
import gc
import json
import locale
import logging
import multiprocessing
import os
import random
import resource
import signal
import threading
import time
import warnings


def stream(value):
    buffer = value.buffer
    return {
        "type": str(type(value)),
        "buffer": str(type(buffer)),
        "raw": str(getattr(buffer, "raw", None)),
        "settings": [value.name, value.mode, value.encoding, value.errors, value.line_buffering, value.write_through],
        "tty": value.isatty(),
        "fileno": value.fileno(),
        "seekable": value.seekable(),
        "same": value is getattr(sys, f"__{value.name.strip('<>')}__"),
    }


with open("/proc/self/cmdline", "rb") as file:
    command_line = file.read().decode()
with open("/proc/self/comm") as file:
    name = file.read()
with open("/proc/self/environ", "rb") as file:
    initial = sorted(file.read().decode().split("\0"))
with open("/proc/self/status") as file:
    signals = [line for line in file if line.startswith(("Sig", "Shd")) and not line.startswith("SigQ")]
    file.seek(0)
    status = [line for line in file if line.startswith(("Uid", "Gid", "Groups", "Threads", "NoNewPrivs", "Cap"))]
descriptors = {
    number: os.readlink(f"/proc/self/fd/{number}")
    for number in sorted(os.listdir("/proc/self/fd"))
    if os.path.exists(f"/proc/self/fd/{number}")
}

json.dump(
    {
        "sys": {
            "argv": sys.argv,
            "orig_argv": sys.orig_argv,
            "path": sys.path,
            "flags": str(sys.flags),
            "executable": sys.executable,
            "prefix": [sys.prefix, sys.base_prefix, sys.exec_prefix],
            "warnoptions": sys.warnoptions,
            "xoptions": sys._xoptions,
            "meta_path": list(map(str, sys.meta_path)),
            "path_hooks": len(sys.path_hooks),
            "recursion": sys.getrecursionlimit(),
            "switch": sys.getswitchinterval(),
            "trace": [str(sys.gettrace()), str(sys.getprofile())],
            "hooks": [sys.excepthook is sys.__excepthook__, sys.unraisablehook is sys.__unraisablehook__],
            "stdin": stream(sys.stdin),
            "stdout": stream(sys.stdout),
            "stderr": stream(sys.stderr),
            "bytecode": [sys.dont_write_bytecode, sys.pycache_prefix],
            "importers": [path for path in sys.path_importer_cache if "allranks/local" in path],
        },
        "main": {
            name: str(value).split(" object at ")[0] for name, value in sorted(globals().items()) if name[0] == "_"
        },
        "own": [name for name in before if name.split(".")[0] == "allranks"],
        "os": {
            "environ": dict(os.environ),
            "cwd": os.getcwd(),
            "umask": os.umask(0o22),
            "leads": [os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid()],
            "terminal": os.path.exists("/dev/tty") and os.access("/dev/tty", os.R_OK),
            "descriptors": descriptors,
            "inheritable": [os.get_inheritable(number) for number in (0, 1, 2)],
            "priority": os.getpriority(os.PRIO_PROCESS, 0),
            "limits": [resource.getrlimit(limit) for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_STACK)],
            "affinity": sorted(os.sched_getaffinity(0)),
        },
        "kernel": {
            "command_line": command_line,
            "name": name,
            "environ": initial,
            "signals": signals,
            "status": status,
            "executable": os.readlink("/proc/self/exe"),
        },
        "signal": {
            "handlers": {number: str(signal.getsignal(number)) for number in sorted(signal.valid_signals())},
            "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
            "wakeup": signal.set_wakeup_fd(-1),
            "timer": signal.getitimer(signal.ITIMER_REAL),
        },
        "locale": [locale.setlocale(locale.LC_ALL), str(locale.getlocale()), time.tzname],
        "warnings": [str(each) for each in warnings.filters],
        "atexit": atexit._ncallbacks(),
        "threading": [
            [thread.name for thread in threading.enumerate()],
            threading.main_thread() is threading.current_thread(),
            threading.main_thread().native_id == os.getpid(),
            threading.main_thread().ident == threading.get_ident(),
            len(os.listdir("/proc/self/task")),
        ],
        "multiprocessing": [
            multiprocessing.current_process().name,
            multiprocessing.parent_process(),
            multiprocessing.get_start_method(allow_none=True),
            multiprocessing.process.ORIGINAL_DIR,
            multiprocessing.active_children(),
        ],
        "gc": [gc.isenabled(), gc.get_threshold(), gc.get_debug()],
        "logging": [logging.root.handlers, logging.root.level, len(logging._handlers)],
        "parent": os.getppid() != 0,
        "times": [time.process_time() < 60, os.times().children_user],
        "random": 0 <= random.random() < 1,
    },
    sys.stdout,
    indent=1,
    default=str,
)
