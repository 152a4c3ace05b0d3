"""What every test shares; and in CI, no skip hides a missing dependency."""

from __future__ import annotations

import importlib
import os

import pytest
from hypothesis import settings

# How long an example takes tells of the machine, not of the code.
settings.register_profile("tconv", deadline=None)
settings.load_profile("tconv")


def pytest_sessionstart() -> None:
    """Import what ``TCONV_TESTS_NEED`` lists, so that a test that skips without it cannot do so unseen."""
    for module in filter(None, os.environ.get("TCONV_TESTS_NEED", "").split(",")):
        try:
            importlib.import_module(module)
        except ImportError as problem:
            pytest.exit(f"TCONV_TESTS_NEED lists {module}, which cannot be imported: {problem}", returncode=3)
