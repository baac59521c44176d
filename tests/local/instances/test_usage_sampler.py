"""What the ranks of an instance use, with real processes."""

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

import bounded
from allranks.local.instances import sampler as sampler_module
from allranks.local.instances import sampling as sampling_module
from allranks.local.instances.sampler import Allowance, Figures, Nvml, Sampler
from allranks.local.instances.sampling import RANKS, SAMPLES, Sampling

Start = Callable[..., int]

BOUND = 30
MEGABYTES = 64

BURN = "import time\nwhile time.process_time() < {seconds}: pass\n"


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a Python program in its own session, and return its process id after it has printed a line."""
    started = []

    def start(code: str, **environment: str) -> int:
        process = bounded.Popen(
            [sys.executable, "-I", "-S", "-c", code],
            start_new_session=True,
            stdout=subprocess.PIPE,
            env={**os.environ, **environment},
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline(), "the program has ended"
        return process.pid

    yield start
    for process in started:
        below = psutil.Process(process.pid).children(recursive=True)
        for each in (*below, process):
            each.kill()
        process.communicate()


def _sample(programs: dict[int, str]) -> dict[str, Figures]:
    sampler = Sampler(programs)
    try:
        figures = sampler.sample(time.monotonic())
    finally:
        sampler.close()
    assert figures is not None
    return figures


def test_the_cpu_time_of_children_counts_while_they_run_and_after_they_have_ended(start: Start) -> None:
    burn = BURN.format(seconds=0.2)
    ended = f"import os\nfor _ in range(2):\n  if not os.fork():\n    exec({burn!r}); os._exit(0)\n  os.wait()\n"
    running = (
        "import os, time\nreader, writer = os.pipe()\n"
        f"for _ in range(2):\n  if not os.fork():\n    exec({burn!r}); os.write(writer, b'.'); time.sleep(1000)\n"
        "os.read(reader, 1); os.read(reader, 1)\n"
    )
    wait = "print(flush=True); time.sleep(1000)"
    programs = {start(f"{ended}import time; {wait}"): "rank 0", start(f"{running}{wait}"): "rank 1"}
    figures = _sample(programs)
    assert set(figures) == {"rank 0", "rank 1"}
    for cpu, *_ in figures.values():
        assert cpu is not None
        assert 0.3 < cpu < 2


def test_memory_that_forked_processes_share_counts_once(start: Start) -> None:
    """As with data loader workers, which find the data set in the memory of their rank."""
    code = (
        f"import os, time\ndata = bytearray(os.urandom(1)) * ({MEGABYTES} << 20)\nreader, writer = os.pipe()\n"
        "for _ in range(3):\n  if not os.fork():\n    os.write(writer, b'.'); time.sleep(1000)\n"
        "for _ in range(3): os.read(reader, 1)\n"
        "print(flush=True); time.sleep(1000)"
    )
    ((_, memory),) = _sample({start(code): "rank 0"}).values()
    assert memory is not None
    assert MEGABYTES << 20 < memory < (2 * MEGABYTES) << 20


def test_a_process_with_its_own_session_counts_for_its_rank(start: Start) -> None:
    code = (
        "import os, time\nreader, writer = os.pipe()\n"
        "if not os.fork():\n"
        f"  os.setsid(); exec({BURN.format(seconds=0.2)!r}); os.write(writer, b'.'); time.sleep(1000)\n"
        "os.read(reader, 1); print(flush=True); time.sleep(1000)"
    )
    figures = _sample({start(code): "rank 0"})
    assert set(figures) == {"rank 0"}
    assert (figures["rank 0"][0] or 0) > 0.1


def test_a_rank_of_mpirun_is_known_by_its_variable(start: Start) -> None:
    """Its processes are below those of mpirun or a daemon of it, which count for no rank."""
    rank = "import time; print(flush=True); time.sleep(1000)"
    code = (
        "import os, subprocess, sys, time\n"
        "for rank in '3', '11':\n"
        f"  subprocess.Popen([sys.executable, '-I', '-S', '-c', {rank!r}], start_new_session=True,"
        " env={'OMPI_COMM_WORLD_RANK': rank})\n"
        "time.sleep(1000)"
    )
    pid = start(code)
    sampler = Sampler({pid: "mpirun"})
    try:
        end = time.monotonic() + BOUND
        while set(sampler.sample(time.monotonic()) or ()) != {"mpirun", "rank 3", "rank 11"}:
            assert time.monotonic() < end
            time.sleep(0.02)
    finally:
        sampler.close()


def test_an_allowance_is_used_up_and_comes_back_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler_module, "time", SimpleNamespace(thread_time=lambda: 3.0))
    allowance = Allowance(share=0.1, credit=1.0)
    assert allowance.is_left(now=100.0)
    allowance.use(since=1.0)  # two seconds, of which one is debt
    assert not allowance.is_left(now=109.0)
    assert allowance.is_left(now=111.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that a `Sampling` sees, as the only element of a list."""
    now = [1000.0]
    monkeypatch.setattr(sampling_module, "time", SimpleNamespace(monotonic=lambda: now[0], time=time.time))
    return now


