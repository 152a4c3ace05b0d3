"""The command line, for tests of models that run all of it."""

from __future__ import annotations

from tests.cli.conftest import tconv

__all__ = ["tconv"]
