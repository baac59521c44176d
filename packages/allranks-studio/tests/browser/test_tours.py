"""From an empty folder to a registered model, a failure, and a comparison: by mouse alone, and by keyboard alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hands import SETTINGS, Keyboard, Mouse, button, control
from serving import Client, serving

from allranks.history import stored
from allranks.history.records import RunRecord, Status
from allranks.workspace import Workspace
from chromium import Tab, chromium
from user_input import element

pytestmark = pytest.mark.recipe

WRITTEN = '''\
"""A new pipeline."""

from allranks import layout
from allranks.library import (
    evaluate_image_classifier,
    prepare_images,
    register_model,
    train_image_classifier,
)
from azure.ai.ml.dsl import pipeline


@pipeline(name="my_pipeline", display_name="My pipeline")
def my_pipeline():
    prepare = prepare_images()
    train = train_image_classifier(
        data=prepare.outputs.images,
        model="resnet_micro",
        num_train_epochs=2,
    )
    layout(train, instance_count=2, process_count_per_instance=2)
    evaluate = evaluate_image_classifier(
        data=prepare.outputs.images,
        model=train.outputs.model,
    )
    register = register_model(
        model=train.outputs.model,
        metrics=evaluate.outputs.metrics,
        name="digits",
    )
'''
BY_HAND = """\
from azure.ai.ml import PyTorchDistribution
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.entities import JobResourceConfiguration

from allranks import library


@pipeline(name="my_pipeline", display_name="My pipeline")
def my_pipeline():
    prepare = library.prepare_images()
    train = library.train_image_classifier(
        num_train_epochs=2, model="resnet_micro", data=prepare.outputs.images
    )
    train.resources = JobResourceConfiguration(instance_count=2)
    train.distribution = PyTorchDistribution(process_count_per_instance=2)
    evaluate = library.evaluate_image_classifier(model=train.outputs.model, data=prepare.outputs.images)
    register = library.register_model(name="digits", metrics=evaluate.outputs.metrics, model=train.outputs.model)
