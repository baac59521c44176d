"""What Azure ML's designer shows: nothing is wrong with ours; each seeded fault is found, with its line and its fix."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from allranks.catalog.find import find_specs
from allranks.checks import Findings
from allranks.checks.component import check, of_subject
from allranks.checks.component.subject import read_yaml
from allranks.errors import Problem
from component_projects import CODE, PYTHON, YAML, add_function, make

PROJECT = Path(__file__).parents[3] / "components"


@dataclass(frozen=True)
class Fault:
    """A mistake in the component.

    old:   what stands there; the line of its first match is the finding's, but for `after`
    new:   what stands there instead
    found: a part of what is said
    fix:   a part of the fix
    after: how many lines behind it the finding is; None: at the spec's first line
    """

    old: str
    new: str
    found: str
    fix: str
    after: int | None = 0


FAULTS = {
    "a name that Azure ML refuses": Fault("name: greet", "name: Greet-People", "'Greet-People'", "rename it"),
    "a name of 256 characters": Fault("name: greet", f"name: {'g' * 256}", "256 characters", "shorten"),
    "a version that YAML reads as a number": Fault('version: "1.2.0"', "version: 1.10", "a number", '"1.10"'),
    "a version with a space": Fault('version: "1.2.0"', 'version: "1 2"', "'1 2'", "1.0.0"),
    "no version": Fault('version: "1.2.0"\n', "", "no version", "1.0.0", after=None),
    "no display name": Fault("display_name: Greet people\n", "", "no display name", "Greet", after=None),
    "a display name that is a sentence": Fault("Greet people", "Greet " + "people " * 20, "characters", "shorten"),
    "no description": Fault("description: Greets .*\n", "", "no description", "inputs", after=None),
    "a description that says nothing": Fault("description: Greets .*", "description: Greet.", "'Greet.'", "inputs"),
    "a tag that is a number": Fault("  task: greeting", "  task: greeting\n  level: 3", "level: 3", '"3"', after=1),
    "a port without a description": Fault(
        "    description: Names, one a line.\n", "", "people has no description", "its unit", after=-2
    ),
    "a description that is the port's name": Fault("description: Names.*", "description: People.", "'People.'", "unit"),
    "a type that nobody knows": Fault("type: uri_file", "type: text_file", "'text_file'", "use one"),
    "a range turned round": Fault("min: 1", "min: 10", "min 10 is above max 9", "exchange"),
    "a bound that is no whole number": Fault("min: 1", "min: 0.5", "min 0.5", "correct it"),
    "a default outside of the range": Fault("default: 3", "default: 30", "default 30", "the range"),
    "a default that is not in the enum": Fault("default: warm", "default: hot", "'hot'", "the enum"),
    "a default that YAML reads as a boolean": Fault(
        r"cool\]\n    default: warm", "cool]\n    default: no", "False", '"no"', after=1
    ),
    "a default of another type": Fault("default: 3", "default: three", "'three'", "correct"),
    "a boolean as text": Fault("default: false", 'default: "no"', "'no'", "correct"),
    "a default of data": Fault("type: uri_file\n", "type: uri_file\n    default: a\n", "'a'", "optional", after=1),
    "an enum that YAML reads as a boolean": Fault(r"\[warm, cool\]", "[warm, off]", "off in the enum", '"off"'),
    "an enum of numbers": Fault("    min: 1", "    enum: [1, 2]\n    min: 1", "enum of type integer", "min and max"),
    "an enum of booleans": Fault("default: false", "enum: ['no']\n    default: no", "type boolean", "remove the enum"),
    "an input of a reserved name": Fault("  people:", "  PATH:", "'PATH', a name that Azure ML reserves", "rename"),
    "an output of a reserved name": Fault("  greetings:", "  home:", "output 'home'", "rename"),
    "a line that ends in a backslash": Fault(r"greet\.py\n  --people", r"greet.py \\\n  --people", "ends in", ">-"),
    "a type that the studio does not register": Fault("type: command", "type: spark", "type spark", "az ml component"),
    "code above the folder": Fault(r"code: \.", "code: ../greet", "../greet is outside", "allranks register"),
    "an included file above the folder": Fault(
        r"code: \.", "code: .\nadditional_includes:\n  - greet.py\n  - ../words.py", "words.py is", "register", after=3
    ),
    "a boolean without a default": Fault("    default: false\n", "", "loud has no default", "default: false", after=-2),
    "an optional mark on what must be connected": Fault(
        r"\$\[\[--style (.*)\]\]", r"--style \1", "outside of $[[ ]]", "$[[--style"
    ),
    "a variable of the component's own": Fault(
        "outputs:", 'environment_variables:\n  TONE: "1"\noutputs:', "variable TONE", "TONE=VALUE", after=1
    ),
    "an input that nothing reads": Fault(r"  --tone \S+\n", "", "reads the input tone", "remove", after=None),
    "an output that nothing writes": Fault(
        r"\n  --greetings \$\{\{outputs.greetings\}\}", "", "writes the output greetings", "remove", None
    ),
    "a reference to a port that is not there": Fault(
        r"inputs\.tone", "inputs.tune", "does not name a port", "did you mean tone"
    ),
    "an environment that is not there": Fault("environments/small/", "environments/large/", "is not there", "path"),
    "an environment of another name": Fault(
        "environment: file:.*", "environment: azureml:smal:1", "'smal'", "did you mean small"
    ),
    "a reference that is none": Fault(
        "environment: file:.*", "environment: azureml://registries/azureml/x", "azureml://registries", "reference"
    ),
    "nothing said of determinism": Fault("is_deterministic: true\n", "", "nothing says", "set true", after=None),
}  # fmt: skip


WARNINGS = {
    "a version with a space",
    "an environment of another name",
    "a version that YAML reads as a number",
    "an optional mark on what must be connected",
    "a default that YAML reads as a boolean",
    "a variable of the component's own",
    "a line that ends in a backslash",
}
ADVICE = {
    "no version",
    "no display name",
    "a display name that is a sentence",
    "no description",
    "a description that says nothing",
    "a port without a description",
    "a description that is the port's name",
    "an input that nothing reads",
    "an output that nothing writes",
    "nothing said of determinism",
    "a type that the studio does not register",
    "code above the folder",
    "an included file above the folder",
    "a boolean without a default",
}
"""What Azure ML takes: of `FAULTS`, all others are errors."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make(tmp_path)


