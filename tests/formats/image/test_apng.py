"""APNG: what is seen of each frame, by the standard's own words and as OpenCV shows it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
import pytest

from tconv.errors import TconvError
from tests.formats.image.made import apng, array_of, photo, spec_of, written
from tests.shared_data import shared

if TYPE_CHECKING:
    from tconv.ops import Array

KEEP, CLEAR, RESTORE = 0, 1, 2
SOURCE, OVER = 0, 1
RED, GREEN, HALF_BLUE, NOTHING = (255, 0, 0, 255), (0, 255, 0, 255), (0, 0, 255, 128), (0, 0, 0, 0)


def plain(colour: tuple[int, ...], height: int = 1, width: int = 2) -> Array:
    return np.full((height, width, len(colour)), colour, np.uint8)


def seen(folder: Path, *frames: tuple[Array, tuple[int, int], int, int]) -> list[list[list[int]]]:
    """The only row of each frame."""
    path = written(folder, apng(*frames, canvas=(1, 2)))
    frames_seen: list[list[list[int]]] = array_of(path, frames="all", channels="rgba")[:, 0].tolist()
    return frames_seen


def test_a_frame_stays_unless_it_says_otherwise(tmp_path: Path) -> None:
    first, second = plain(RED), plain(GREEN, width=1)
    got = seen(tmp_path, (first, (0, 0), KEEP, SOURCE), (second, (1, 0), KEEP, SOURCE))
    assert got == [[[*RED], [*RED]], [[*RED], [*GREEN]]]


def test_a_frame_may_clear_its_place(tmp_path: Path) -> None:
    first, second = plain(RED), plain(GREEN, width=1)
    got = seen(tmp_path, (first, (0, 0), CLEAR, SOURCE), (second, (1, 0), KEEP, SOURCE))
    assert got[1] == [[*NOTHING], [*GREEN]]


def test_a_frame_may_give_its_place_back(tmp_path: Path) -> None:
    frames = [
        (plain(RED), (0, 0), KEEP, SOURCE),
        (plain(GREEN), (0, 0), RESTORE, SOURCE),
        (plain(HALF_BLUE, width=1), (1, 0), KEEP, SOURCE),
    ]
    assert seen(tmp_path, *frames)[1:] == [[[*GREEN], [*GREEN]], [[*RED], [*HALF_BLUE]]]


def test_what_the_first_frame_gives_back_is_nothing(tmp_path: Path) -> None:
    frames = [(plain(RED), (0, 0), RESTORE, SOURCE), (plain(GREEN, width=1), (0, 0), KEEP, SOURCE)]
    assert seen(tmp_path, *frames)[1] == [[*GREEN], [*NOTHING]]


def test_over_what_is_there(tmp_path: Path) -> None:
    frames = [
        (plain(RED), (0, 0), KEEP, SOURCE),
        (plain(HALF_BLUE, width=1), (0, 0), KEEP, OVER),
        (plain(NOTHING), (0, 0), KEEP, OVER),
    ]
    assert seen(tmp_path, *frames)[1:] == [[[127, 0, 128, 255], [*RED]]] * 2


def test_over_nothing_and_over_glass(tmp_path: Path) -> None:
    """An alpha of 128 over one of 128 is 192 of 255, two parts of three the upper colour."""
    glass = plain((255, 0, 0, 128), width=1)
    frames = [
        (plain(NOTHING), (0, 0), KEEP, SOURCE),
        (glass, (0, 0), KEEP, OVER),
        (plain(HALF_BLUE), (0, 0), KEEP, OVER),
    ]
    assert seen(tmp_path, *frames)[1:] == [[[255, 0, 0, 128], [*NOTHING]], [[85, 0, 170, 192], [*HALF_BLUE]]]


@pytest.mark.parametrize(
    ("first", "place", "disposal", "channels"),
    [(plain(RED[:3]), (0, 0), KEEP, 3), (plain(RED[:3]), (0, 0), CLEAR, 4), (plain(RED[:3]), (0, 0), RESTORE, 4)],
)
def test_opaque_frames_have_alpha_only_if_something_may_be_seen_through(
    tmp_path: Path, first: Array, place: tuple[int, int], disposal: int, channels: int
) -> None:
    second = (plain(GREEN[:3], width=1), (0, 0), CLEAR, OVER)  # what the last one leaves behind, nobody sees
    path = written(tmp_path, apng((first, place, disposal, SOURCE), second, canvas=(1, 2)))
    assert spec_of(path, frames="all", channels="keep").shape == (2, 1, 2, channels)
    white = [255, 255, 255] if channels == 4 else [255, 0, 0]
    assert array_of(path, frames="all")[1].tolist() == [[[0, 255, 0], white]]


def test_a_first_frame_that_leaves_something_open(tmp_path: Path) -> None:
    first, second = plain(RED[:3], width=1), plain(GREEN[:3], width=1)
    data = apng((first, (1, 0), KEEP, SOURCE), (second, (0, 0), KEEP, OVER), canvas=(1, 2), default=plain(GREEN[:3]))
    got = array_of(written(tmp_path, data), frames="all")
    assert got[:, 0].tolist() == [[[0, 255, 0]] * 2, [[255, 255, 255], [255, 0, 0]], [[0, 255, 0], [255, 0, 0]]]


@pytest.mark.parametrize(("disposal", "blending"), [(3, 0), (0, 2)])
def test_what_means_nothing_is_refused(tmp_path: Path, disposal: int, blending: int) -> None:
    frame = (photo(2, 3), (0, 0), disposal, blending)
    with pytest.raises(TconvError, match=f"disposal {disposal} and blending {blending}"):
        spec_of(written(tmp_path, apng(frame, frame, canvas=(2, 3))), frames="all")


@pytest.mark.skipif(not hasattr(cv2, "imdecodeanimation"), reason="this OpenCV reads no animations")
@pytest.mark.parametrize("seed", range(8))
def test_as_opencv_shows_it(tmp_path: Path, seed: int) -> None:
    """Any sizes, places and ways; OpenCV cuts its divisions short."""
    rng = np.random.default_rng(seed)
    frames = [(rng.integers(0, 256, (6, 8, 4), dtype=np.uint8), (0, 0), int(rng.integers(3)), SOURCE)]
    for _ in range(5):
        height, width = rng.integers(1, 6), rng.integers(1, 8)
        place = (int(rng.integers(0, 9 - width)), int(rng.integers(0, 7 - height)))
        pixels = rng.integers(0, 256, (height, width, 4), dtype=np.uint8)
        frames.append((pixels, place, int(rng.integers(3)), int(rng.integers(2))))
    data = apng(*frames, canvas=(6, 8))
    got = array_of(written(tmp_path, data), frames="all", channels="rgba").astype(int)
    _, animation = cv2.imdecodeanimation(np.frombuffer(data, np.uint8))
    for mine, other in zip(got, animation.frames, strict=True):
        theirs = other[..., [2, 1, 0, 3]].astype(int)
        shown = [x[..., :3] * x[..., 3:] / 255 for x in (mine, theirs)]  # what is clear has no colour
        assert np.abs(mine[..., 3] - theirs[..., 3]).max() <= 3
        assert np.abs(shown[0] - shown[1]).max() <= 3


@pytest.mark.skipif(not hasattr(cv2, "imdecodeanimation"), reason="this OpenCV reads no animations")
@pytest.mark.parametrize("name", ["blend_op_over_near_transparent", "dispose_op_previous_region", "blend_op_over"])
def test_public_animations_which_pillow_composites_otherwise(name: str) -> None:
    path = shared("images", "python-pillow__Pillow", "apng", f"{name}.png")
    _, animation = cv2.imdecodeanimation(np.frombuffer(path.read_bytes(), np.uint8))
    got = array_of(path, frames="all", channels="rgba")[1:]  # the default image stands apart
    assert len(got) == len(animation.frames)
    for mine, theirs in zip(got, animation.frames, strict=True):
        assert np.array_equal(mine, theirs[..., [2, 1, 0, 3]])
