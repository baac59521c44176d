"""What every benchmark ends with: lines of JSON, and an exit code that says whether the goals are met."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "bench" / "figures.py"


@pytest.fixture(scope="module")
def figures() -> ModuleType:
    """The module as the benchmarks import it, without benchmarks/ on the path of every other test."""
    spec = importlib.util.spec_from_file_location("benchmark_figures", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclass looks for annotations
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("figure", "ratio", "goal", "holds"),
    [
        ({"ours": 12.0, "peer": 240.0, "goal": 15}, 0.05, "ours <= 15", True),
        ({"ours": 15.0, "goal": 15}, None, "ours <= 15", True),
        ({"ours": 15.1, "peer": 240.0, "goal": 15}, 0.0629, "ours <= 15", False),
        ({"ours": 3.3, "peer": 3.0, "goal": 1.1, "of": "ratio"}, 1.1, "ratio <= 1.1", True),
        ({"ours": 3.4, "peer": 3.0, "goal": 1.1, "of": "ratio"}, 1.1333, "ratio <= 1.1", False),
        ({"ours": 3.4, "goal": 1.1, "of": "ratio"}, None, "ratio <= 1.1", None),
        ({"ours": 2.97, "peer": 3.0, "goal": 0.99, "of": "ratio", "at_least": True}, 0.99, "ratio >= 0.99", True),
        ({"ours": 2.9, "peer": 3.0, "goal": 0.99, "of": "ratio", "at_least": True}, 0.9667, "ratio >= 0.99", False),
        ({"ours": 3.4, "peer": 1.0}, 3.4, None, None),
    ],
)
def test_a_figure_is_a_line_of_json_that_says_whether_its_goal_holds(
    figures: ModuleType, figure: dict[str, float], ratio: float | None, goal: str | None, holds: bool | None
) -> None:
    line = figures.Figure("seconds", **figure).line()
    assert "\n" not in line
    assert json.loads(line) == {
        "figure": "seconds",
        "ours": figure["ours"],
        "peer": figure.get("peer"),
        "ratio": ratio,
        "goal": goal,
        "holds": holds,
    }


@pytest.mark.parametrize(("ours", "code"), [((1.0, 2.0), 0), ((1.0, 2.1), 1), ((9.0, 1.0), 1), ((), 0)])
def test_a_benchmark_ends_with_1_where_a_goal_is_missed_and_prints_every_figure(
    figures: ModuleType, capsys: pytest.CaptureFixture[str], ours: tuple[float, ...], code: int
) -> None:
    found = [figures.Figure(f"figure {number}", value, goal=2) for number, value in enumerate(ours)]
    with pytest.raises(SystemExit) as ended:
        figures.finish("title", [*found, figures.Figure("told", 100.0)])
    assert ended.value.code == code
    lines = capsys.readouterr().out.splitlines()[-len(ours) - 1 :]
    assert [json.loads(line)["figure"] for line in lines] == [f"figure {number}" for number in range(len(ours))] + [
        "told"
    ]
