"""The components of a project: find, check, stamp, export."""