def _sampling(events: list[dict], programs: dict[int, str], sampler: object) -> Sampling:
    sampling = Sampling([], lambda **event: events.append(event))
    sampling.begin(programs)
    sampling._sampler = sampler  # type: ignore[assignment]
    return sampling


class Fixed:
    """A sampler that always finds the same."""

    def __init__(self, figures: dict[str, Figures] | Exception) -> None:
        self.figures = figures

    def sample(self, now: float) -> dict[str, Figures]:
        if isinstance(self.figures, Exception):
            raise self.figures
        return self.figures


def test_samples_get_rarer_with_the_length_of_the_step(clock: list[float]) -> None:
    events: list[dict] = []
    sampling = _sampling(events, {}, Fixed({"rank 0": (1.0, 2)}))
    sampling.sample_if_due()
    assert events == []  # nothing in the first second
    times = []
    while len(times) < 4 * SAMPLES:
        clock[0] += sampling.timeout
        sampling.sample_if_due()
        times.append(clock[0])
    assert len(events) == len(times)
    steps = [round(after - before) for before, after in pairwise(times)]
    assert steps == sorted(steps)
    assert steps.count(1) == SAMPLES - 1
    assert {steps.count(seconds) for seconds in (2, 4, 8, 16)} == {SAMPLES // 2}
    assert steps[-1] == 32  # not rarer, because someone may be watching


def test_a_failure_to_measure_is_reported_once_and_ends_the_samples(clock: list[float]) -> None:
    events: list[dict] = []
    sampling = _sampling(events, {}, Fixed(PermissionError("no /proc")))
    for _ in range(5):
        clock[0] += 1
        sampling.sample_if_due()
    assert [(event["event"], event["reason"]) for event in events] == [("usage_failed", "PermissionError: no /proc")]


def test_an_event_is_shorter_than_what_a_pipe_writes_at_once(clock: list[float]) -> None:
    events: list[dict] = []
    ranks = {f"rank {rank}": (123456.78, 123456789012, 100, 85899345920) for rank in range(1000, 1000 + 2 * RANKS + 1)}
    sampling = _sampling(events, {}, Fixed(ranks))
    clock[0] += 1
    sampling.sample_if_due()
    assert [len(event["ranks"]) for event in events] == [RANKS, RANKS, 1]
    for event in events:
        line = json.dumps({"agent": "a" * 200, **event}, separators=(",", ":"))
        assert len(line) < select.PIPE_BUF


FAKE = Path(__file__).parent / "data" / "fake_nvml.c"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """NVIDIA's library, as far as it is called: its answers stand in a file."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("this machine has no C compiler")
    path = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", path, FAKE], check=True)
    return str(path)


@pytest.fixture
def gpus(library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Nvml]:
    """The library for GPUs with these lines: use, and bytes in use. -1: not available"""

    def gpus(*lines: str) -> Nvml:
        state = tmp_path / "gpus"
        state.write_text("".join(f"{line}\n" for line in lines))
        monkeypatch.setenv("FAKE_NVML", str(state))
        return Nvml(library)

    return gpus


def test_gpus_are_found_by_their_number_or_uuid(gpus: Callable[..., Nvml]) -> None:
    nvml = gpus("50 1000", "-1 -1")
    first, second = nvml.devices(["0", "GPU-1", "7", "MIG-unknown"])
    assert nvml.read(first) == (50, 1000)
    assert nvml.read(second) == (None, None)


def test_a_machine_without_a_driver_has_no_library(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="libnone"):
        Nvml("libnone.so")
    monkeypatch.setenv("FAKE_NVML", "/no/such/file")
    with pytest.raises(OSError, match="no driver"):
        Nvml(library)


def _sleepers(start: Start, names: list[str]) -> dict[int, str]:
    return {start("import time; print(flush=True); time.sleep(1000)"): name for name in names}


def _gpu_figures(nvml: Nvml, programs: dict[int, str], names: list[str], monkeypatch: pytest.MonkeyPatch) -> dict:
    monkeypatch.setattr(sampler_module, "_nvml", lambda: nvml)
    sampler = Sampler(programs, names)
    try:
        figures = sampler.sample(time.monotonic())
    finally:
        sampler.close()
    assert figures is not None
    return {rank: tuple(values[2:]) for rank, values in figures.items()}


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        (["rank 8", "rank 9"], {"rank 8": (90, 1000), "rank 9": (40, 900)}),
        (["rank 0"], {"rank 0": (65, 1900)}),
        (["rank 0", "rank 1", "rank 2"], {"rank 0": (), "rank 1": (), "rank 2": ()}),
    ],
    ids=["one each", "all to the only one", "unknown"],
)
def test_a_rank_has_the_gpu_of_its_place(
    start: Start, gpus: Callable[..., Nvml], monkeypatch: pytest.MonkeyPatch, ranks: list[str], expected: dict
) -> None:
    nvml = gpus("90 1000", "40 900")
    assert _gpu_figures(nvml, _sleepers(start, ranks), ["0", "1"], monkeypatch) == expected
