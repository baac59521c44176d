"""The environments of a project: one folder each, checked against the version table of its Dockerfile."""
