"""The studio with thousands of runs, a log of 1 GB and large pipelines, in the server and in Chromium.

first answer
    Seconds from the start of the command to its first answer, medians of 3. Peers: `mlflow ui` and TensorBoard, on 100
    of the runs.
curves
    50 curves of each of 100 runs, 200 points each: the requests that each one's page makes for them. Ours is one, as
    the studio thins them; the peers' are one for each metric.
frames
    Frames a second, by requestAnimationFrame, for 2 s in which the page scrolls or pans at each frame.
a log line on screen
    From the time that the line states, as `date` wrote it, until the page shows it: the median of 20 lines.
a step with a studio open
    A chain of 100 steps of `true` while a page follows the runs. Peer: the same chain without a studio.

PYTHONPATH=tests python benchmarks/studio.py [--only NAME]
"""

import argparse
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.figures import Figure, finish
from bench.timing import environment, run
from studios import peers
from studios.pages import CANVAS, ROWS, Pages
from studios.processes import descendants, send
from studios.project import COMPARED, LOGGED, make_project, python_pipeline
from studios.server import ALLRANKS, Studio, studio

import free_ports
from allranks_studio.server.positions import CARD, laid_out
from chromium import PROGRAM, Browser, chromium

STEPS = Path(__file__).parent / "chains/ours.py"
TICKS = (
    "type: command\ncommand: for at in $(seq 60); do date +'tick %s.%N'; sleep 0.3; done\nenvironment: azureml:any:1\n"
)
_LATENCIES = """
new Promise((done) => {
  const seen = new Map();
  const look = () => {
    const texts = [...document.querySelectorAll("[data-part]")].at(-1)?.textContent ?? "";
    for (const [, time] of texts.slice(-400).matchAll(/tick ([0-9]+[.][0-9]{6})/g))
      if (!seen.has(time)) seen.set(time, Date.now() / 1000 - Number(time));
    if (seen.size < 22) requestAnimationFrame(look); else done([...seen.values()].slice(-20));
  };
  look();
})"""


def main() -> None:
    parts = {
        "start": _start, "server": _server, "curves": _curves, "layout": _layout, "edit": _edit, "table": _table,
        "log": _log, "canvas": _canvas, "line": _line, "step": _step,
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=parts, action="append", help="measure these figures alone")
    only = parser.parse_args().only
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="allranks-studio-") as name:
        folder = Path(name, "project")
        folder.mkdir()
        print("writing a project ...", file=sys.stderr)
        make_project(folder)
        for part, measure in parts.items():
            if only is None or part in only:
                print(f"{part} ...", file=sys.stderr)
                try:
                    figures += measure(folder)
                except (AssertionError, RuntimeError, OSError) as error:
                    print(f"{part} is left out: {error}", file=sys.stderr)
    finish("The studio", figures)


def _start(folder: Path) -> Iterator[Figure]:
    starts = []
    for _ in range(3):
        with studio(folder) as server:
            starts.append(server.seconds)
    ours = statistics.median(starts)
    yield Figure("first answer, s", ours, goal=0.5)
    for name, (first, _) in _peers(folder).items():
        yield Figure(f"first answer, s (peer: {name})", ours, first)


def _curves(folder: Path) -> Iterator[Figure]:
    with studio(folder) as server:
        server.admit()
        query = {"folder": folder.name, "runs": ",".join(COMPARED), "width": 300}
        ours = _median(lambda: server.request("/api/curves", query))
    yield Figure("100 runs x 50 curves, s", ours, goal=1.0)
    for name, (_, seconds) in _peers(folder).items():
        yield Figure(f"100 runs x 50 curves, s (peer: {name})", ours, seconds)


_measured: dict[str, tuple[float, float]] = {}


def _peers(folder: Path) -> dict[str, tuple[float, float]]:
    """Return the seconds of the first answer and of the curves, by peer."""
    if not _measured:
        with contextlib.suppress(RuntimeError, OSError):
            _measured["MLflow"] = peers.mlflow_seconds(peers.write_mlflow(folder.parent), free_ports.free_port())
        if (python := peers.tensorboard_python()) is not None:
            events = peers.write_tensorboard(folder.parent, python)
            with contextlib.suppress(RuntimeError, OSError):
                _measured["TensorBoard"] = peers.tensorboard_seconds(events, python, free_ports.free_port())
    return _measured


def _server(folder: Path) -> Iterator[Figure]:
    with studio(folder) as server:
        server.admit()
        yield Figure("all 5,000 runs, s", _median(lambda: server.request("/api/runs", {"folder": folder.name})))
        query = {"folder": folder.name, "run": LOGGED, "query": "step 123 of"}
        yield Figure("search in a log of 1 GB, s", _median(lambda: server.request("/api/log/search", query)))


