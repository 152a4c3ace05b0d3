"""quantize-model: the path, the table, JSON and report; what is refused before work; nothing half-written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from PIL import Image

from tests.cli.conftest import Ran
from tests.models.networks import convolution

Tconv = Callable[..., Ran]

CHAIN = ("--resize", "16x16", "--normalize", "--layout", "CHW")


@pytest.fixture(autouse=True)
def given(tmp_path: Path) -> None:
    """net.onnx, and 30 pictures in d/."""
    convolution(tmp_path / "net.onnx", ["N", 3, 16, 16])
    (tmp_path / "d").mkdir()
    for n in range(30):
        pixels = np.random.default_rng(n).integers(0, 256, (20, 24, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"d/{n}.png")


def test_the_path_is_printed_and_the_comparison_told(tconv: Tconv) -> None:
    ran = tconv("quantize-model", "net.onnx", "--calibrate", "d", *CHAIN)
    assert (ran.code, ran.out) == (0, "net.int8.onnx\n")
    note, header, row, last = ran.err.splitlines()
    assert note == "calibrated on 24 samples: ranges may be those of chance; 100 to 500 are usual"
    assert header.split() == ["output", "SQNR", "dB", "same", "top-1"]
    assert row.split()[0] == "logits"
    assert 15 < float(row.split()[1]) < 80
    assert re.search(r"[56] of 6 \((83\.3|100\.0)%\)$", row)
    assert last.startswith("calibrated on 24 and compared on 6 of 30 samples; ")
    session = onnxruntime.InferenceSession("net.int8.onnx", providers=["CPUExecutionProvider"])
    assert session.run(None, {"image": np.zeros((2, 3, 16, 16), np.float32)})[0].shape == (2, 10)


def test_the_json_is_as_the_help_says(tconv: Tconv) -> None:
    argv = (
        "quantize-model",
        "net.onnx",
        "--calibrate",
        "d",
        *CHAIN,
        "--samples",
        "10",
        "--held-back",
        "5",
        "--seed",
        "7",
    )
    ran = tconv(*argv, "--method", "percentile", "--percentile", "99.9", "--json", "-o", "q.onnx", "--report", "r.json")
    assert ran.code == 0
    found = json.loads(ran.out)
    assert json.loads(Path("r.json").read_text()) == found
    outputs, sizes = found.pop("outputs"), found.pop("bytes")
    assert sizes == {"before": Path("net.onnx").stat().st_size, "after": Path("q.onnx").stat().st_size}
    assert outputs.keys() == {"logits"}
    assert outputs["logits"].keys() == {"samples", "sqnr_db", "exact", "same_top1", "agreement"}
    assert outputs["logits"]["samples"] == 5
    drawn = found.pop("calibrated_on"), found.pop("compared_on")
    assert [len(some) for some in drawn] == [10, 5]
    assert all(Path(path).is_file() for path in {*drawn[0], *drawn[1]})
    del found["tconv"]
    assert found == {
        "model": "net.onnx",
        "output": "q.onnx",
        "method": "percentile",
        "percentile": 99.9,
        "per_channel": True,
        "activations": None,
        "io": None,
        "steps": "resize(16x16) | scale | permute(CHW)",
        "seed": 7,
        "of": 30,
        "skipped": [],
    }
    first = Path("q.onnx").read_bytes()
    again = tconv(*argv, "--method", "percentile", "--percentile", "99.9", "--json", "-o", "q.onnx", "-f")
    assert json.loads(again.out)["calibrated_on"] == drawn[0]
    assert Path("q.onnx").read_bytes() == first


def test_a_pipeline_by_name_and_a_batch_from_an_array(tconv: Tconv) -> None:
    convolution(Path("big.onnx"), [1, 3, 224, 224])
    assert tconv("quantize-model", "big.onnx", "--calibrate", "d", "--pipeline", "imagenet", "--samples", "4").code == 0
    small = ("--pipeline", "imagenet", "--set", "size=16", "--samples", "4", "-o", "s.onnx")
    assert tconv("quantize-model", "net.onnx", "--calibrate", "d", *small).code == 0
    np.save("x.npy", np.random.default_rng(0).uniform(0, 1, (40, 3, 16, 16)).astype(np.float32))
    ran = tconv("quantize-model", "net.onnx", "--calibrate", "x.npy", "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["compared_on"][0].startswith("x.npy: ")


@pytest.mark.parametrize(
    ("chain", "words"),
    [
        (("--resize", "16x16", "--normalize"), "the layout is another one: end the pipeline with permute(CHW)"),
        (("--resize", "8x16", "--normalize", "--layout", "CHW"), "--resize 16x16"),
        ((*CHAIN, "--to", "half"), "end the pipeline with cast(float32)"),
        (("--resize", "16x16", "--layout", "CHW"), "end the pipeline with cast(float32)"),
        (("--resize", "16x16", "--normalize", "--layout", "CHW", "--channels", "gray"), "--channels rgb"),
    ],
)
def test_what_the_model_does_not_take_is_refused_before_work(tconv: Tconv, chain: tuple[str, ...], words: str) -> None:
    ran = tconv("quantize-model", "net.onnx", "--calibrate", "d", *chain)
    assert (ran.code, ran.out) == (1, "")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith("tconv: the model takes float32 (any, 3, 16, 16), and the pipeline gives ")
    assert words in ran.err
    assert not Path("net.int8.onnx").exists()


def test_what_falls_short_is_not_written(tconv: Tconv) -> None:
    ran = tconv("quantize-model", "net.onnx", "--calibrate", "d", *CHAIN, "--min-sqnr", "200")
    assert (ran.code, ran.out) == (1, "")
    assert "200 were asked for" in ran.err
    assert sorted(p.name for p in Path().iterdir()) == ["d", "net.onnx"]
    assert tconv("quantize-model", "net.onnx", "--calibrate", "d", *CHAIN, "--min-agreement", "0.5").code == 0


def test_what_is_there_is_replaced_only_by_force(tconv: Tconv) -> None:
    Path("q.onnx").write_text("mine")
    argv = ("quantize-model", "net.onnx", "--calibrate", "d", *CHAIN, "-o", "q.onnx")
    ran = tconv(*argv)
    assert (ran.code, ran.out, Path("q.onnx").read_text()) == (1, "", "mine")
    assert "--force" in ran.err
    assert tconv(*argv, "-f").code == 0
    assert tconv(*argv[:-1], "net.onnx", "-f").code == 1  # the model itself is not


def test_bad_files_stop_it_or_are_left_out(tconv: Tconv) -> None:
    Path("d/5.png").write_bytes(Path("d/5.png").read_bytes()[:60])
    argv = ("quantize-model", "net.onnx", "--calibrate", "d", *CHAIN)
    ran = tconv(*argv)
    assert (ran.code, ran.out) == (1, "")
    assert "d/5.png" in ran.err
    assert sorted(p.name for p in Path().iterdir()) == ["d", "net.onnx"]
    ran = tconv(*argv, "--on-bad", "skip", "--json")
    assert ran.code == 3
    assert "skipped: d/5.png" in ran.err
    assert [one["path"] for one in json.loads(ran.out)["skipped"]] == ["d/5.png"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["net.onnx"], "--calibrate"),
        (["net.onnx", "--calibrate", "d", "-o", "x.tflite"], "what is written is .onnx"),
        (["net.onnx", "--calibrate", "d", "--io", "int8"], "TensorFlow Lite"),
        (["net.onnx", "--calibrate", "d", "--method", "kl"], "minmax"),
        (["net.onnx", "--calibrate", "d", "--percentile", "99"], "--method percentile"),
        (["net.onnx", "--calibrate", "d", "--method", "percentile", "--percentile", "5"], "above 50"),
        (["net.onnx", "--calibrate", "d", "--min-agreement", "98"], "a share"),
        (["net.onnx", "--calibrate", "d", "--min-sqnr", "nan"], "--min-sqnr is nan"),
        (["net.onnx", "--calibrate", "d", "--samples", "0"], "--samples"),
        (["net.onnx", "--calibrate", "d", "--step", "scale", "--normalize"], "mixed"),
        (["net.onnx", "--calibrate", "d", "--report", "net.int8.onnx"], "where the model goes"),
        ([], "MODEL"),
    ],
)
def test_a_wrong_command_is_exit_2(tconv: Tconv, argv: list[str], words: str) -> None:
    ran = tconv("quantize-model", *argv)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err


def test_samples_that_fill_no_batch_are_not_said_to_be_used(tconv: Tconv) -> None:
    convolution(Path("eight.onnx"), [8, 3, 16, 16])
    counted = ("--samples", "18", "--held-back", "12", "--json")
    found = json.loads(tconv("quantize-model", "eight.onnx", "--calibrate", "d", *CHAIN, *counted).out)
    assert (len(found["calibrated_on"]), len(found["compared_on"])) == (16, 8)
    assert found["outputs"]["logits"]["samples"] == 8
    assert not set(found["calibrated_on"]) & set(found["compared_on"])
    few = tconv("quantize-model", "eight.onnx", "--calibrate", "d", *CHAIN, "--samples", "20", "--held-back", "7", "-f")
    assert "the model takes 8 samples at once, and there are 20 and 7" in few.err


def test_a_model_of_several_files_counts_as_all_of_them(tconv: Tconv) -> None:
    onnx.save(onnx.load("net.onnx"), "far.onnx", save_as_external_data=True, location="far.data", size_threshold=0)
    ran = tconv("quantize-model", "far.onnx", "--calibrate", "d", *CHAIN, "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["bytes"]["before"] == sum(Path(name).stat().st_size for name in ("far.onnx", "far.data"))
    Path("far.data").rename("far.data.onnx")
    model = onnx.load("far.onnx", load_external_data=False)
    for one in model.graph.initializer:
        one.external_data[0].value = "far.data.onnx"
    onnx.save(model, "far.onnx")
    before = Path("far.data.onnx").read_bytes()
    ran = tconv("quantize-model", "far.onnx", "--calibrate", "d", *CHAIN, "-o", "far.data.onnx", "-f")
    assert (ran.code, Path("far.data.onnx").read_bytes()) == (1, before)
    assert "this would replace an input" in ran.err


def test_a_model_that_makes_no_numbers_is_refused_before_it_is_quantized(tconv: Tconv) -> None:
    model = onnx.load("net.onnx")
    (bias,) = [one for one in model.graph.initializer if one.name == "fc.bias"]
    bias.CopyFrom(onnx.numpy_helper.from_array(np.full(10, np.nan, np.float32), "fc.bias"))
    onnx.save(model, "nan.onnx")
    ran = tconv("quantize-model", "nan.onnx", "--calibrate", "d", *CHAIN)
    assert (ran.code, ran.out) == (1, "")
    assert "tconv: nan.onnx: its output logits holds NaN or infinities before it is quantized\n" in ran.err


def test_models_that_there_are_not(tconv: Tconv) -> None:
    for name in ("no.onnx", "d"):
        ran = tconv("quantize-model", name, "--calibrate", "d")
        assert (ran.code, ran.out) == (1, "")
    Path("x.onnx").write_bytes(b"\x08\x07" * 40)
    ran = tconv("quantize-model", "x.onnx", "--calibrate", "d")
    assert (ran.code, ran.out) == (1, "")
    assert "is no model that onnxruntime runs" in ran.err
