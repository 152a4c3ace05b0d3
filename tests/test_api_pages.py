"""The API's pages are made of its docstrings without a warning, and every public name says what it is."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

import tconv

for needed in ("pdoc", "torch", "tensorflow"):
    pytest.importorskip(needed, reason="the pages tell of the loaders, and are made by pdoc")


def test_all_names_have_their_place_on_a_page(tmp_path: Path) -> None:
    from tests.api_pages import make

    make(tmp_path)
    page = (tmp_path / "tconv.html").read_text(encoding="utf8")
    for name in set(tconv.__all__) - {"loaders"}:
        assert f'id="{name}"' in page, name
    guide = (tmp_path / "guide.html").read_text(encoding="utf8")
    for word in ('id="training"', 'id="inference"', 'id="edge-devices"', "<table>", "GradScaler", "autocast"):
        assert word in guide
    for framework, name in (("torch", "Dataset"), ("torch", "collate"), ("tensorflow", "dataset")):
        assert f'id="{name}"' in (tmp_path / "tconv" / "loaders" / f"{framework}.html").read_text(encoding="utf8")


@pytest.mark.parametrize("module", ["tconv", "tconv.loaders.torch", "tconv.loaders.tensorflow"])
def test_every_public_function_says_what_it_does(module: str) -> None:
    found = importlib.import_module(module)
    for name in found.__all__:
        thing = getattr(found, name)
        assert inspect.getdoc(thing), name
        own = vars(thing).items() if inspect.isclass(thing) else ()
        methods = {key: value for key, value in own if inspect.isfunction(value) and not key.startswith("_")}
        assert all(inspect.getdoc(value) for value in methods.values()), name
