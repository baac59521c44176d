"""A step reports its result in a file, and a reused step has the result and the logs of the run that it came from."""

from pathlib import Path

import pytest

from allranks.history import log_reader, stored
from allranks.plan.graph import Code, Step
from allranks.workspace import Workspace


def test_the_first_line_of_a_file_is_the_result_also_of_a_reused_step(
    run_steps, workspace: Workspace, capfd: pytest.CaptureFixture[str]
) -> None:
    step = Step("check", "printf 'good enough\\nmore' > outputs/result.txt; echo hello")
    first = run_steps(step)
    assert first.step("check").result == "good enough"
    again = run_steps(step)
    record = again.step("check")
    assert (record.reused_from, record.result) == (first.id, "good enough")
    assert [rank.log for rank in record.ranks] == [rank.log for rank in first.step("check").ranks]
    assert [(rank.started, rank.ended) for rank in record.ranks] == [(None, None)]
    log_reader.print_logs(stored.run(workspace, again.id), "check", None)
    printed = capfd.readouterr()
    assert printed.out == "hello\n"
    assert f"check: reused from run {first.id}, which wrote these logs" in printed.err


def test_a_failed_step_and_a_secret(run_steps, tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    step = Step(
        "check",
        'echo "not good, ghp_0123456789abcdefghijklmnopqrstuvwxyz" > outputs/result.txt; exit 1',
        code=Code(str(code), "digest"),
    )
    assert run_steps(step).step("check").result.startswith("not good, ")
    assert "ghp_" not in run_steps(step).step("check").result