"""
WIRES = (
    (("prepare", "images"), ("train", "data")),
    (("prepare", "images"), ("evaluate", "data")),
    (("train", "model"), ("evaluate", "model")),
    (("train", "model"), ("register", "model")),
    (("evaluate", "metrics"), ("register", "metrics")),
)
COMPONENTS = {
    "Prepare images": (60, 116),
    "Train image classifier": (340, 66),
    "Evaluate image classifier": (340, 266),
    "Register model": (630, 216),
}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    (tmp_path / "empty").mkdir()
    with serving(tmp_path / "empty") as client:
        yield client


@pytest.mark.parametrize("hand", [Mouse, Keyboard])
def test_a_pipeline_is_built_run_broken_mended_compared_and_exported(
    hand: type[Mouse], client: Client, tmp_path: Path
) -> None:
    folder = tmp_path / "empty"
    with chromium(tmp_path / "profile") as browser:
        tab = browser.open(f"{client.origin}/?token={client.session.token}", 1440, 900)
        user = hand(tab)
        build(user)
        waits_for_code(tab, 'name="digits"')
        file = folder / "my_pipeline.py"
        assert file.read_text(encoding="utf-8") == WRITTEN
        (folder / "by_hand.py").write_text(BY_HAND, encoding="utf-8")
        requests = [client.get("/api/document/export", path=each, form="request") for each in (file.name, "by_hand.py")]
        assert requests[0] == requests[1]

        first = run(user, folder, "Completed")
        assert [(model.name, model.version) for step in first.steps for model in step.models] == [("digits", "1")]

        user.select("prepare")
        show_input(user, "source")
        user.choose(control("source"), "folder")
        waits_for_code(tab, 'source="folder"')
        failed = run(user, folder, "Failed")
        assert failed.verdict is not None
        assert failed.verdict.step == "prepare"

        user.press(button("Undo"))
        waits_for_code(tab, "prepare_images()")
        user.select("train")
        show_input(user, "num_train_epochs")
        user.write(control("num_train_epochs"), "1")
        user.commit()
        waits_for_code(tab, "num_train_epochs=1")
        third = run(user, folder, "Completed")

        user.press("//nav//a[.='Runs']")
        compare(user, (first, third))
        tab.wait_for("document.querySelector('canvas')")
        user.press("//nav//a[.='Designer']")
        user.press("//a[contains(., 'my_pipeline.py')]")
        user.press(button("Export"))
        user.press(button("YAML", "//dialog"))
        tab.wait_for("document.querySelector('dialog pre').innerText.includes('train_image_classifier')")
        assert tab.errors == []


def build(user: Mouse) -> None:
    tab = user.tab
    user.press("//nav//a[.='Designer']")
    user.press("//button[b='Empty']")
    user.press(button("Create", "//dialog"))
    tab.wait_for("document.querySelector('.card')")
    for number, (component, place) in enumerate(COMPONENTS.items(), start=1):
        user.add(component, place)
        tab.wait_for(f"document.querySelectorAll('.react-flow__node').length === {number}")
    for (source, output), (target, port) in WIRES:
        user.connect((source, output), (target, port))
        label = f"{source}.{output} to {target}.{port}"
        tab.wait_for(f"document.querySelector('.react-flow__edge[aria-label=\"{label}\"]')")
    user.select("train")
    show_input(user, "model")
    user.choose(control("model"), "resnet_micro")
    waits_for_code(tab, 'model="resnet_micro"')
    show_input(user, "num_train_epochs")
    user.write(control("num_train_epochs"), "2")
    user.commit()
    user.write(control("Instances"), "2")
    user.commit()
    user.write(control("Processes per instance"), "2")
    user.commit()
    waits_for_code(tab, "layout(train, instance_count=2, process_count_per_instance=2)")
    user.select("register")
    user.write(control("name"), "digits")
    user.commit()


def show_input(user: Mouse, name: str) -> None:
    """Filter the inputs of the selected node; of few inputs, show all."""
    search = f"{SETTINGS}//input[@type='search']"
    if user.tab.evaluate(f"Boolean({element(search)})"):
        user.write(search, name)
    else:
        user.press(f"{SETTINGS}//button[contains(., 'more with their default')]")


def waits_for_code(tab: Tab, text: str) -> None:
    """Wait until the editor shows a text, and the check has ended."""
    shown = "[...document.querySelectorAll('.cm-line')].map((each) => each.innerText).join('\\n')"
    tab.wait_for(f"{shown}.includes({text!r}) && !document.body.innerText.includes('Checking …')")


def run(user: Mouse, folder: Path, status: str) -> RunRecord:
    """Run the pipeline until it has ended with a status, return to editing, and return the newest run."""
    before = {each.id for each in stored.runs(Workspace(folder / ".allranks"))}
    user.press(button("Run"))
    user.press(button("Run", "//dialog"))
    state = "document.querySelector('.strip .state')?.innerText"
    user.tab.wait_for(f"/Completed|Failed/.test({state})", 600)
    assert status in user.tab.evaluate(state)
    if status == "Failed":
        user.tab.wait_for("document.querySelector('.form .problem')")
    user.press(button("Back to editing"))
    (record,) = (each for each in stored.runs(Workspace(folder / ".allranks")) if each.id not in before)
    assert record.status is (Status.COMPLETED if status == "Completed" else Status.FAILED)
    return record


def compare(user: Mouse, runs: tuple[RunRecord, ...]) -> None:
    user.tab.wait_for("document.querySelectorAll('[data-line]').length === 3")
    if isinstance(user, Keyboard):
        user.focus("[role=grid], [role=treegrid]")
        for key in ("ArrowDown", " ", "ArrowDown", "ArrowDown", " "):
            user.user.press(key)
    else:
        for each in runs:
            user.press(f"#line-{each.id} .select")
    user.press("//a[starts-with(., 'Compare')]")
