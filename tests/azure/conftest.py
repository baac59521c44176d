"""What the tests of Azure share: the fake service."""

from fake.fixtures import azure, azure_server

__all__ = ["azure", "azure_server"]
