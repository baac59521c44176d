"""What is said of a step that azure-ai-ml refuses: the key that is wrong, not that of another kind of step."""

from pathlib import Path

import pytest

from allranks.api import jobs

HEAD = "type: pipeline\nsettings: {default_compute: azureml:cpu}\njobs:\n"
INLINE = f"{HEAD}  a:\n    command: ls\n    environment: azureml:x:1\n"
COMPONENT = "type: command\nname: c\ncommand: ls\nenvironment: azureml:x:1\n"
NO_KEY = ("Azure ML has no such key", "remove it, or correct its name")
NO_VALUE = ("the key has no value", "write one, or remove the key")
LOOP = HEAD + "  a: {component: c.yml}\n  l:\n    type: parallel_for\n    body: ${{parent.jobs.a}}\n    items: "
STEPS = {
    "unknown key": (INLINE + "    frobnicate: 3\n", "step a, key frobnicate (x.yml:7)", *NO_KEY),
    "of resources": (INLINE + "    resources: {frob: 2}\n", "step a, key resources.frob (x.yml:7)", *NO_KEY),
    "of a step with a component": (
        HEAD + "  a:\n    component: c.yml\n    resources: {frob: 2}\n", "step a, key resources.frob (x.yml:6)", *NO_KEY
    ),
    "no default": (
        INLINE.replace(" azureml:cpu", " "), "key settings.default_compute (x.yml:2)", *NO_VALUE
    ),
    "no items": (LOOP, "step l, key items (x.yml:8)", *NO_VALUE),
    "an item without a value": (
        f"{LOOP}[{{n: }}]", "step l, key items (x.yml:8)", "item 0 has no value for n", "write them"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "where", "found", "fix"), STEPS.values(), ids=STEPS)
def test_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, where: str, found: str, fix: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.yml").write_text(COMPONENT)
    Path("x.yml").write_text(text)
    (problem,) = jobs.check("x.yml", folder=tmp_path / "workspace").found
    assert (problem.where, problem.found, problem.fix) == (where, found, fix)


COMPONENTS = {
    "a wrong type": (COMPONENT + "inputs: {n: {type: int}}\n", "c.yml:5, key inputs.n.type", "'int'"),
    "an unknown key of an input": (
        COMPONENT + "inputs: {n: {type: integer, foo: 1}}\n", "c.yml:5, key inputs.n.foo", NO_KEY[0]
    ),
}  # fmt: skip


@pytest.mark.parametrize(("component", "where", "found"), COMPONENTS.values(), ids=COMPONENTS)
def test_the_component_of_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, component: str, where: str, found: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.yml").write_text(component)
    Path("x.yml").write_text(HEAD + "  a:\n    component: c.yml\n")
    (problem,) = jobs.check("x.yml", folder=tmp_path / "workspace").found
    assert (problem.where, problem.found) == (where, found)
