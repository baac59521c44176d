"""`allranks register --to`: folders that load alone, byte by byte the same, and nobody else's files touched."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from allranks.catalog import export as exporting
from allranks.catalog.export import MANIFEST, SCRIPT, Exported
from allranks.catalog.find import find_specs
from allranks.catalog.releases import digest_of_file, release
from allranks.checks import Findings
from allranks.checks.component import check
from allranks.cli.main import app
from allranks.errors import InputError
from allranks.sdk.session import session
from allranks_command import content
from component_projects import add_function, make


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    make(root)
    add_function(root)
    (root / "shared").mkdir()
    (root / "shared/more.py").write_text("x = 1\n")
    spec = root / "components/greet/component.yaml"
    spec.write_text(spec.read_text().replace("code: .", "code: .\nadditional_includes: [../../shared/more.py]"))
    return root


def exported(project: Path, target: Path, registry: str = "") -> Exported:
    staged = target.parent / "staged"
    shutil.rmtree(staged, ignore_errors=True)
    releases = release(staged, project / "components", (), registry)
    return exporting.export(releases, staged, target, registry)


def test_each_folder_loads_alone(project: Path, tmp_path: Path) -> None:
    exported(project, tmp_path / "out")
    shutil.rmtree(project)
    with session():
        from azure.ai.ml import load_component, load_environment

        for name in ("greet", "count_people"):
            folder = shutil.move(tmp_path / "out/components" / name, tmp_path / "alone" / name)
            component = load_component(Path(folder) / "component.yaml")
            assert component._validate().passed
            assert component.code
        environment = load_environment(tmp_path / "out/environments/small/environment.yaml")
        assert (environment.name, Path(environment.path).name) == ("small", "context")
    assert (tmp_path / "alone/greet/code/more.py").read_text() == "x = 1\n"
    spec = yaml.safe_load((tmp_path / "alone/greet/component.yaml").read_text())
    assert spec["environment"] == f"azureml:small:{environment.version}"
    assert check(find_specs(tmp_path / "alone")) == Findings()


def test_the_same_content_gives_the_same_bytes(project: Path, tmp_path: Path) -> None:
    exported(project, tmp_path / "one")
    os.utime(project / "components/greet/greet.py", (1, 1))
    again = exported(project, tmp_path / "two")
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert again.kept == ()
    once_more = exported(project, tmp_path / "one")
    assert (once_more.written, once_more.removed) == ((), ())


def test_what_is_gone_from_the_project_goes_and_what_is_somebody_s_stays(project: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    exported(project, target)
    (target / "notes.txt").write_text("mine")
    (target / "components/greet/mine.txt").write_text("mine")
    (project / "components/greet/words.py").unlink()
    shutil.rmtree(project / "components/count_people")
    done = exported(project, target)
    assert "components/greet/code/words.py" in done.removed
    assert not (target / "components/count_people").exists()
    assert (target / "notes.txt").read_text() == (target / "components/greet/mine.txt").read_text() == "mine"


def test_a_folder_of_somebody_else_is_refused(project: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    (target / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="it is not empty, and has no"):
        exported(project, target)
    assert content(target) == {"thesis.tex": b"years of work"}


@pytest.mark.parametrize("removed", [False, True], ids=["to be overwritten", "to be removed"])
def test_a_file_that_was_changed_by_hand_is_not_lost(project: Path, tmp_path: Path, removed: bool) -> None:
    target = tmp_path / "out"
    exported(project, target)
    (target / "components/greet/code/words.py").write_text("edited")
    source = project / "components/greet/words.py"
    source.unlink() if removed else source.write_text("new")
    before = content(target)
    with pytest.raises(InputError, match="it was changed since it was exported"):
        exported(project, target)
    assert content(target) == before


def test_a_file_in_the_way_is_not_lost(project: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    exported(project, target)
    (project / "components/greet/new.py").write_text("ours")
    (target / "components/greet/code/new.py").write_text("theirs")
    with pytest.raises(InputError, match="it was not written by an export"):
        exported(project, target)


def test_a_manifest_does_not_lead_out_of_the_folder(project: Path, tmp_path: Path) -> None:
    target, victim = tmp_path / "out", tmp_path / "victim.txt"
    exported(project, target)
    victim.write_text("x")
    manifest = json.loads((target / MANIFEST).read_text())
    manifest["files"]["../victim.txt"] = digest_of_file(victim)
    (target / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="it is outside of the folder"):
        exported(project, target)
    assert victim.exists()


def test_an_export_that_was_cut_off_can_be_done_again(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out"
    exported(project, target)
    (project / "components/greet/words.py").write_text("new\n")
    copy, copied = exporting._copy, []

    def cut_off(source: Path, to: Path) -> None:
        if copied:
            raise KeyboardInterrupt
        copied.append(to)
        copy(source, to)

    monkeypatch.setattr(exporting, "_copy", cut_off)
    with pytest.raises(KeyboardInterrupt):
        exported(project, target)
    monkeypatch.setattr(exporting, "_copy", copy)
    exported(project, target)
    exported(project, tmp_path / "fresh")
    assert content(target) == content(tmp_path / "fresh")


def test_the_script_registers_in_order_what_is_not_there(project: Path, tmp_path: Path) -> None:
    """Run with an `az` that writes down what it is asked, and has the environment already."""
    target = tmp_path / "out"
    exported(project, target)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "az").write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\ncase "$*" in *"environment show"*) exit 0;; *show*) exit 3;; esac\n'
    )
    (tools / "az").chmod(0o755)
    done = subprocess.run(
        [target / SCRIPT, "--workspace-name", "ws"], env={"PATH": f"{tools}:/usr/bin:/bin"}, timeout=60, check=False
    )
    assert done.returncode == 0
    created = [line for line in (tmp_path / "asked").read_text().splitlines() if " create " in line]
    assert created == [
        f"ml component create --file components/{name}/component.yaml --workspace-name ws"
        for name in ("count_people", "greet")
    ]


def test_for_a_registry(project: Path, tmp_path: Path) -> None:
    exported(project, tmp_path / "out", registry="shared")
    spec = yaml.safe_load((tmp_path / "out/components/greet/component.yaml").read_text())
    version = yaml.safe_load((tmp_path / "out/environments/small/environment.yaml").read_text())["version"]
    assert spec["environment"] == f"azureml://registries/shared/environments/small/versions/{version}"
    assert check(find_specs(tmp_path / "out/components/greet")) == Findings()


def test_what_cannot_be_released_is_said_at_once(project: Path, tmp_path: Path) -> None:
    spec = project / "components/greet/component.yaml"
    spec.write_text(spec.read_text().replace("../../shared/more.py", "../../shared/gone.py"))
    done = CliRunner().invoke(
        app, ["register", "--to", str(tmp_path / "out"), "--components", str(project / "components")]
    )
    assert isinstance(done.exception, InputError)
    said = str(done.exception)
    assert "gone.py" in said
    assert not (tmp_path / "out").exists()
