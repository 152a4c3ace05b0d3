"""Options become steps and YAML, and both become the same plan again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tconv.yaml_text import Document
from tests.cli.conftest import Ran

Tconv = Callable[..., Ran]


@pytest.fixture
def inputs(tconv: Tconv) -> None:  # in the folder that tconv runs in
    Path("photos").mkdir()
    for name, size in (("a.png", (12, 9)), ("b.png", (9, 12))):
        Image.new("RGB", size, (9, 99, 199)).save(Path("photos", name))
    np.savez("x.npz", w=np.ones((4, 4), np.float32), label=np.arange(4))
    np.save("y.npy", np.ones((4, 5, 3), np.float32))


@pytest.mark.parametrize(
    "options",
    [
        "photos --resize 8x8 --normalize --stats imagenet --layout NCHW --half -o z.npy",
        "photos --resize 8 --normalize --stats 0.5/0.25 --layout CHW --bf16",
        "photos --pad 114 --normalize --batch-size 1 --drop-last -o z.npz",
        "photos --resize 8x8 --stack -o z.safetensors",
        "photos --channels bgr --alpha black --frames all --no-exif --max-pixels 999 --fast --normalize",
        "photos --only a* --skip b* --range 0,1 --normalize --on-bad skip",
        "photos --normalize --split --format npy -o z/",
        "photos --normalize --verify --float",
        "photos --format jpeg --quality 9 --resize 8x8 -o z/",
        "x.npz --half --fields ",
        "x.npz --to bf16 --fields l* --on-overflow saturate --keep w --max-error 0.1 -o z.safetensors",
        "x.npz --quantize int8 --min-sqnr 10 --fields  -o z.safetensors",
        "y.npy --input-layout hwc --range 0,9007199254740993 --normalize --layout CHW",
        "y.npy --input-layout HWC --denormalize none -o z/",
    ],
)
def test_yaml_is_the_same_plan(tconv: Tconv, inputs: None, options: str) -> None:
    source, *rest = words = options.split(" ")
    where = rest[rest.index("-o") :] if "-o" in rest else []
    written = tconv("plan", *words, "--print", "yaml")
    assert written.code == 0
    Path("z.yaml").write_text(written.out, encoding="utf8")
    for form in ("json", "steps", "yaml"):
        again = tconv("plan", source, "--pipeline", "z.yaml", *where, "--print", form)
        assert again.out == tconv("plan", *words, "--print", form).out


@pytest.mark.parametrize(
    "options",
    [
        "photos --resize 8x8 --normalize --stats imagenet --layout NCHW --half -o z.npy",
        "photos --resize 8 --normalize --stats 0.5/0.25 --layout CHW --bf16",
        "photos --resize 8x8 --stack -o z.safetensors",
        "y.npy --to bf16 --on-overflow saturate --keep y --max-error 0.1 -o z.safetensors",
        "y.npy --quantize int8 --min-sqnr 10 -o z.safetensors",
    ],
)
def test_text_is_the_same_plan(tconv: Tconv, inputs: None, options: str) -> None:
    source, *rest = words = options.split(" ")
    where = rest[rest.index("-o") :] if "-o" in rest else []
    chain = tconv("plan", *words, "--print", "steps").out.strip()
    for form in ("json", "steps", "yaml"):
        again = tconv("plan", source, "--step", chain, *where, "--print", form)
        assert again.out == tconv("plan", *words, "--print", form).out


@pytest.mark.parametrize("step", ["unstack", "dequantize", "scale", "pictures"])
def test_steps_without_a_parameter_are_their_name(tconv: Tconv, inputs: None, step: str) -> None:
    source = "photos"
    if step == "dequantize":
        assert tconv("y.npy", "--quantize", "int8", "-o", "q.safetensors").code == 0
        source = "q.safetensors"
    chain = {"unstack": "stack(into=s) | unstack"}.get(step, step)
    out = tconv("plan", source, "--only", "[ay]*", "--step", chain, "--print", "yaml").out
    assert Document(out).data(Document(out).root)["steps"][-1] == step
