"""The environments of a project and of steps: find, build, verify, and make them on this machine."""
