"""The program that checks an environment from inside: python -m inside, from a copy of this folder.

It runs in images and on clusters without the rest of this package: its imports are relative, and it needs only the
standard library and what it checks.
"""
