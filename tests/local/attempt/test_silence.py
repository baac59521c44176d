"""The user is told of ranks that are silent, before the step fails."""

from pathlib import Path

import pytest

from allranks.history.records import RankRecord, Status, StepRecord
from allranks.local.attempt.stall import StallWatch


class Announced:
    """Stands for the recorder, and keeps what is announced."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def announce(self, _: StepRecord, text: str) -> None:
        self.texts.append(text)


@pytest.mark.parametrize(
    ("seconds", "end"), [(300.0, "it fails after 300 s without progress (--stall)"), (0.0, "--stall 0 sets no limit")]
)
def test_each_silence_is_announced_once(seconds: float, end: str, tmp_path: Path) -> None:
    ranks = [RankRecord(n, n, 0, "node", Status.RUNNING, log=str(tmp_path / str(n))) for n in range(3)]
    ranks[1].status = Status.COMPLETED
    record, told = StepRecord("train", "", "", "pytorch", 3, 1, ranks=ranks), Announced()
    watch = StallWatch(record, {}, seconds)

    def look(now: float) -> None:
        watch._check_files(now)
        watch._announce_silence(now, told)  # type: ignore[arg-type]

    for now in range(1, 100, 2):
        look(now)
    assert told.texts == [f"silent for 30 s: ranks 0 and 2; {end}"]
    Path(ranks[0].log).write_text("goes on\n")
    for now in range(101, 160, 2):
        look(now)
    assert len(told.texts) == 1  # it is often silent, so the next one comes later
    for now in range(161, 170, 2):
        look(now)
    assert told.texts[1:] == [f"silent for 60 s: ranks 0 and 2; {end}"]
