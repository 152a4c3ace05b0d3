"""Measuring many tensors: each gets its own summary, one that cannot be read none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tconv import evaluate
from tconv.measure.survey import survey
from tests.measure.test_policy import Torn
from tests.memory import tensor


def test_each_tensor_gets_its_own_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "PIECE", 10)
    arrays = [np.arange(n, dtype=name) for n, name in ((100, "float32"), (0, "int8"), (5, "uint16"), (33, "float64"))]
    summaries, problems = survey([tensor(x) for x in arrays])
    assert problems == []
    assert [(s.count, s.max, s.mean) for s in summaries if s] == [
        (100, 99, 49.5), (0, None, None), (5, 4, 2), (33, 32, 16)
    ]  # fmt: skip


def test_what_cannot_be_read_has_no_summary() -> None:
    torn = Torn(np.ones(3), Path("torn.npy"))
    summaries, problems = survey([tensor(np.ones(2)), replace(tensor(torn.array), source=torn), tensor(np.ones(1))])
    assert [s and s.count for s in summaries] == [2, None, 1]
    assert [p.reason for p in problems] == ["torn"]
