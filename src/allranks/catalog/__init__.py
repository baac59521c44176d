"""The components of a project: find, check, version, export."""
