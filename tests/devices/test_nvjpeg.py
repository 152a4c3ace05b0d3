"""JPEGs through torchvision itself, on its CPU where there is no GPU: that it is called as it wants to be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch")

PHOTO = Path(__file__).resolve().parents[2] / "examples" / "photos" / "waves.jpg"


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:.*TorchVision are deprecated:DeprecationWarning")
def test_its_cpu_gives_the_exact_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torchvision")
    from tconv.devices.nvjpeg import decoded

    made = decoded(PHOTO.read_bytes(), "torch")
    assert made is not None
    with Image.open(PHOTO) as image:
        np.testing.assert_array_equal(made, np.asarray(image))
    assert decoded(b"\xff\xd8 no JPEG", "torch") is None
