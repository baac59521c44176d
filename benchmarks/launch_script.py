"""A script on 2 instances with 2 processes each, from the shell's prompt and back: `allranks launch -j 2x2 train.py`.

The script makes one all-reduce over gloo (benchmarks/launches/ranks/pytorch.py). Wall time, medians of 5, in turn. Ours
is in a workspace that has had a run, on emulated instances, with an MLflow run, logs, record and page, as by default.

    torchrun  `torchrun --nproc-per-node 4 train.py`: one agent for the 4 ranks, and nothing but the ranks
    TorchX    `torchx run -s local_cwd dist.ddp -j 2x2 --script train.py`: two agents side by side
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench import peers
from bench.figures import Figure, finish
from bench.timing import medians, seconds
from launches.launch import RANKS, Launcher, layout_text
from launches.torchrun import VARIABLES, torchrun, torchx

from allranks.contract.layout import Layout

TIMES = 5
LAYOUT = Layout(2, 2)
GOAL = 0.5
SCRIPT = "train.py"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="allranks-launch-script-") as folder:
        figures = list(_figures(Path(folder)))
    finish(f"A script on {layout_text(LAYOUT)}, from the shell's prompt and back", figures)


def _figures(folder: Path) -> Iterator[Figure]:
    code = folder / "code"
    shutil.copytree(RANKS, code, ignore=shutil.ignore_patterns("__pycache__"))
    (code / "pytorch.py").rename(code / SCRIPT)
    (folder / "reached").mkdir()
    python = peers.python(peers.TORCHX)
    launches = [partial(seconds, _ours(folder)), partial(_peer, torchrun, folder, Layout(1, LAYOUT.world_size))]
    launches += [partial(_peer, torchx(python), folder, LAYOUT)] if python else []
    ours, *others = medians(TIMES, *launches)
    for name, peer in zip(("torchrun", "TorchX"), others, strict=False):
        yield Figure(f"allranks launch, {layout_text(LAYOUT)}, s (peer: {name})", ours, peer, GOAL, of="ratio")


def _ours(folder: Path) -> list[str]:
    command = [str(Path(sys.executable).with_name("allranks")), "launch", "-j", layout_text(LAYOUT)]
    command += ["--folder", str(folder / "workspace"), "--env", f"OMP_NUM_THREADS={VARIABLES['OMP_NUM_THREADS']}"]
    return [*command, "--output", "reached", str(folder / "code" / SCRIPT), "{reached}"]


def _peer(launcher: Launcher, folder: Path, layout: Layout) -> float:
    started = time.perf_counter()
    launcher(folder / "code", SCRIPT, layout, folder / "reached")
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