def lines(text: str, pattern: str) -> Iterator[int]:
    return (text.count("\n", 0, match.start()) + 1 for match in re.finditer(pattern, text))


def by_place(problems: list[Problem], path: Path) -> dict[int, list[Problem]]:
    """The findings by their lines; each has to have one, in the spec."""
    found: dict[int, list[Problem]] = {}
    for problem in problems:
        match = re.match(re.escape(str(path)) + r":(\d+)", problem.where)
        assert match, problem
        found.setdefault(int(match[1]), []).append(problem)
    return found


def test_nothing_is_wrong_with_what_is_right(folder: Path) -> None:
    add_function(folder.parent.parent)
    assert check(find_specs(folder.parent)) == Findings()


@pytest.mark.slow
def test_nothing_is_wrong_with_ours() -> None:
    assert check(find_specs(PROJECT)) == Findings()


def all_of(findings: Findings) -> list[Problem]:
    return [*findings.errors, *findings.warnings, *findings.advice]


@pytest.mark.parametrize("name", FAULTS)
def test_a_seeded_fault_is_found(folder: Path, name: str) -> None:
    path, fault = folder / "component.yaml", FAULTS[name]
    spoilt = re.sub(fault.old, fault.new, YAML, count=1)
    assert spoilt != YAML
    path.write_text(spoilt)
    findings = check([path])
    of_level = findings.advice if name in ADVICE else findings.warnings if name in WARNINGS else findings.errors
    problems = [one for one in all_of(findings) if fault.found in one.found or fault.found in one.where]
    assert problems, findings
    assert set(problems) <= set(of_level)
    assert any(fault.fix in one.fix for one in problems), problems
    assert all(one.found for one in problems)
    assert any(one.expected for one in problems)
    places = by_place(problems, path)
    if fault.after is not None:
        assert next(lines(YAML, fault.old)) + fault.after in places, (places, problems)


