"""The command line: one module a verb; the only place that prints and that knows exit codes."""

from tconv.cli.app import main

__all__ = ["main"]
