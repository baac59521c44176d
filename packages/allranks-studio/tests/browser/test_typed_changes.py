"""Changes in the designer, and those of other programs at the same time."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hands import SETTINGS, Mouse, button
from serving import serving

from chromium import Tab, chromium
from user_input import element

CODE = """\
from azure.ai.ml.dsl import pipeline

from allranks.library import prepare_images


@pipeline(name="images")
def images():
    prepare = prepare_images()
    return {}
"""
Opened = Callable[[str], tuple[Tab, Path]]
NOTICE = "document.querySelector('.notice')"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """Opens the designer with a new file. The page gets no events, so that it does not know what others write."""
    folder = tmp_path_factory.mktemp("designer")
    with serving(folder) as client, chromium(tmp_path_factory.mktemp("profile")) as browser:
        tab = browser.open(f"{client.origin}/?token={client.session.token}", 1440, 900)
        tab.call("Network.setBlockedURLs", urls=["*/api/events*"])

        def open_file(name: str) -> tuple[Tab, Path]:
            (folder / name).write_text(CODE, encoding="utf-8")
            tab.call("Page.navigate", url=f"{client.origin}/designer?path={name}")
            tab.wait_for("document.querySelector('.react-flow__node')")
            return tab, folder / name

        yield open_file


def test_a_new_input_of_the_pipeline_is_named_when_it_is_made(opened: Opened) -> None:
    tab, file = opened("named.py")
    user = Mouse(tab)
    user.select("prepare")
    user.press(f"{SETTINGS}//button[@title='Connect folder']")
    user.press("//dialog//option[starts-with(., 'New pipeline input')]")
    user.write("//dialog//label[span='Name']/input", "photos")
    user.press(button("Connect", "//dialog"))
    tab.wait_for(f"{element('.cm-content')}.innerText.includes('folder=photos')")
    assert "prepare_images(folder=photos)" in file.read_text(encoding="utf-8")


def test_what_is_typed_replaces_the_change_of_another_program_only_if_the_user_says_so(
    opened: Opened,
) -> None:
    tab, file = opened("typed.py")
    user = Mouse(tab)
    changed = f"{CODE}# by another program\n"
    file.write_text(changed, encoding="utf-8")
    for text in ("one", "two"):
        user.press(".cm-content")
        user.user.write(text)
        tab.wait_for(NOTICE)
        assert file.read_text(encoding="utf-8") == changed
        if text == "one":
            user.press(button("Close"))
    user.press(button("Replace the file by what was typed"))
    tab.wait_for(f"!{NOTICE} && !document.body.innerText.includes('Checking …')")
    assert file.read_text(encoding="utf-8") not in (CODE, changed)
    user.press(button("Undo"))
    tab.wait_for(f"{element('.cm-content')}.innerText.includes('by another program')")
    assert file.read_text(encoding="utf-8") == changed
