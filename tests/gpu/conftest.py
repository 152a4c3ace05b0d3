"""These tests run where a GPU is; elsewhere they skip, and the same laws are tested through torch's CPU."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")


@pytest.fixture(scope="session", autouse=True)
def _gpu() -> None:
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device here")
