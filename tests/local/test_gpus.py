"""Each instance has its share of this machine's GPUs. There need be none: what counts is what a rank is told."""

from pathlib import Path

import pytest

from allranks.contract.pytorch import PyTorch
from allranks.errors import InputError
from allranks.history.records import Status
from allranks.local import gpus
from allranks.plan.graph import Graph, Plan, Step

FOUR = ("0", "1", "2", "3")


def step(instances: int, each: int) -> Step:
    return Step("train", "true", distribution=PyTorch(each), instance_count=instances)


@pytest.mark.parametrize(
    ("instances", "each", "choice", "shares"),
    [
        (2, 2, "auto", ["0,1", "2,3"]),
        (2, 1, "auto", ["0,1", "2,3"]),
        (1, 1, "auto", ["0,1,2,3"]),
        (2, 1, "2", ["0", "1"]),
        (2, 2, "0", ["", ""]),
        (2, 8, "share", ["0,1,2,3", "0,1,2,3"]),
    ],
)
def test_shares(instances: int, each: int, choice: str, shares: list[str]) -> None:
    train = step(instances, each)
    own = FOUR[: gpus.exclusive(train, choice, FOUR)]
    given = gpus.instance_variables(train, choice, FOUR, own)
    assert [variables[gpus.VARIABLE] for variables in given] == shares
    assert [gpus.variables.gpus_shared(variables) for variables in given] == [choice == "share"] * instances


def test_a_machine_without_gpus_says_nothing_of_them() -> None:
    assert gpus.instance_variables(step(2, 2), "auto", (), ()) == [{}, {}]
    assert gpus.problems(Plan("p", Graph((step(2, 2),))), "auto", ()) == []


def test_too_few_gpus_name_the_way_out() -> None:
    (problem,) = gpus.problems(Plan("p", Graph((step(1, 1), step(2, 4)))), "auto", FOUR)
    assert (problem.where, problem.found) == ("this machine, for step train", "8 ranks for 4 GPUs")
    assert "--gpus share" in problem.fix
    assert "--gpus 0" in problem.fix
    for choice in ("share", "0"):
        assert gpus.problems(Plan("p", Graph((step(2, 4),))), choice, FOUR) == []


def test_more_than_there_are() -> None:
    (problem,) = gpus.problems(Plan("p", Graph((step(1, 1),))), "8", FOUR)
    assert problem.where == "--gpus 8"
    assert "at most 4" in problem.expected


def test_what_the_engine_was_given_is_what_it_gives(run_steps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5, 7")
    show = Step("show", "echo $CUDA_VISIBLE_DEVICES", distribution=PyTorch(1), instance_count=2)
    record = run_steps(show)
    assert record.status is Status.COMPLETED
    assert [Path(rank.log).read_text().strip() for rank in record.step("show").ranks] == ["5", "7"]
    with pytest.raises(InputError, match="4 ranks for 2 GPUs"):
        run_steps(Step("show", "true", distribution=PyTorch(2), instance_count=2))


@pytest.mark.parametrize(
    ("train", "count"),
    [
        (Step("s", ""), 1),
        (Step("s", "", instance_type="Standard_NC48ads_A100_v4"), 2),
        (Step("s", "", distribution=PyTorch(1), instance_type="Standard_NC24ads_A100_v4"), 1),
        (step(1, 1), 4),
        (step(1, 3), 3),
    ],
)
def test_a_step_has_so_many_gpus_for_itself(train: Step, count: int) -> None:
    assert gpus.exclusive(train, "auto", FOUR) == count
    assert gpus.exclusive(train, "share", FOUR) == 0


def test_no_gpu_is_given_to_two_steps_at_once(run_steps, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each step locks the GPU that it was given, and fails where another step has it."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    use = f"flock -n {tmp_path}/gpu-$CUDA_VISIBLE_DEVICES sleep 0.05 && echo $CUDA_VISIBLE_DEVICES"
    record = run_steps(*(Step(f"s{number}", use) for number in range(8)), slots=8)
    assert record.status is Status.COMPLETED, record.verdict
    used = {Path(one.ranks[0].log).read_text().strip() for one in record.steps}
    assert used == {"0", "1"}


def test_the_driver_is_asked(tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text('#!/bin/sh\n[ "$1" = --query-gpu=index ] && printf "0\\n1\\n"\n')
    program.chmod(0o755)
    assert gpus.find({"PATH": f"{tmp_path}:/usr/bin:/bin"}) == ("0", "1")
    program.write_text("#!/bin/sh\necho no devices were found; exit 6\n")
    assert gpus.find({"PATH": f"{tmp_path}:/usr/bin:/bin"}) == ()
    assert gpus.find({"PATH": str(tmp_path / "empty")}) == ()
