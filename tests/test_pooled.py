"""Statistics of a data set against NumPy and torch, and what becomes of them when they are used."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from tconv.errors import TconvError, UsageError
from tconv.pipeline import Sugar, steps_from_text
from tconv.pooled import Sample, Statistics, pool, save, up_to_normalize
from tconv.request import Request, Silent
from tests.shared_data import shared

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "photos"


def stats(*inputs: Path, raw: bool = False, sample: Sample | None = None, **more: object) -> Statistics:
    request = Request(tuple(map(str, inputs)), **more)  # type: ignore[arg-type]  # what tests say of it
    return pool(request, Silent(), sample=sample, raw=raw)


def numbers(found: Statistics) -> tuple[list[float], list[float]]:
    return [c.mean for c in found.channels], [c.std for c in found.channels]


def photos() -> list[tuple[Path, np.ndarray[tuple[int, ...], np.dtype[np.uint8]]]]:
    """Real photographs of many sizes, with what Pillow makes of them; damaged ones are left out."""
    found = []
    for path in sorted(p for p in shared("images").rglob("*.jpg") if 5_000 < p.stat().st_size < 1_000_000)[:60]:
        try:
            stats(path)
            with Image.open(path) as image:
                if image.mode in ("L", "RGB"):
                    found.append((path, np.asarray(ImageOps.exif_transpose(image).convert("RGB"))))
        except (TconvError, OSError):
            continue
    return found


def test_real_photos_against_numpy() -> None:
    chosen = photos()
    assert len(chosen) > 5
    pixels = np.concatenate([x.reshape(-1, 3) for _, x in chosen])
    found = stats(*(path for path, _ in chosen))
    for n, channel in enumerate(found.channels):
        x = pixels[:, n] / np.float64(255)
        assert channel.count == x.size
        np.testing.assert_allclose(channel.mean, x.mean(), rtol=0, atol=1e-12)
        np.testing.assert_allclose(channel.std, x.std(), rtol=0, atol=1e-12)


def test_against_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    batch = rng.integers(0, 256, (4, 3, 9, 7), dtype=np.uint8)
    np.save(tmp_path / "x.npy", batch)
    mean, std = numbers(stats(tmp_path / "x.npy", input_layout="NCHW"))
    x = torch.from_numpy(batch).double() / 255
    np.testing.assert_allclose(mean, x.mean(dim=(0, 2, 3)).numpy(), rtol=1e-14)
    np.testing.assert_allclose(std, x.std(dim=(0, 2, 3), correction=0).numpy(), rtol=1e-14)


def test_literal_numbers(tmp_path: Path) -> None:
    Image.fromarray(np.array([[[0, 51, 255], [255, 51, 255]]], np.uint8)).save(tmp_path / "a.png")
    found = stats(tmp_path)
    assert numbers(found) == ([0.5, 0.2, 1.0], [0.5, 0.0, 0.0])
    assert found.letters == "RGB"
    assert found.constant() == [1, 2]


def test_an_image_counts_by_its_area(tmp_path: Path) -> None:
    Image.new("RGB", (30, 10), "white").save(tmp_path / "a.png")
    Image.new("RGB", (10, 10), "black").save(tmp_path / "b.png")
    assert numbers(stats(tmp_path))[0] == [0.75, 0.75, 0.75]
    assert numbers(stats(tmp_path, sugar=Sugar(resize="8x8")))[0] == [0.5, 0.5, 0.5]


def test_grey_16_bit_and_alpha_are_what_convert_makes_of_them(tmp_path: Path) -> None:
    Image.new("L", (2, 2), 51).save(tmp_path / "grey.png")
    Image.fromarray(np.full((2, 2), 13107, np.uint16)).save(tmp_path / "deep.png")
    Image.new("RGBA", (2, 2), (51, 51, 51, 255)).save(tmp_path / "alpha.png")
    found = stats(tmp_path)
    assert numbers(found) == ([0.2] * 3, [0.0] * 3)
    assert {(s.dtype, s.known, s.tensors) for s in found.sources} == {
        ("uint8", (0, 255), 2), ("uint16", (0, 65535), 1)
    }  # fmt: skip
    grey = stats(tmp_path, read=_read(channels="gray"))
    assert (grey.letters, len(grey.channels)) == ("Y", 1)


def _read(**options: str) -> object:
    from tconv.writer import ReadOptions

    return ReadOptions(**options)  # type: ignore[arg-type]  # words that are right


def test_mixed_channels_are_refused_with_both_files(tmp_path: Path) -> None:
    Image.new("L", (2, 2)).save(tmp_path / "a.png")
    Image.new("RGB", (2, 2)).save(tmp_path / "b.png")
    with pytest.raises(TconvError, match=r"a\.png has 1 channel and .*b\.png has 3"):
        stats(tmp_path, read=_read(channels="keep"))


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_the_same_bits_with_any_number_of_threads(tmp_path: Path, dtype: str) -> None:
    rng = np.random.default_rng(2)
    for n in range(12):
        x = rng.integers(0, 256, (20 + n, 30, 3)).astype(np.uint8)
        if dtype == "uint8":
            Image.fromarray(x).save(tmp_path / f"{n}.png")
        else:
            np.save(tmp_path / f"{n}.npy", (x / 7).astype(np.float32))
    layout = None if dtype == "uint8" else "HWC"
    found = [stats(tmp_path, workers=n, input_layout=layout, range=(0, 255)).channels for n in (1, 2, 3, 8, 8)]
    assert all(one == found[0] for one in found)


def test_a_file_that_normalize_takes_makes_mean_0_and_std_1(tmp_path: Path) -> None:
    from tconv.steps.normalize import Normalize

    sugar = Sugar(resize="32x32")
    found = stats(EXAMPLES, sugar=sugar)
    save(found, tmp_path / "s.json", force=False)
    step = Normalize(str(tmp_path / "s.json"))
    assert step.numbers == tuple(map(tuple, numbers(found)))
    steps = tuple(steps_from_text([f"resize(32x32) | scale(float64) | normalize('{tmp_path}/s.json')"]))
    from tconv.job import convert

    convert(
        Request((str(EXAMPLES),), output=str(tmp_path / "x.npy"), steps=steps), Silent(), lambda _: None, lambda _: None
    )
    x = np.load(tmp_path / "x.npy")
    np.testing.assert_allclose(x.mean(axis=(0, 1, 2)), [0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(x.std(axis=(0, 1, 2)), [1, 1, 1], atol=1e-12)
    with pytest.raises(TconvError, match="exists already"):
        save(found, tmp_path / "s.json", force=False)


def test_the_file_has_its_provenance(tmp_path: Path) -> None:
    found = stats(EXAMPLES, sample=Sample(5, seed=3), sugar=Sugar(resize="8x8"))
    save(found, tmp_path / "s.json", force=False)
    read = json.loads((tmp_path / "s.json").read_text())
    assert read == json.loads(json.dumps(found.as_json()))
    assert (read["files"], read["count"], read["steps"], read["channels"]) == (5, 5 * 64, "resize(8x8)", "RGB")
    assert read["sample"] == {"of": 12, "seed": 3}


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    def of(seed: int) -> object:
        return stats(EXAMPLES, sample=Sample(4, seed)).channels

    assert of(1) == of(1)
    assert of(1) != of(2)
    assert stats(EXAMPLES, sample=Sample(100)).sample is None


def test_floats_without_a_range_are_refused_or_raw(tmp_path: Path) -> None:
    x = np.array([[1.0, 2.0], [3.0, 6.0]], np.float32)
    np.save(tmp_path / "x.npy", x)
    with pytest.raises(TconvError, match="nobody knows the range") as caught:
        stats(tmp_path / "x.npy")
    assert "--raw" in str(caught.value)
    found = stats(tmp_path / "x.npy", raw=True)
    assert numbers(found) == ([3.0], [x.astype(np.float64).std()])
    assert "taken as one channel" in found.notes[0]
    assert numbers(stats(tmp_path / "x.npy", range=(1, 6), input_layout="NC"))[0] == [0.2, 0.6]


def test_what_lies_outside_a_stated_range_is_told(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([0.0, 300.0], np.float32))
    found = stats(tmp_path / "x.npy", range=(0, 255))
    assert "1 of 2 values" in found.notes[0]
    assert "outside" in found.notes[0]


def test_what_was_scaled_before_is_left_as_it_is(tmp_path: Path) -> None:
    from tconv.job import convert

    steps = tuple(steps_from_text(["scale"]))
    request = Request((str(EXAMPLES),), output=str(tmp_path / "x.safetensors"), steps=steps)
    convert(request, Silent(), lambda _: None, lambda _: None)
    mean, std = numbers(stats(tmp_path / "x.safetensors"))
    exact = numbers(stats(EXAMPLES))
    np.testing.assert_allclose(mean, exact[0], rtol=1e-7)
    np.testing.assert_allclose(std, exact[1], rtol=1e-7)


def test_bad_files_are_refused_or_skipped(tmp_path: Path) -> None:
    good, bad, nan = tmp_path / "a.npy", tmp_path / "b.npy", tmp_path / "c.npy"
    np.save(good, np.array([0.0, 1.0]))
    np.save(nan, np.array([np.nan, 1.0, np.inf]))
    bad.write_bytes(b"\x93NUMPY\x01\x00")
    with pytest.raises(TconvError):
        stats(good, bad, range=(0, 1))
    with pytest.raises(TconvError, match=r"c\.npy: c: 2 of its values are NaN or infinite"):
        stats(good, nan, range=(0, 1))
    found = stats(good, bad, nan, range=(0, 1), on_bad="skip")
    assert (found.files, len(found.skipped), numbers(found)) == (1, 2, ([0.5], [0.5]))
    with pytest.raises(TconvError, match="NaN"):
        stats(nan, range=(0, 1), on_bad="skip")


def test_a_truncated_image_leaves_nothing_of_itself(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    Image.fromarray(rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(tmp_path / "a.jpg")
    whole = (tmp_path / "a.jpg").read_bytes()
    (tmp_path / "b.jpg").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TconvError, match=r"b\.jpg: truncated"):
        stats(tmp_path)
    assert stats(tmp_path, on_bad="skip").channels == stats(tmp_path / "a.jpg").channels


def test_weights_are_no_data_set() -> None:
    with pytest.raises(TconvError, match="no data set"):
        stats(EXAMPLES.parent / "tiny.pt")


def test_labels_beside_images_are_asked_about(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=np.zeros((2, 3), np.uint8), y=np.array([1, 2]))
    with pytest.raises(TconvError, match="labels"):
        stats(tmp_path / "d.npz")
    assert stats(tmp_path / "d.npz", fields="x").sources[0].dtype == "uint8"
    assert stats(tmp_path / "d.npz", only=("x",)).channels[0].count == 6


def test_two_folders_may_hold_files_of_one_name(tmp_path: Path) -> None:
    for folder in ("train", "test"):
        (tmp_path / folder).mkdir()
        Image.new("RGB", (2, 2), "white").save(tmp_path / folder / "a.png")
    assert stats(tmp_path / "train", tmp_path / "test").files == 2


@pytest.mark.parametrize(
    ("chain", "kept"),
    [
        ("resize(256) | crop(224) | scale | normalize(imagenet) | cast(float16)", "resize(256) crop(224)"),
        ("scale | crop(8) | stack | permute(NCHW)", "crop(8)"),
        ("scale | resize(8)", "scale resize(8)"),
        ("scale(uint8) | permute(CHW)", "scale(uint8)"),
        ("clamp(0, 9) | scale | cast(float16) | normalize(mean=0, std=1)", "clamp(0, 9) scale cast(float16)"),
        ("normalize(clip) | resize(8)", ""),
    ],
)  # fmt: skip
def test_the_steps_up_to_normalize(chain: str, kept: str) -> None:
    assert " ".join(map(str, up_to_normalize(steps_from_text([chain])))) == kept


def test_steps_are_done_before(tmp_path: Path) -> None:
    """Of a border of black the centre knows nothing."""
    x = np.zeros((6, 6, 3), np.uint8)
    x[2:4, 2:4] = 51
    Image.fromarray(x).save(tmp_path / "a.png")
    steps = tuple(steps_from_text(["crop(2) | scale | normalize(imagenet) | permute(CHW)"]))
    assert numbers(stats(tmp_path, steps=steps)) == ([0.2] * 3, [0.0] * 3)


def test_a_cast_that_overflows_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([1e5, 1.0], np.float32))
    with pytest.raises(TconvError, match="overflow float16"):
        stats(tmp_path / "x.npy", raw=True, steps=tuple(steps_from_text(["cast(float16)"])))


def test_a_constant_channel_makes_no_file(tmp_path: Path) -> None:
    Image.new("RGB", (2, 2), "red").save(tmp_path / "a.png")
    with pytest.raises(TconvError, match="channel 0 and 1 and 2 has the same value everywhere"):
        save(stats(tmp_path), tmp_path / "s.json", force=False)
    assert not (tmp_path / "s.json").exists()


def test_nothing_to_look_at(tmp_path: Path) -> None:
    with pytest.raises(TconvError, match="no file that tconv reads"):
        stats(tmp_path)
    np.save(tmp_path / "x.npy", np.zeros((0, 3), np.uint8))
    with pytest.raises(TconvError, match="no values"):
        stats(tmp_path)


def test_a_shuffled_order_of_files_makes_no_difference() -> None:
    paths = sorted(EXAMPLES.iterdir())
    shuffled = random.Random(0).sample(paths, len(paths))
    assert stats(*paths).channels == stats(*shuffled).channels


def test_a_wrong_chain_is_refused_before_any_file() -> None:
    with pytest.raises(UsageError):
        stats(EXAMPLES, sugar=Sugar(resize="x"))