def _layout(_: Path) -> Iterator[Figure]:
    needs = {f"step_{at}": [f"step_{at - 20 + at % 3 - 1}"] if at >= 20 else [] for at in range(1000)}
    started = time.process_time()
    for _ in range(5):
        laid_out(needs, CARD)
    yield Figure("layout of 1,000 nodes, ms of CPU", (time.process_time() - started) / 5 * 1e3, goal=100)


def _edit(folder: Path) -> Iterator[Figure]:
    with studio(folder) as server:
        server.admit()
        names = {"folder": folder.name, "path": "hundred.py"}
        document = server.request("/api/document", names)
        seconds = []
        for number in range(7):
            value = {"kind": "literal", "value": (number + 1) / 10}
            edit = {"op": "set_input", "node": "step_50", "input": "rate", "value": value}
            started = time.perf_counter()
            document = server.request(
                "/api/document/edit", {}, {**names, "digest": document["digest"], "edits": [edit]}
            )
            seconds.append(time.perf_counter() - started)
            assert document["current"]
    (folder / "hundred.py").write_text(python_pipeline(100), encoding="utf-8")
    yield Figure("an edit to a validated graph of 100 nodes, ms", statistics.median(seconds[2:]) * 1e3, goal=150)


def _table(folder: Path) -> Iterator[Figure]:
    with _pages(folder) as (_, pages):
        pages.tab.wait_for(ROWS)
        paints = [pages.open("", ROWS) and pages.first_paint() for _ in range(3)]
        yield Figure("first load, kB gzipped", pages.kilobytes(ROWS), goal=200)
        yield Figure("first paint, s", statistics.median(paints), goal=0.6)
        yield Figure("table of 5,000 runs on screen, s", pages.open("", ROWS))
        yield Figure("table of 5,000 runs scrolls, frames a second", pages.scrolled(), goal=55, at_least=True)


def _log(folder: Path) -> Iterator[Figure]:
    with _pages(folder) as (_, pages):
        shown = "document.querySelector('[data-part]')?.textContent.includes('of 1,000,000')"
        times = [pages.open(f"runs/{LOGGED}/logs", shown) for _ in range(5)]
        yield Figure("a log of 1 GB on screen, s", statistics.median(times), goal=0.5)


def _canvas(folder: Path) -> Iterator[Figure]:
    with _pages(folder) as (_, pages):
        yield Figure("1,000 nodes on screen, s", pages.open("designer?path=thousand.yaml", CANVAS))
        yield Figure("1,000 nodes pan, frames a second", pages.panned(), goal=55, at_least=True)


def _line(folder: Path) -> Iterator[Figure]:
    job = folder / "ticks.yml"
    job.write_text(TICKS, encoding="utf-8")
    with _pages(folder) as (server, pages):
        before = set(server.request("/api/runs", {"folder": folder.name})["id"])
        command = [ALLRANKS, "run", str(job), "--no-track", "--force-rerun"]
        engine = subprocess.Popen(command, cwd=folder, env=environment(), stdout=subprocess.DEVNULL)
        try:
            while not (new := set(server.request("/api/runs", {"folder": folder.name})["id"]) - before):
                time.sleep(0.1)
            pages.open(f"runs/{new.pop()}/logs", "document.querySelector('[data-part]')")
            yield Figure("a log line on screen, ms", statistics.median(pages.tab.evaluate(_LATENCIES)) * 1e3, goal=300)
        finally:
            engine.terminate()
            engine.wait(60)


def _step(folder: Path) -> Iterator[Figure]:
    """The runs with and without a studio alternate: without, its processes and Chromium's are stopped."""
    chain = [sys.executable, str(STEPS), "chain", "100", str(folder / ".allranks"), "loopback"]

    def seconds() -> float:
        return float(run(chain).split()[0])

    alone, watched = [], []
    with _pages(folder) as (_, pages):
        pages.tab.wait_for(ROWS)
        processes = [*descendants(os.getpid())]
        for _ in range(16):
            send(processes, signal.SIGSTOP)
            alone.append(seconds())
            send(processes, signal.SIGCONT)
            watched.append(seconds())
    ours, peer = statistics.median(watched) * 10, statistics.median(alone) * 10
    yield Figure("a step with a studio open, ms (peer: without)", ours, peer, goal=1.02, of="ratio")


@contextlib.contextmanager
def _pages(folder: Path) -> Iterator[tuple[Studio, Pages]]:
    if PROGRAM is None:
        raise RuntimeError("this machine has no Chromium")
    with tempfile.TemporaryDirectory() as profile, studio(folder) as server, chromium(Path(profile)) as browser:
        yield server, _opened(browser, server)


def _opened(browser: Browser, server: Studio) -> Pages:
    """Open the page with the first token, and admit this process with the second."""
    pages = Pages(browser, server.next_address())
    server.admit()
    return pages


def _median(measure: Callable[[], object], times: int = 5) -> float:
    """Return the median seconds, after one more to warm up."""
    seconds = []
    for _ in range(times + 1):
        started = time.perf_counter()
        measure()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[1:])


if __name__ == "__main__":
    main()
