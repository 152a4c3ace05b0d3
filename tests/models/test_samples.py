"""Samples: drawn by seed, divided, made one batch at a time, bad ones left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tconv.cli.app import run
from tconv.errors import TconvError, TconvErrors, UsageError
from tconv.models import samples as module
from tconv.models.samples import Batches, Wish, draw
from tconv.pipeline import Sugar, steps_from_text
from tconv.request import Request, Silent
from tests.memory import tensor


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "d"
    made.mkdir()
    for n in range(20):
        Image.fromarray(np.full((4, 6, 3), n, np.uint8)).save(made / f"{n}.png")
    return made


def names(some: tuple[object, ...]) -> list[str]:
    return [t.spec.name for t in some]  # type: ignore[attr-defined]  # tensors


def asked(*inputs: Path, **more: object) -> Request:
    return Request(tuple(map(str, inputs)), **more)  # type: ignore[arg-type]  # as the tests say


def test_the_same_seed_draws_the_same_and_none_twice(folder: Path) -> None:
    wish = Wish(8, 5, seed=3)
    first, again = (draw(asked(folder), wish, Silent()) for _ in range(2))
    assert (names(first.calibration), names(first.held_back)) == (names(again.calibration), names(again.held_back))
    assert (len(first.calibration), len(first.held_back), first.of) == (8, 5, 20)
    assert len({*names(first.calibration), *names(first.held_back)}) == 13
    other = draw(asked(folder), Wish(8, 5, seed=4), Silent())
    assert names(other.calibration) != names(first.calibration)


def test_of_few_a_fifth_is_held_back(folder: Path) -> None:
    drawn = draw(asked(folder), Wish(300, 100), Silent())
    assert (len(drawn.calibration), len(drawn.held_back)) == (16, 4)
    drawn = draw(asked(folder), Wish(19, 1), Silent())
    assert (len(drawn.calibration), len(drawn.held_back)) == (19, 1)
    with pytest.raises(TconvError, match="no sample to compare on besides the one"):
        draw(asked(folder / "1.png"), Wish(), Silent())


def test_what_is_not_drawn_is_not_opened(folder: Path) -> None:
    wish = Wish(3, 2)
    kept = draw(asked(folder), wish, Silent())
    for path in folder.iterdir():
        if path.name not in names(kept.calibration) + names(kept.held_back):
            path.write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    assert names(draw(asked(folder), wish, Silent()).calibration) == names(kept.calibration)


def test_slices_of_arrays_are_samples(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(30, dtype=np.float32).reshape(10, 3))
    drawn = draw(asked(tmp_path / "x.npy"), Wish(6, 4), Silent())
    assert (len(drawn.calibration), len(drawn.held_back), drawn.of) == (6, 4, 10)
    got = sorted(module.value(t).tolist() for t in (*drawn.calibration, *drawn.held_back))
    assert got == np.arange(30).reshape(10, 3).tolist()


def test_a_pipeline_that_stacks_is_taken_apart_again(folder: Path) -> None:
    chain = tuple(steps_from_text(["scale | stack | permute(NCHW)"]))
    drawn = draw(asked(folder, steps=chain), Wish(5, 5), Silent())
    assert {t.spec.shape for t in drawn.calibration} == {(3, 4, 6)}
    assert {t.spec.axes for t in drawn.calibration} == {"CHW"}
    for one in drawn.calibration:
        np.testing.assert_array_equal(module.value(one), np.float32(int(Path(one.spec.name).stem)) / np.float32(255))


def test_what_depends_on_all_values_is_no_pipeline_for_a_model(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"quantize\(int8\): it depends on the values of all samples"):
        draw(asked(folder, steps=tuple(steps_from_text(["scale | quantize(int8)"]))), Wish(), Silent())


def test_weights_are_no_samples(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"w": np.zeros((4, 4), np.float32)}, tmp_path / "w.safetensors")
    with pytest.raises(TconvError, match="holds weights, which are no samples"):
        draw(asked(tmp_path / "w.safetensors"), Wish(), Silent())


def test_bad_files_stop_it_or_are_left_out(folder: Path) -> None:
    (folder / "3.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    broken = bytearray((folder / "4.png").read_bytes())
    broken[-20] ^= 255  # of its pixels: its header is whole
    (folder / "4.png").write_bytes(broken)
    with pytest.raises(TconvError, match=r"3\.png"):
        draw(asked(folder), Wish(15, 5), Silent())
    drawn = draw(asked(folder, on_bad="skip"), Wish(15, 5), Silent())
    assert sorted(Path(p.file).name for p in drawn.skipped) == ["3.png", "4.png"]
    assert len(drawn.calibration) + len(drawn.held_back) == 18
    (folder / "3.png").unlink()
    drawn = draw(asked(folder), Wish(15, 4), Silent())
    batches = Batches((*drawn.calibration, *drawn.held_back), 4, 2)
    with pytest.raises(TconvError, match=r"4\.png: "):
        list(batches)


def test_what_is_not_finite_is_no_sample(tmp_path: Path) -> None:
    x = np.ones((6, 2), np.float32)
    x[3, 0], x[4, 1] = np.nan, np.inf
    np.save(tmp_path / "x.npy", x)
    drawn = draw(asked(tmp_path / "x.npy"), Wish(4, 2), Silent())
    with pytest.raises(TconvError, match=r"x\.npy: x-0000[34]: holds NaN or infinities"):
        [module.value(t) for t in (*drawn.calibration, *drawn.held_back)]
    drawn = draw(asked(tmp_path / "x.npy", on_bad="skip"), Wish(4, 2), Silent())
    assert [len(drawn.calibration) + len(drawn.held_back), len(drawn.skipped)] == [4, 2]
    np.save(tmp_path / "x.npy", x * np.nan)
    with pytest.raises(TconvErrors, match="holds NaN or infinities"):
        draw(asked(tmp_path / "x.npy", on_bad="skip"), Wish(4, 2), Silent())


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_labels_are_no_samples(folder: Path, suffix: str) -> None:
    for n in range(20):
        (folder / "ab"[n % 2]).mkdir(exist_ok=True)
        (folder / f"{n}.png").rename(folder / "ab"[n % 2] / f"{n}.png")
    path = folder.with_name(f"x.{suffix}")
    assert run([str(folder), "--normalize", "--stack", "-o", str(path)]) == 0
    drawn = draw(asked(path), Wish(15, 5), Silent())
    assert drawn.of == 20
    assert {t.spec.shape for t in (*drawn.calibration, *drawn.held_back)} == {(4, 6, 3)}


def test_a_cast_that_loses_is_refused_by_name(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[1.0], [1e6]], np.float32))
    drawn = draw(asked(tmp_path / "x.npy", sugar=Sugar(to="float16")), Wish(1, 1), Silent())
    with pytest.raises(TconvError, match=r"x.npy: .*cast\(float16\): 1 of 1 values overflow"):
        [module.value(t) for t in (*drawn.calibration, *drawn.held_back)]


def test_batches_are_made_when_it_is_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    told: list[int] = []
    real = module.value

    def counted(one: object) -> object:
        made.append(one.spec.name)  # type: ignore[attr-defined]  # a tensor
        return real(one)  # type: ignore[arg-type]  # a tensor

    monkeypatch.setattr(module, "value", counted)
    some = [tensor(np.full((2,), n, np.float32), str(n)) for n in range(7)]
    batches = Batches(some, 3, 1, tell=told.append)
    assert len(batches) == 3
    found = iter(batches)
    assert next(found).tolist() == [[0, 0], [1, 1], [2, 2]]
    assert made == ["0", "1", "2"]
    assert [len(batch) for batch in found] == [3, 1]
    assert told == [3, 3, 1]


def test_errors_of_several_files_are_told_together(folder: Path) -> None:
    for n in (3, 5):
        (folder / f"{n}.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(TconvErrors) as caught:
        draw(asked(folder), Wish(15, 5), Silent())
    assert len(caught.value.problems) == 2
