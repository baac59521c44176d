"""The environments of a project: one folder each, with a Dockerfile whose version table all else is held against."""
