"""Numbers of many tensors: in one pass or in several, in memory or on a shelf, they are the same."""

from __future__ import annotations

import numpy as np
import pytest

from tconv.errors import TconvError
from tconv.quant import fit, shelf
from tconv.steps.quantize import Quant
from tests.memory import tensor
from tests.quant.fitted import settled, values, weights


def test_several_passes_and_a_shelf_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    given = [tensor(random.standard_normal((6, 32)).astype(np.float32), name) for name in ("a", "b", "c")]
    for step in (Quant("uint4", group=8), Quant("int8"), Quant("uint8", calibrate="percentile")):
        with monkeypatch.context() as plain:
            plain.setattr(fit, "AT_ONCE", 1 << 30)
            want = values(settled(step, weights(*given)))
        with monkeypatch.context() as tight:
            tight.setattr(fit, "AT_ONCE", 1)
            tight.setattr(shelf, "SMALL", 0)
            made = values(settled(step, weights(*given)))
        assert want.keys() == made.keys()
        for name, x in want.items():
            assert x.tobytes() == made[name].tobytes(), name


def test_what_has_no_scale_is_named_though_it_is_of_several_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "AT_ONCE", 1)
    bad = np.array([[1, np.nan]], np.float32)
    with pytest.raises(TconvError) as caught:
        settled(Quant("int8"), weights(tensor(bad, "a"), tensor(np.ones((2, 2), np.float32), "b"), tensor(bad, "c")))
    assert "a: " in str(caught.value)
    assert "c: " in str(caught.value)


def test_a_shelf_holds_what_it_is_given() -> None:
    first = np.arange(1 << 15, dtype=np.float32)
    with shelf.Shelf() as kept:
        small, large, more = kept.keep(first[:3]), kept.keep(first), kept.keep(-first)
    assert small is not None
    assert not isinstance(small, np.memmap)
    assert isinstance(large, np.memmap)
    assert np.array_equal(large, first)
    assert np.array_equal(more, -first)
