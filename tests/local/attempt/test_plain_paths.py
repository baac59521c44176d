"""Commands do not quote paths, so inputs and outputs have paths without spaces, whatever the names here are."""

import os
from pathlib import Path

import pytest

from allranks.history.records import Status
from allranks.local.attempt.stage import Links
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import Input, Literal, NodeOutput, Output
from allranks.plan.ports import Path as DataPath
from allranks.workspace import Workspace

ODD = "my Übung's (1) & $HOME"


@pytest.mark.parametrize(
    ("path", "plain", "links"),
    [
        ("/data/a-b_c.d/x@1,y+z=2:3%", "/data/a-b_c.d/x@1,y+z=2:3%", {}),
        ("/home/my project/.allranks/a", "/tmp/my_project/.allranks/a", {"my_project": "/home/my project"}),
        ("/home/my project/two words/a", "/tmp/two_words/a", {"two_words": "/home/my project/two words"}),
        ("/home/müller", "/tmp/m_ller", {"m_ller": "/home/müller"}),
        ("/data/a file.csv", "/tmp/a_file.csv", {"a_file.csv": "/data/a file.csv"}),
        ("azureml://a b", "azureml://a b", {}),
    ],
)
def test_a_link_leads_to_the_innermost_special_name(
    path: str, plain: str, links: dict[str, str], tmp_path: Path
) -> None:
    created = Links("/tmp")
    assert created.plain(path) == plain
    created.create(tmp_path)
    assert {link.name: os.readlink(link) for link in tmp_path.iterdir()} == links


def test_folders_of_the_same_plain_name_have_links_of_their_own() -> None:
    links = Links("/tmp")
    paths = [links.plain(path) for path in ("/a b/x", "/c/a b/x", "/a_b/x", "/a-b/x", "/a b/y")]
    assert paths == ["/tmp/a_b/x", "/tmp/a_b-1/x", "/a_b/x", "/a-b/x", "/tmp/a_b/y"]


@pytest.mark.parametrize("mode", ["ro_mount", "download"])
def test_paths_with_spaces_everywhere(mode: str, kind: str, tmp_path: Path) -> None:
    folder = tmp_path / ODD
    for name in ("data folder", "code folder"):
        (folder / name).mkdir(parents=True)
    (folder / "data folder/my file.txt").write_text("1 2")
    (folder / "a file.csv").write_text("3 4")
    first = Step(
        "first",
        # Nothing is quoted; a file is replaced by another of its folder, as programs do that never leave half a file.
        "test -d ${{inputs.folder}} && cat ${{inputs.folder}}/my\\ file.txt ${{inputs.file}} > ${{outputs.file}}.new"
        " && mv ${{outputs.file}}.new ${{outputs.file}} && rm -r ${{outputs.folder}} && mkdir ${{outputs.folder}}"
        " && echo ${{inputs.file}} > ${{outputs.folder}}/name",
        inputs=(
            Input("folder", "uri_folder", DataPath(str(folder / "data folder")), mode),
            Input("file", "uri_file", DataPath(str(folder / "a file.csv")), mode),
        ),
        outputs=(Output("file", "uri_file", "rw_mount"), Output("folder", "uri_folder", "rw_mount")),
    )
    second = Step(
        "second",
        "cat ${{inputs.file}} ${{inputs.folder}}/name > ${{outputs.text}}",
        inputs=(
            Input("file", "uri_file", NodeOutput("first", "file"), mode),
            Input("folder", "uri_folder", NodeOutput("first", "folder"), mode),
        ),
        outputs=(Output("text", "uri_file", "upload", path=str(folder / "the result.txt")),),
    )
    record = run(
        Plan("plan", Graph((first, second))), Workspace(folder / "runs here"), Options(instances=kind, track=False)
    )
    assert [step.verdict for step in record.steps] == [None, None]
    assert record.status is Status.COMPLETED
    name = (folder / "the result.txt").read_text().removeprefix("1 23 4").strip()
    assert name.endswith("a_file.csv")
    assert "'" not in name
    assert not list((folder / "runs here/tmp").glob("*"))


def test_values_of_primitives_are_not_changed(kind: str, tmp_path: Path) -> None:
    step = Step(
        "say",
        "echo '${{inputs.text}}' > ${{outputs.text}}",
        inputs=(Input("text", "string", Literal("/a b")),),
        outputs=(Output("text", "string", "rw_mount"),),
    )
    record = run(Plan("plan", Graph((step,))), Workspace(tmp_path / "a b"), Options(instances=kind, track=False))
    assert record.steps[0].outputs[0].value == "/a b"
