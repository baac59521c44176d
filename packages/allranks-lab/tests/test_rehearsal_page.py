"""The page of a rehearsal in a browser."""

from pathlib import Path

import pytest

from allranks_lab.rehearsal.comparison import Resumption, Training
from allranks_lab.rehearsal.report import Output, Report, write_page
from chromium import PROGRAM, assert_self_contained, chromium, take_pictures


@pytest.mark.slow
@pytest.mark.skipif(PROGRAM is None, reason="this machine has no Chromium")
@pytest.mark.xdist_group("chromium")
def test_a_rehearsal(tmp_path: Path) -> None:
    lost = ("the optimizer: its state is empty. Save optimizer.state_dict()", "the random state of torch: save it")
    trainings = tuple(
        Training(
            name=name,
            steps=24,
            extra_steps=0,
            resumptions=(Resumption(12, 9, 0.4, each), Resumption(15, 12, 0.5, each)),
            repeated=0,
            missing=0,
            useful=0.28,
            largest_difference=0.01,
            loss_from=None,
            weights_from=10 if each else None,
            weights_equal=not each,
            before_evictions=False,
            curves={"without evictions": [(1, 2.0), (2, 1.0)], "with evictions": [(1, 2.0), (2, 1.5)]},
        )
        for name, each in (("whole", ()), ("weights", lost))
    )
    outputs = (Output("whole", "checkpoints", 1), Output("weights", "checkpoints", 1, "checkpoint.pt, tensor 0.weight"))
    report = Report("job", "a", "b", "Completed", 4, 4, 3, False, {}, trainings, outputs)
    write_page(report, tmp_path / "rehearsal.html")
    with chromium(tmp_path / "profile") as browser:
        tab = browser.open((tmp_path / "rehearsal.html").as_uri())
        take_pictures(tab, tmp_path, "rehearsal")
        whole, weights = tab.evaluate("[...document.querySelectorAll('.training')].map((each) => each.innerText)")
        assert "output checkpoints\nequal bit for bit" in whole
        assert "Not restored, and" not in whole
        assert "output checkpoints\ndiffers: checkpoint.pt, tensor 0.weight" in weights
        assert "Save optimizer.state_dict()" in weights
        assert "the optimizer, the random state of torch" in weights
        assert_self_contained(tab)
