"""What the tests share with those of allranks: the fake service of Azure ML, and the command in a project."""

from commands import command, project, quick
from fake.fixtures import azure, azure_server

__all__ = ["azure", "azure_server", "command", "project", "quick"]
