"""One component alone, by its name: of the project, or of the library."""

import sys
from pathlib import Path

import pytest

import bounded
from allranks.catalog import shipped_folder
from allranks.catalog.example import example
from allranks.catalog.find import find_components
from allranks.project.files import create, new_component, template
from allranks_command import called, write

SPEC = """\
type: command
name: greet
version: "1"
inputs:
  who: {type: string, description: Whom to greet.}
  data: {type: uri_folder, description: Names.}
  loud: {type: boolean, default: false}
outputs: {said: {type: uri_folder}}
command: sh -c 'echo "$RANK of $WORLD_SIZE ${{inputs.who}}" > ${{outputs.said}}/$RANK'
environment: azureml:cpu:1
distribution: {type: pytorch}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, "components/any/depth/greet/component.yaml", SPEC)
    (tmp_path / "names").mkdir()
    return tmp_path


@pytest.mark.slow
def test_a_component_runs_with_the_layout_of_the_command_line(project: Path) -> None:
    values = ("--set", "who=you", "--set", "data=names", "--no-track", "--json")
    done = called("run", "greet", "-j", "2x2", *values, folder=project)
    assert (done.code, done.json["status"]) == (0, "Completed")
    assert done.json["steps"][0]["defaults"] == ["loud"]
    said = Path(done.json["outputs"]["said"])
    assert sorted(file.read_text() for file in said.iterdir()) == [f"{rank} of 4 you\n" for rank in range(4)]
    again = called("rerun", "latest", "--latest-code", "--no-track", "--json", folder=project)
    (step,) = again.json["steps"]
    assert (again.code, len(step["ranks"])) == (0, 4)


def test_missing_inputs_are_listed_with_their_descriptions(project: Path) -> None:
    done = called("run", "greet", folder=project)
    assert (done.code, done.out) == (2, "")
    for text in ("input who of greet", "string: Whom to greet.", "--set data=VALUE", "uri_folder: Names."):
        assert text in " ".join(done.err.split())
    assert not (project / ".allranks").exists()


BAD = {
    "a name that nothing has": (("run", "gret"), ("neither a file nor a component", "did you mean greet?")),
    "an input that it has not": (("run", "greet", "--set", "whom=x"), ("no input whom", "did you mean who?")),
    "no layout": (("run", "greet", "-j", "2y2"), ("-j 2y2", "INSTANCESxPROCESSES")),
    "processes where the distribution has no such number": (
        ("run", "record_launch_tensorflow", "-j", "2x2", "--set", "folder=names"),
        ("process_count_per_instance", "the distribution tensorflow starts one process"),
    ),
    "an unknown component to copy": (("components", "copy", "run_mpy"), ("did you mean run_mpi?",)),
    "an unknown pipeline": (("init", "new", "--from", "image_classifcation"), ("did you mean image_classification?",)),
    "a name that no component can have": (("components", "new", "Prepare-texts"), ("cannot be the name",)),
    "a new component over an existing one": (("components", "new", "any"), ("components/any", "is not overwritten")),
    "the library and a folder": (("components", "--library", "components"), ("--library", "remove one")),
}


@pytest.mark.parametrize(("words", "said"), BAD.values(), ids=BAD)
def test_bad_input_is_one_message_and_writes_nothing(
    words: tuple[str, ...], said: tuple[str, ...], project: Path
) -> None:
    before = sorted(project.rglob("*"))
    done = called(*words, folder=project)
    assert (done.code, done.out) == (2, "")
    assert [text for text in said if text not in " ".join(done.err.split())] == []
    assert sorted(project.rglob("*")) == before


def test_a_component_is_never_copied_over_a_folder(project: Path) -> None:
    folder = project / "components/model_management/check_metric"
    folder.mkdir(parents=True)
    done = called("components", "copy", "check_metric", "run_pytorch", folder=project)
    assert (done.code, "is not overwritten" in done.err) == (2, True)
    assert list(folder.iterdir()) == []
    assert not (project / "components/own_script").exists()


@pytest.mark.slow
def test_a_new_component_is_right_and_its_test_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create(tmp_path, template())
    monkeypatch.chdir(tmp_path)
    *_, test = new_component("prepare_texts")
    checked = called("check", "components/prepare_texts", "--strict", folder=tmp_path)
    assert (checked.code, checked.out) == (0, "components/prepare_texts: 1 component, no problems\n")
    with bounded.Popen([sys.executable, "-m", "pytest", "-q", str(test)]) as pytest_process:
        assert pytest_process.wait() == 0
    done = called("run", "components/prepare_texts", "-j", "2x2", "--no-track", "--json", folder=tmp_path)
    assert [len(step["ranks"]) for step in done.json["steps"]] == [4]


def test_a_component_outside_of_a_project_with_an_environment_has_an_image(tmp_path: Path) -> None:
    (tmp_path / "components").mkdir()
    assert called("components", "new", "own", folder=tmp_path).code == 0
    checked = called("check", "components", "--strict", folder=tmp_path)
    assert (checked.code, checked.out) == (0, "components: 1 component, no problems\n")


def test_a_component_of_the_library_is_described_with_an_example_that_is_right(tmp_path: Path) -> None:
    done = called("components", "select_best", folder=tmp_path)
    assert done.code == 0
    for said in ("numbers  string, required", "maximize | minimize, default maximize", "select_best/component.yaml"):
        assert said in done.out
    for name, *values in (("model_management/select_best", "--set", "numbers=[]"), ("tables/prepare_table",)):
        (component,) = find_components(shipped_folder() / "components" / name)
        (tmp_path / "example.py").write_text(example(component))
        checked = called("check", "example.py", *values, folder=tmp_path)
        assert "1 step, no problems" in checked.out, checked.err
