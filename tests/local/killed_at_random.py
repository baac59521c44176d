"""Execute runs one after another, and kill a random process of each at a random moment. Print how each has ended.

Arguments: a folder, the number of runs, and the kinds of instances and of launches, separated by commas.
"""

import contextlib
import faulthandler
import random
import sys
import threading
from pathlib import Path

import psutil

from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.graph import Code, Graph, Plan, Step
from allranks.workspace import Workspace

sys.path.insert(0, str(Path(__file__).parents[1]))
import bounded

SHORT, LONG = 0.05, 2.0
"""Seconds after the first process of a run within which one is killed: half of the moments within the short time."""

BOUND = 120
"""Seconds after which a run hangs."""

# Importing scipy is worth a fork server.
SCRIPT = "import scipy, time\ntime.sleep(0.1)\n"


class Killer(threading.Thread):
    """Kills a process below this one that has started since now."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self.killed = ""
        self._before = {child.pid for child in psutil.Process().children(recursive=True)}
        self._moment = chance.random() * chance.choice([SHORT, LONG])
        self._chance = chance
        self.ended = threading.Event()

    def new(self) -> list[psutil.Process]:
        found = (each for each in psutil.Process().children(recursive=True) if each.pid not in self._before)
        return [each for each in found if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]

    def run(self) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            while not self.new() and not self.ended.is_set():
                pass
            if not self.ended.wait(self._moment) and (new := self.new()):
                victim = self._chance.choice(new)
                self.killed = " ".join(victim.cmdline())[-80:].replace("\n", " ")
                victim.kill()


def execute(folder: Path, seed: int, kinds: list[str], launches: list[str]) -> str:
    """Return the status of a run, after which no process of it is left."""
    chance = random.Random(seed)
    distribution = Mpi(1) if chance.choice(launches) == "mpi" else PyTorch(1)
    code = Code(str(folder / "code"), "digest")
    first = Step("first", "python train.py", code=code, instance_count=2, distribution=distribution)
    graph = Graph((first, Step("then", "python train.py", code=code, after=("first",))))
    track = chance.random() < 0.3
    options = Options(instances=chance.choice(kinds), track=track, grace=0.2, slots=8, force_rerun=True)
    workspace = Workspace(folder / "w")
    killer = Killer(chance)
    killer.start()
    faulthandler.dump_traceback_later(BOUND, exit=True)
    record = run(Plan("p", graph), workspace, options)
    killer.ended.set()
    bounded.join(killer)
    faulthandler.cancel_dump_traceback_later()
    _, left = psutil.wait_procs(killer.new(), timeout=BOUND)
    return f"{record.status}, left: {len(left)}, killed: {killer.killed}"


if __name__ == "__main__":
    place, count, kinds, launches = sys.argv[1:]
    Path(place, "code").mkdir()
    Path(place, "code", "train.py").write_text(SCRIPT)
    for number in range(int(count)):
        print(execute(Path(place), number, kinds.split(","), launches.split(",")), flush=True)
