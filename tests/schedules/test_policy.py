"""What schedules declare in their tags."""

from typing import Any

import pytest

from allranks.errors import InputError
from allranks.schedules.policy import Policy


def test_tags_are_read_and_others_are_left_alone() -> None:
    assert Policy.of({"team": "vision"}, str) == Policy()
    tags = {"allranks.on_change": "images", "allranks.shortest_interval": "2h", "allranks.retries": "3",
            "allranks.retry_after": "90s"}  # fmt: skip
    policy = Policy.of(tags, str)
    assert policy == Policy("images", 7200, 3, 90)
    assert str(policy) == "when images changes, at most every 2 h 00 min"


@pytest.mark.parametrize(
    ("tag", "value", "said"),
    [
        ("allranks.shortest_interval", "0m", "'0m'\n  expected: a number above 0 with s, m, h or d, such as 30m"),
        ("allranks.shortest_interval", "30", "such as 30m"),
        ("allranks.retries", "-1", "a whole number from 0 to 999"),
        ("allranks.retries", 2, "2\n  expected: a whole number from 0 to 999, in quotation marks"),
        ("allranks.retry_after", "soon", "such as 10m"),
        ("allranks.on_change", "", "the name of an input"),
        ("allranks.retry", 1, "did you mean allranks.retries?"),
    ],
)
def test_a_wrong_tag_is_named(tag: str, value: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        Policy.of({tag: value}, lambda key: f"schedule a, key {key}")
    assert str(caught.value).startswith(f"schedule a, key tags.{tag}: ")
    assert said in str(caught.value)
