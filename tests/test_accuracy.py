"""A trained network is about as often right when it is quantized, by every route; and the table of it is true."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.accuracy_table import documented

if TYPE_CHECKING:
    import torch

    from tests.accuracy import Digits

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # training and TensorFlow take seconds; they warn

DROPS = {"int4": 0.04}  # at most; of 8 bits a hundredth


@pytest.fixture(scope="module")
def network() -> tuple[torch.nn.Sequential, Digits]:
    pytest.importorskip("sklearn", reason="its digits are what the network is trained on: pip install 'tconv[test]'")
    from tests.accuracy import Digits, trained

    digits = Digits()
    return trained(digits), digits


@pytest.mark.parametrize("route", ["weights", "onnx", "tflite", "pt2e"])
def test_little_is_lost(route: str, network: tuple[torch.nn.Sequential, Digits], tmp_path: Path) -> None:
    from tests.accuracy import ROUTES

    quantize, needs = ROUTES[route]
    pytest.importorskip(needs, reason=f"the route by {needs} needs it")
    net, digits = network
    rows = list(quantize(tmp_path, net, digits))
    told = {(name, scheme): cells for name, scheme, *cells in documented()}
    assert rows
    for row in rows:
        assert row.before > 0.95
        assert row.after >= row.before - DROPS.get(row.scheme, 0.01), row
        before, after, size = told[row.route, row.scheme]
        assert abs(float(before.rstrip("%")) / 100 - row.before) < 0.015
        assert abs(float(after.rstrip("%")) / 100 - row.after) < 0.015
        assert abs(float(size) - row.size) < 0.05


def test_the_page_has_every_route() -> None:
    assert {route for route, *_ in documented()} == {"weights", "ONNX", "TensorFlow Lite", "torch.export"}
