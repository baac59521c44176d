"""Links from a page to files beside it."""

import pytest

from allranks.history.page.page import Links


@pytest.mark.parametrize(
    ("path", "link"),
    [
        ("/w/.allranks/runs/a/train/log.txt", "train/log.txt"),
        ("/w/.allranks/runs/b/train/log.txt", "../b/train/log.txt"),
        ("/w/.allranks/runs/a/ä b#?%.txt", "%C3%A4%20b%23%3F%25.txt"),
        ("/w/.allranks/runs/a/javascript:alert(1)", "javascript%3Aalert%281%29"),
        ("/w/.allranks/runs/a/../../../../etc/passwd", ""),
        ("/w/.allranks/runs-of-others/a", ""),
        ("/data/images", ""),
        ("train/log.txt", ""),
        ("javascript:alert(1)", ""),
        ("file:///w/.allranks/runs/a/log.txt", ""),
        ("https://host/w/.allranks/runs/a/log.txt", ""),
        ("/w/.allranks/runs/a/\0", ""),
        ("", ""),
    ],
)
def test_files_of_this_run_and_its_neighbours_have_relative_links(path: str, link: str) -> None:
    assert Links("/w/.allranks/runs/a").link(path) == link


def test_a_page_in_no_folder_links_to_nothing() -> None:
    links = Links("")
    assert (links.link("/runs/a/log.txt"), links.shown("/runs/a/log.txt"), links.page_of("b")) == (
        "",
        "/runs/a/log.txt",
        "",
    )


def test_the_page_of_another_run_is_in_the_folder_beside() -> None:
    assert Links("/runs/a").page_of("../b") == "../..%2Fb/run.html"
