"""Breaks a training in the way that the variable FAULT says, on the ranks FAULT_RANKS, in the step
FAULT_STEP, by default the third one.

The last line that it writes before that is `fault at SECONDS`, since the epoch.
"""

import ctypes
import importlib
import os
import signal
import socket
import sys
import threading
import time

FAULT = os.environ.get("FAULT", "")
RANKS = [int(rank) for rank in os.environ.get("FAULT_RANKS", "2").split(",")]
STEP = int(os.environ.get("FAULT_STEP", "2"))
STEPS = 600 if FAULT == "outside" else 5
HANGS = {"hang before": "before", "hang between": "between", "hang after": "after"}
PLACES = {"missing module": "start", "port in use": "start", **HANGS}


def strike(place, rank, step=STEP):
    """Break this rank, if it is the one, and this place in its training: start, before (the collectives of a step),
    between (two of them), or after (the last step)."""
    if FAULT == "outside" and place == "before":
        time.sleep(0.05)
    if FAULT and rank in RANKS and step == STEP and place == PLACES.get(FAULT, "before"):
        _FAULTS.get(FAULT, lambda: None)()


def strange(fault, rank, step=STEP):
    """Whether this rank has to call its collective with another shape or type, or in another order."""
    if f"{fault} mismatch" != FAULT or rank not in RANKS or step != STEP:
        return False
    tell()
    return True


def master():
    """The address of the rank that all others connect to, if it is to be another one."""
    if FAULT == "bad master":
        tell()
        return "198.51.100.7"  # of a network for documentation: nobody answers
    return None


def world_size(size, rank):
    """The number of ranks, as this rank believes."""
    if FAULT != "wrong world size" or rank not in RANKS:
        return size
    tell()
    return size + 1


def tell():
    """Say when it happens."""
    sys.stdout.flush()
    os.write(1, f"fault at {time.time():.3f}\n".encode())


def _raise():
    tell()
    raise ValueError("bad batch in shard 7")


def _thread():
    """A thread that is not a daemon keeps the interpreter from its end."""
    threading.Thread(target=time.sleep, args=(1000,)).start()
    _raise()


def _signal(number):
    tell()
    os.kill(os.getpid(), number)


def _sleep():
    tell()
    time.sleep(1000)


def _hold_gil():
    tell()
    ctypes.PyDLL(None).sleep(1000)  # PyDLL keeps the lock of the interpreter while it calls


def _use_memory():
    tell()
    bytearray(1 << 60)


def _fill_disk():
    tell()
    with open("/dev/full", "w") as file:
        file.write("weights")


def _use_port():
    with socket.create_server(("127.0.0.1", 0)) as other:
        tell()
        socket.create_server(other.getsockname()[:2])


def _import():
    tell()
    importlib.import_module("tokenizer_of_the_team")


def _nan():
    loss = float("inf") - float("inf")
    tell()
    if loss != loss:
        raise FloatingPointError(f"the loss is {loss} at step {STEP}")


def _exit():
    tell()
    print("cannot read shard 7", file=sys.stderr)
    sys.exit(3)


_FAULTS = {
    "exception": _raise,
    "exception and a thread": _thread,
    "exit code": _exit,
    "SIGKILL": lambda: _signal(signal.SIGKILL),
    "SIGSEGV": lambda: _signal(signal.SIGSEGV),
    "SIGSTOP": lambda: _signal(signal.SIGSTOP),
    **dict.fromkeys(HANGS, _sleep),
    "GIL locked": _hold_gil,
    "out of memory": _use_memory,
    "full disk": _fill_disk,
    "port in use": _use_port,
    "missing module": _import,
    "NaN": _nan,
    "outside": tell,
}
