"""A rank that ends in a given way: python ending.py HOW. It prints what its process has."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import warnings

import torch
from torch import distributed


def main(how: str) -> None:
    rank = int(os.environ["RANK"])
    print(sys.argv, os.path.basename(os.getcwd()), __name__, __file__, sorted(os.listdir("/proc/self/fd"))[:3])
    print(len(os.listdir("/proc/self/fd")), threading.active_count(), torch.get_num_threads())
    print([(name, os.environ.get(name)) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "AZUREML_NODE_COUNT", "X")])
    print([signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD)])
    warnings.warn("a warning of the script", stacklevel=1)
    print("to stderr", file=sys.stderr)
    atexit.register(print, "at exit", rank)
    distributed.init_process_group("gloo")
    distributed.barrier()  # every rank has printed what it has
    if how == "by an exception" and rank == 1:
        raise ValueError("rank 1 fails")
    if how == "with a code" and rank == 2:
        sys.exit(3)
    if how == "with a message" and rank == 0:
        sys.exit("rank 0 gives up")
    if how == "by a signal" and rank == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "at once" and rank == 0:
        os._exit(4)
    if how == "in a thread":
        threading.Thread(target=print, args=("a thread", rank)).start()
    # The others end by the engine's SIGTERM, once the first has failed.
    if how not in ("well", "in a thread"):
        signal.pause()


main(" ".join(sys.argv[1:]))
