"""One component alone, by its name: of the project, or of the library."""

from pathlib import Path

import pytest

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
    "no layout": (("run", "greet", "-j", "2"), ("-j 2", "INSTANCESxPROCESSES")),
    "processes where the distribution has no such number": (
        ("run", "record_launch_tensorflow", "-j", "2x2", "--set", "folder=names"),
        ("process_count_per_instance", "the distribution tensorflow starts one process"),
    ),
    "an unknown component to copy": (("components", "copy", "run_mpy"), ("did you mean run_mpi?",)),
    "an unknown pipeline": (("init", "new", "--from", "image_classifcation"), ("did you mean image_classification?",)),
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
