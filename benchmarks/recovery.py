"""From the eviction of one of two instances to the next training step, at 2x2 on this machine: both ranks of the
instance are killed by SIGKILL in the middle of a training, which resumes from a checkpoint.

torchrun: an agent for each instance, of which one is killed with its ranks and started again at once; and one agent
for all four ranks, which restarts them. torchft (--torchft PYTHONPATH, a folder into which it was installed): four
replicas of one rank, which continue without the killed ones; a killed one is started again at once. They are missed
after 5 s, which is torchft's default, and, for information, after 1 s.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.figures import Figure, finish
from bench.timing import environment
from bench.torchrun import BIN, PROGRAMS

from allranks.contract.pytorch import PyTorch
from allranks.history.workspace import Workspace
from allranks.local import engine
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import Output

PROGRAM = PROGRAMS / "recovering.py"
EVICTED_AT = 30
RANKS = 4
PATIENCE = 240.0
GOAL = 0.5
EARLY = "torchft, which misses a replica after 1 s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torchft", help="the folder with torchft and what it needs")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    figures = []
    with tempfile.TemporaryDirectory(prefix="allranks-recovery-") as folder:
        peers: dict[str, Callable[[Path], float]] = {
            "torchrun, an agent for each instance": lambda place: _torchrun(place, 2),
            "torchrun, one agent": lambda place: _torchrun(place, 1),
        }
        if options.torchft:
            peers["torchft"] = lambda place: _torchft(place, options.torchft, 5)
            peers[EARLY] = lambda place: _torchft(place, options.torchft, 1)
        # In turn, so that other load on the machine affects all of them.
        seconds: dict[str, list[float]] = {name: [] for name in ("ours", *peers)}
        for turn in range(options.repeat):
            for name, measure in {"ours": _ours, **peers}.items():
                place = Path(folder, f"{name}{turn}".replace(" ", "_"))
                place.mkdir()
                try:
                    seconds[name].append(measure(place))
                except RuntimeError as error:  # on a busy machine, a peer may not recover in time
                    print(f"{name}: {error}", file=sys.stderr, flush=True)
                    continue
                print(f"{name}: {seconds[name][-1]:.2f} s", file=sys.stderr, flush=True)
        ours = statistics.median(seconds["ours"])
        for name in peers:
            peer = statistics.median(seconds[name]) if seconds[name] else None
            goal = GOAL if name != EARLY else None  # not its default
            figures.append(Figure(f"eviction to next step beside {name} (s)", ours, peer, goal, of="ratio"))
    finish("From the eviction of an instance to the next training step", figures)


def _ours(folder: Path) -> float:
    command = f"{sys.executable} {PROGRAM} ${{{{outputs.out}}}}"
    output = Output("out", "uri_folder", "rw_mount")
    step = Step("train", command, outputs=(output,), distribution=PyTorch(2), instance_count=2)
    fault = f"evict:instance=1,node=train,step={EVICTED_AT},grace=0s"
    options = Options(faults=[fault, "record-steps"], track=False)
    record = engine.run(Plan("recovery", Graph((step,))), Workspace(folder / ".allranks"), options)
    evicted, out = record.faults[0].time, Path(record.steps[0].outputs[0].path)
    return _first(out, lambda line, before: line["process"] not in before, evicted) - evicted


def _torchrun(folder: Path, agents: int) -> float:
    """agents: with 2, one is evicted with its ranks and started again at once; 1 starts its evicted ranks itself"""
    options = {
        "nnodes": agents,
        "nproc-per-node": RANKS // agents,
        "max-restarts": 10,
        "rdzv-backend": "c10d",
        "rdzv-endpoint": f"127.0.0.1:{_free_ports(1)[0]}",
        "local-addr": "127.0.0.1",
    }
    launch = [str(BIN / "torchrun"), *(f"--{name}={value}" for name, value in options.items())]
    started = []
    for number in range(agents):
        # The evicted agent does not serve the rendezvous. It is missed after three intervals.
        rendezvous = f"--rdzv-conf=keep_alive_interval=1,is_host={int(number == 0)}"
        command = [*launch, rendezvous, str(PROGRAM), str(folder / "out")]
        # Its own store for each round: in a shared one, restarted ranks find the addresses of those before them.
        started.append((command, {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}))
    with _started(folder, *started) as pids:
        lines = _lines_until(folder / "out", EVICTED_AT)
        if agents == 1:
            evicted = _kill(*{line["pid"] for line in lines if line["rank"] >= RANKS // 2})
        else:
            evicted = _kill(pids[-1], *{line["pid"] for line in lines if line["parent"] == pids[-1]})
        with _started(folder, *started[1:]):
            return _first(folder / "out", lambda line, before: line["process"] not in before, evicted) - evicted


def _torchft(folder: Path, packages: str, heartbeat: int) -> float:
    """heartbeat: seconds after which a replica is missed"""
    lighthouse, *stores = _free_ports(5)
    variables = {
        "PYTHONPATH": packages,
        "TORCHFT_LIGHTHOUSE": f"http://127.0.0.1:{lighthouse}",
        "MASTER_ADDR": "127.0.0.1",
    }
    serve = [sys.executable, f"{packages}/bin/torchft_lighthouse", "--min_replicas=1"]
    serve += [f"--bind=127.0.0.1:{lighthouse}", f"--heartbeat_timeout_ms={1000 * heartbeat}"]
    replica = [sys.executable, str(PROGRAM), str(folder / "out"), "torchft"]
    replicas = [
        (replica, {**variables, "REPLICA": str(number), "MASTER_PORT": str(port), "RANK": "0", "WORLD_SIZE": "1"})
        for number, port in enumerate(stores)
    ]
    with _started(folder, (serve, variables), *replicas):
        ranks = {line["rank"]: line["pid"] for line in _lines_until(folder / "out", EVICTED_AT)}
        evicted = _kill(ranks[2], ranks[3])
        with _started(folder, *replicas[2:]):
            # The step that was being made at the eviction may still be committed.
            return _first(folder / "out", lambda line, _: line["step"] > EVICTED_AT + 1, evicted) - evicted


@contextlib.contextmanager
def _started(folder: Path, *programs: tuple[list[str], dict[str, str]]) -> Iterator[list[int]]:
    """Start programs for the duration of the block, each in a session of its own. Yield their process ids."""
    with open(folder / "log", "ab") as log:
        processes = [
            subprocess.Popen(
                command, env=environment(**more, OMP_NUM_THREADS="1"), stdout=log, stderr=log, start_new_session=True
            )
            for command, more in programs
        ]
    try:
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.terminate()  # an agent of torchrun ends its ranks, which have sessions of their own
        for process in processes:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _kill(*pids: int) -> float:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return time.time()


def _lines(folder: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in (folder / "times").read_text().splitlines() if line.endswith("}")]
    except FileNotFoundError:
        return []


def _lines_until(folder: Path, step: int) -> list[dict[str, Any]]:
    """Return the lines once every rank has made a training step."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        lines = _lines(folder)
        if len({line["rank"] for line in lines if line["step"] >= step}) == RANKS:
            return lines
        time.sleep(0.01)
    raise RuntimeError(f"no training step {step}\n{_log(folder)}")


def _first(folder: Path, counts: Callable[[dict[str, Any], set[str]], bool], evicted: float) -> float:
    """Return when the first training step after the eviction ended that counts.

    counts: is called with a line and the processes before the eviction
    """
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        lines = _lines(folder)
        before = {line["process"] for line in lines if line["time"] <= evicted}
        found = [line["time"] for line in lines if line["time"] > evicted and counts(line, before)]
        if found:
            return float(min(found))
        time.sleep(0.01)
    raise RuntimeError(f"no training step after the eviction\n{_log(folder)}")


def _log(folder: Path) -> str:
    path = folder.parent / "log"
    return path.read_text()[-6000:] if path.exists() else ""


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


if __name__ == "__main__":
    main()
