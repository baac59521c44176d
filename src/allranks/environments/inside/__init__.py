"""The program that says what is true inside an environment: python -m inside, from a copy of this folder.

It runs in images and on clusters where nothing else of this package is: its imports are relative, and else it needs
only the standard library and what it looks at.
"""