def test_a_port_that_the_code_finds_by_its_variable_is_read(folder: Path) -> None:
    (folder / "component.yaml").write_text(YAML.replace("  --people ${{inputs.people}}\n", ""))
    assert check([folder / "component.yaml"]).advice
    (folder / "greet.py").write_text(CODE + "import os\nos.environ['AZURE_ML_INPUT_people']\n")
    assert check([folder / "component.yaml"]) == Findings()


PYTHON_FAULTS = {
    "no description": ('description="Names, one a line."', 'description=""', "people has no description"),
    "an environment of another name": ("azureml:small:1", "azureml:big:1", "'big'"),
    "determinism not said": ("    is_deterministic=True,\n", "", "nothing says"),
    "a default outside of the range": ("= 1,", "= 10,", "default 10"),
}


@pytest.mark.parametrize(("old", "new", "said"), PYTHON_FAULTS.values(), ids=PYTHON_FAULTS.keys())
def test_a_fault_of_a_function_is_found(tmp_path: Path, old: str, new: str, said: str) -> None:
    make(tmp_path)
    path = add_function(tmp_path) / "component.py"
    path.write_text(PYTHON.replace(old, new))
    problems = all_of(check([path]))
    assert [problem for problem in problems if said in problem.found], problems
    assert all(re.fullmatch(r".*component\.py:\d+", problem.where) for problem in problems)


def test_two_components_of_one_name(folder: Path) -> None:
    second = folder.parent / "second"
    second.mkdir()
    (second / "greet.py").write_text("")
    spec = second / "component.yaml"
    for text, warnings in [
        (YAML, ["name 'greet'"]),
        (YAML.replace("1.2.0", "1.3.0"), []),  # another version of the same
    ]:
        spec.write_text(text)
        found = all_of(check(find_specs(folder.parent)))
        assert [problem.found.partition(",")[0] for problem in found] == warnings


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('version: "1.2.0"', "version: 1"),
        ("default: 3", 'default: "3"'),
        ("default: false", 'default: "False"'),
        ("min: 1", 'min: "1"'),
        ("optional: true", 'optional: "yes"'),
        ("type: uri_file", "type: path"),
    ],
)
def test_what_azure_ai_ml_takes_is_no_error(folder: Path, old: str, new: str) -> None:
    assert old in YAML
    (folder / "component.yaml").write_text(YAML.replace(old, new, 1))
    assert check([folder / "component.yaml"]).errors == ()


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("  $[[--style ${{inputs.style}}]]", "  --style ${{inputs.style}}", ["optional-unguarded"]),
        ("    default: 3", "    default: 3\n    optional: true", []),
        ("code: .", "resources: {shm_size: '${{inputs.style}}'}\ncode: .", []),
    ],
    ids=["without a default", "with a default", "in resources"],
)
def test_an_optional_input_is_guarded_in_the_command_only(
    folder: Path, before: str, after: str, expected: list[str]
) -> None:
    assert before in YAML
    (folder / "component.yaml").write_text(YAML.replace(before, after))
    found = of_subject(read_yaml(folder / "component.yaml"))
    assert [finding.rule for finding in found if finding.rule == "optional-unguarded"] == expected


@pytest.mark.parametrize(("kind", "expected"), [("command", True), ("automl", False)])
def test_an_environment_is_needed_where_azure_ml_chooses_none(folder: Path, kind: str, expected: bool) -> None:
    text = YAML.replace("type: command", f"type: {kind}")
    (folder / "component.yaml").write_text(re.sub("environment: .*\n", "", text))
    found = [finding.found for finding in of_subject(read_yaml(folder / "component.yaml"))]
    assert ("no environment" in found) is expected


def test_what_is_no_yaml_is_said(folder: Path) -> None:
    (folder / "component.yaml").write_text("name: [")
    (problem,) = check([folder / "component.yaml"]).errors
    assert "not YAML" in problem.found
