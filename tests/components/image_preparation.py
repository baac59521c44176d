"""The code of prepare_images and a request to it, for the tests of its sources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def preparation(code: Callable[[str, str], Any]) -> Any:
    return code("prepare_images", "preparation")


@pytest.fixture
def prepared(code: Callable[[str, str], Any]) -> Any:
    return code("prepare_images", "allranks_steps.images.prepared_images")


def request(preparation: Any, **changes: Any) -> Any:
    """A request as component.py makes it of its defaults, with these changes."""
    settings: dict[str, Any] = {
        "source": "digits",
        "folder": None,
        "archive": None,
        "archive_url": "http://127.0.0.1:1/cifar-10-python.tar.gz",
        "archive_md5": "0" * 32,
        "image_size": 8,
        "validation_fraction": 0.2,
        "test_fraction": 0.2,
        "seed": 0,
    }
    return preparation.Request(**settings | changes)
