"""Jobs of some ranks that train to their end, many times over: how did their processes exit?

    python tests/runtime/soak/exits.py --ddp 200 --deepspeed 50

Every rank is a process of its own, forked from one that has imported torch and DeepSpeed: starting is mostly importing,
and what is looked at is the end. Exit codes are counted; 1 is returned where one is not 0.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import traceback
from collections import Counter

import torch
import torch._dynamo  # DistributedDataParallel imports it when it is made, which takes longer than torch itself

from allranks import runtime
from allranks.contract.launch import Launch
from allranks.contract.produce import environment, processes
from allranks.contract.pytorch import PyTorch


def train(ranks: runtime.Ranks) -> None:
    """Three steps: enough for gloo's threads, and DeepSpeed's, to be there at the end."""
    model = torch.nn.Linear(4, 2)
    training = ranks.strategy.prepare(model, torch.optim.AdamW(model.parameters()))
    for _ in range(3):
        training.backward(training.model(torch.randn(2, 4)).square().mean())
        training.step()


def job(strategy: str, ranks: int) -> list[int]:
    """The exit codes of a job's ranks, a signal's as a negative number."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    launch = Launch(PyTorch(ranks), ("127.0.0.1",), ("localhost",), port)
    children = []
    for process in processes(launch):
        child = os.fork()
        if child == 0:
            rank(strategy, environment(launch, process))
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def rank(strategy: str, place: dict[str, str]) -> None:
    try:
        os.environ.update(place)
        torch.set_num_threads(1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # DeepSpeed tells much
        runtime.main(train, strategy=strategy, timeout_seconds=60)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(99)  # never back into the loop of the parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ddp", type=int, default=0, help="jobs of DistributedDataParallel")
    parser.add_argument("--deepspeed", type=int, default=0, help="jobs of DeepSpeed, ZeRO 2")
    parser.add_argument("--ranks", type=int, default=2, help="ranks of each job")
    args = parser.parse_args()
    good = True
    for strategy, jobs in {"ddp": args.ddp, "deepspeed": args.deepspeed}.items():
        if strategy == "deepspeed" and jobs:
            import deepspeed  # noqa: F401
        codes = Counter(code for _ in range(jobs) for code in job(strategy, args.ranks))
        told = ", ".join(f"{count} x {code}" for code, count in sorted(codes.items()))
        print(f"{strategy}: {jobs} jobs of {args.ranks} ranks, exit codes: {told or 'none'}", flush=True)
        good &= set(codes) <= {0}
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
