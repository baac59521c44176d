"""The fake service, beside which the tests of the client make the same calls."""

import pytest
from fake.fixtures import azure, azure_server

__all__ = ["azure", "azure_server"]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Nearly every test starts the command or an engine."""
    item.add_marker(pytest.mark.slow)
