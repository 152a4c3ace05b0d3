"""Plans, from headers alone: what is written where, how large it is, what memory it takes, what is in the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tconv.errors import TconvError, UsageError
from tconv.pipeline import Sugar
from tconv.planner import Plan, plan
from tconv.request import Request, Silent


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def planned(*inputs: str, sugar: Sugar | None = None, **asked: Any) -> Plan:
    return plan(Request(inputs, sugar=sugar or Sugar(), **asked), Silent(), {})


def pictures(*names: str, size: tuple[int, int] = (4, 3)) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size).save(name)


def test_a_folder_of_images_is_one_file_by_default_and_one_array_where_only_one_fits() -> None:
    pictures("im/a.png", "im/b.png")
    (file,) = planned("im", sugar=Sugar(normalize=True)).files
    assert file.path.name == "im.safetensors"
    assert [(t.spec.name, t.spec.shape) for t in file.stream.tensors] == [("a.png", (3, 4, 3)), ("b.png", (3, 4, 3))]
    (file,) = planned("im", sugar=Sugar(normalize=True), output="x.npy").files
    assert [(t.spec.name, t.spec.shape, t.spec.axes) for t in file.stream.tensors] == [("x", (2, 3, 4, 3), "NHWC")]


def test_the_sizes_are_those_of_the_files() -> None:
    np.save("x.npy", np.zeros((10, 10)))
    found = planned("x.npy", sugar=Sugar(to="float16"))
    assert found.size == 128 + 200  # the header of an .npy, and two bytes each
    assert found.sizes() == {Path.cwd(): 328}


def test_the_memory_is_that_of_the_largest_pieces_of_all_workers() -> None:
    np.save("x.npy", np.zeros(1 << 22, np.float32))
    piece = (1 << 20) * (4 + 2 + 2)  # read, made, and handed to the writer
    assert planned("x.npy", sugar=Sugar(to="float16"), workers=1).peak_memory == piece
    assert planned("x.npy", sugar=Sugar(to="float16"), workers=3).peak_memory == 3 * piece
    assert planned("x.npy", sugar=Sugar(to="float16"), workers=3, max_memory=2 * piece).peak_memory == 2 * piece


def test_the_memory_of_what_is_empty_is_none() -> None:
    torch.save({"e": torch.empty(0, 3), "f": torch.empty(3, 0)}, "x.pt")
    made = planned("x.pt", sugar=Sugar(to="float16"))
    assert (made.peak_memory, made.beyond) == (0, None)
    torch.save({"e": torch.empty(0, 3), "w": torch.ones(3)}, "x.pt")
    assert planned("x.pt", sugar=Sugar(to="float16"), workers=1).peak_memory == 3 * (4 + 2 + 2)


def test_a_plan_takes_no_time_for_each_piece() -> None:
    """A kilobyte can be the checkpoint of an exabyte: one value, of which all others are views."""
    torch.save({"w": torch.ones(1).expand(1 << 20, 1 << 20, 1 << 20)}, "x.pt")
    made = planned("x.pt", sugar=Sugar(to="float16"))
    assert made.size > 1 << 61
    assert 0 < made.peak_memory <= 1 << 30


def test_the_memory_is_that_of_all_that_goes_to_a_device_at_once() -> None:
    pytest.importorskip("torch")
    np.save("x.npy", np.zeros(1 << 23, np.float32))
    asked: dict[str, Any] = {"sugar": Sugar(to="float16"), "device": "torch", "workers": 2}
    piece = (1 << 20) * (4 + 2 + 4 + 2 + 2)  # read, made, sent, come back, and handed to the writer
    assert planned("x.npy", **asked, device_batch=3).peak_memory == 2 * 3 * piece
    assert planned("x.npy", **asked, device_batch=1).peak_memory == 2 * piece
    assert planned("x.npy", **asked).peak_memory == 8 * piece  # there are no more
    assert planned("x.npy", **asked, max_memory=5 * piece).peak_memory == 5 * piece


def test_what_is_in_the_way_does_not_keep_anyone_from_planning() -> None:
    np.save("x.npy", np.zeros(3))
    Path("y.npy").touch()
    (problem,) = planned("x.npy", sugar=Sugar(to="float16"), output="y.npy").in_the_way
    assert str(problem).startswith(f"{Path.cwd()}/y.npy: exists already; --force")
    assert planned("x.npy", sugar=Sugar(to="float16"), output="y.npy", force=True).in_the_way == ()


def test_what_is_wrong_in_itself_is_told_before_a_file_is_looked_for() -> None:
    with pytest.raises(UsageError, match="uint8 has no inf"):
        planned("gone.npy", sugar=Sugar(to="uint8"), on_overflow="inf")
    with pytest.raises(UsageError, match="names no format"):
        planned("gone.npy", output="x.xyz")
    with pytest.raises(TconvError, match="no such file"):
        planned("gone.npy", output="x.npy")


def test_weights_and_data_do_not_go_into_one_file() -> None:
    from safetensors.numpy import save_file

    np.save("x.npy", np.zeros(3))
    save_file({"w": np.zeros(3, np.float32)}, "m.safetensors")
    with pytest.raises(TconvError, match=r"m\.safetensors holds weights and x\.npy data"):
        planned("x.npy", "m.safetensors", output="y.npz")


def test_a_file_without_a_tensor_is_refused() -> None:
    np.savez("empty.npz")
    with pytest.raises(TconvError, match=r"empty\.npz: there is no tensor in it"):
        planned("empty.npz", output="y.npy")


def test_text_in_an_archive_is_refused_unless_it_is_skipped() -> None:
    np.savez("x.npz", a=np.zeros(3), names=np.array(["a"]))
    with pytest.raises(TconvError, match=r"x\.npz: names: an array of text") as caught:
        planned("x.npz", output="y.npz")
    assert "--skip leaves out what is no tensor" in str(caught.value)
    found = planned("x.npz", output="y.npz", skip=("names",))
    assert [t.spec.name for t in found.files[0].stream.tensors] == ["a"]
    assert found.notes == ()


def test_a_pattern_that_skips_nothing_is_noted() -> None:
    np.savez("x.npz", a=np.zeros(3), b=np.zeros(3))
    assert planned("x.npz", output="y.npz", skip=("lables",)).notes == (
        "--skip 'lables' matches no name; names here are a, b",
    )


def test_bad_inputs_are_listed_together_or_left_out_as_asked() -> None:
    pictures("im/a.png")
    Path("im/b.png").write_bytes(b"")
    Path("im/c.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(TconvError, match=r"(?s)b\.png: .*c\.png: .*--on-bad skip leaves bad files out"):
        planned("im", sugar=Sugar(normalize=True))
    found = planned("im", sugar=Sugar(normalize=True), on_bad="skip")
    assert [Path(p.file).name for p in found.skipped] == ["b.png", "c.png"]
    assert [t.spec.name for t in found.files[0].stream.tensors] == ["a.png"]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_an_empty_tensor_takes_no_memory(shape: tuple[int, ...]) -> None:
    np.save("x.npy", np.zeros(shape))
    found = planned("x.npy", sugar=Sugar(to="float16"))
    assert (found.peak_memory, found.size, found.beyond) == (0, 128, None)
