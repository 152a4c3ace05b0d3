"""Lets pytest explain the assertions of the conformance suite as it does those of test modules."""

import pytest

pytest.register_assert_rewrite("tests.formats.conformance")
