"""The palette's page: a card and a form for each component, in one file that needs nothing else."""

import re
import webbrowser
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from accessibility import assert_accessible, needs_axe
from allranks.catalog.declared_ports import Port
from allranks.catalog.find import ComponentInfo
from allranks.catalog.palette import groups, palette
from allranks.cli.main import app
from chromium import assert_self_contained, chromium
from component_projects import add_function, make

VOID = {"meta", "input", "br", "link", "img"}


class Elements(HTMLParser):
    """Every element with its attributes; complains of what is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert [tag for tag in self.open if tag not in ("option",)] == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def info(name: str = "greet", **said: Any) -> ComponentInfo:
    given = {
        "version": "1", "display_name": name, "description": "", "distribution": "none", "instance_count": 1,
        "process_count_per_instance": 1, "inputs": (), "outputs": (), "environment": "small", "deterministic": True,
        "path": Path("components", name, "component.yaml"), "tags": {"task": "greeting"},
    }  # fmt: skip
    return ComponentInfo(name=name, **(given | said))


PORTS = (
    Port("data", "uri_folder", "Data."),
    Port("more", "uri_file", optional=True),
    Port("times", "integer", default=3, minimum=1, maximum=9),
    Port("rate", "number", default=1e-05, minimum=0.0),
    Port("tone", "string", default="warm", enum=("warm", "cool")),
    Port("loud", "boolean", default=False),
    Port("word", "string", optional=True),
)


def test_each_input_has_the_control_of_its_type() -> None:
    page = Elements(palette([info(inputs=PORTS, outputs=(Port("out", "uri_file"),))]))
    controls = {attributes["id"]: (tag, attributes) for tag, attributes in page.found if tag in ("input", "select")}
    assert {name: tag for name, (tag, _) in controls.items() if name != "search"} == {
        "greet-times": "input", "greet-rate": "input", "greet-tone": "select", "greet-loud": "select",
        "greet-word": "input",
    }  # fmt: skip
    times = controls["greet-times"][1]
    assert [times[key] for key in ("type", "min", "max", "value", "step")] == ["number", "1", "9", "3", "1"]
    assert [controls["greet-rate"][1].get(key) for key in ("step", "min", "max", "value")] == [
        "any",
        "0",
        None,
        "1e-05",
    ]
    assert {each["for"] for each in page.of("label") if "for" in each} == {*controls} - {"search"}


def test_ports_are_drawn_on_the_card_and_optional_ones_are_told_apart() -> None:
    page = Elements(palette([info(inputs=PORTS, outputs=(Port("out", "uri_file"),))]))
    ports = [(each["class"], each["title"]) for each in page.of("span") if str(each.get("class")).startswith("port")]
    assert ports == [
        ("port", "data: uri_folder"),
        ("port optional", "more: uri_file, optional"),
        ("port", "out: uri_file"),
    ]


def test_the_form_has_the_parts_of_the_studio_s_pane_with_the_inputs_in_the_order_of_the_spec() -> None:
    mpi = info(inputs=PORTS[::-1], outputs=(Port("out", "uri_file"),), distribution="mpi", deterministic=False)
    names = re.findall(r'<legend>([\w ]+)|class="name"[^>]*>(?:<i [^>]*></i>)?([\w ]+)', palette([mpi]))
    assert [legend or name.strip() for legend, name in names] == [
        "Inputs", "word", "loud", "tone", "rate", "times", "more", "data", "Outputs", "out", "Run settings",
        "Environment", "Compute", "Distribution", "Processes per instance", "Instances", "Reuse",
    ]  # fmt: skip


def test_components_are_grouped_by_their_tag() -> None:
    found = groups([info("b", tags={"task": "own-script"}), info("a", tags={"task": "own-script"}),
                    info("c", tags={"category": "data"}), info("d", tags={})])  # fmt: skip
    assert [(group, [each.name for each in members]) for group, members in found.items()] == [
        ("Data", ["c"]),
        ("Own script", ["a", "b"]),
        ("Others", ["d"]),
    ]


def test_the_page_needs_nothing_from_elsewhere_and_keeps_its_policy() -> None:
    text = palette([info(description='<script>alert("x")</script> & more')])
    page = Elements(text)
    assert "<script>alert" not in text
    assert [each for tag, each in page.found if each.get("src") or (tag == "link")] == []
    assert all(str(each["href"]).startswith("#") for each in page.of("a"))
    assert not re.search(r"\bon\w+=", "".join(f" {key}=" for _, each in page.found for key in each))
    assert "default-src 'none'" in text


def test_every_link_leads_to_a_form() -> None:
    page = Elements(palette([info("one"), info("two")]))
    ids = {each["id"] for _, each in page.found if "id" in each}
    assert {str(each["href"])[1:] for each in page.of("a")} <= ids


@pytest.mark.slow
def test_the_command_writes_the_page_and_opens_it_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path)
    add_function(tmp_path)
    opened: list[str] = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", lambda url: bool(opened.append(url)) or True)
    file = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["components", str(tmp_path / "components"), "--page", str(file)])
    assert (done.exit_code, opened) == (0, [])
    assert "Count people" in file.read_text()
    done = CliRunner().invoke(app, ["components", str(tmp_path / "components"), "--page", str(file), "--open"])
    assert opened == [file.as_uri()]
    lost = tmp_path / "none" / "page.html"
    done = CliRunner().invoke(app, ["components", str(tmp_path / "components"), "--page", str(lost)])
    assert "No such file" in str(done.exception)


@pytest.mark.slow
@needs_axe
@pytest.mark.xdist_group("chromium")
def test_in_a_browser_one_component_is_shown_found_by_name_and_copied(tmp_path: Path) -> None:
    components = [
        info("trace", description="Says how a train of thought goes on."),
        info("train", inputs=PORTS),
        info("retrain"),
    ]
    file = tmp_path / "page.html"
    file.write_text(palette(components), encoding="utf-8")
    shown = "[...document.querySelectorAll('article:not([hidden])')].map((each) => each.id).join()"
    with chromium(tmp_path / "profile") as browser:
        tab = browser.open(file.as_uri() + "#retrain")
        assert tab.evaluate(shown) == "retrain"
        tab.type("#search", "train")
        assert tab.text("#results").split("\n")[::2] == ["train", "retrain", "trace"]
        assert tab.evaluate(shown) == "train"
        tab.evaluate("document.getElementById('train-times').value = '5'; 0")
        tab.click("#train [data-copy=python]")
        python = tab.text("#train pre")
        assert 'train = load_component("components/train/component.yaml")\n\n' in python
        assert "\nstep = train(\n    data=data,\n    times=5,\n)" in python
        tab.click("#train [data-copy=yaml]")
        assert "\n  inputs:\n    data: ${{parent.inputs.data}}\n    times: 5" in tab.text("#train pre")
        tab.resize(390, 900)
        assert not tab.is_too_wide()
        assert_accessible(tab)
        assert_self_contained(tab)
