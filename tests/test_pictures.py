"""What is different where a job writes pictures: the format, the channels that are read, the steps that are implied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tconv.errors import UsageError
from tconv.inputs import Input
from tconv.pictures import form, one_by_one, reading, refuse_unheld
from tconv.pipeline import Sugar, steps_from_text
from tconv.registry import FORMATS
from tconv.request import Request
from tconv.writer import ReadOptions, WriteOptions

PNG = FORMATS["png"]


def request(output: str | None = None, **asked: Any) -> Request:
    return Request(("x.npy",), output=output, **asked)


def back(stats: str = "imagenet") -> Sugar:
    return Sugar(denormalize=stats)


def one(kind: str) -> Input:
    return Input(Path("x"), FORMATS[kind], "x")


def name(asked: Request) -> str | None:
    found = form(asked)
    return found.name if found else None


def test_a_folder_gets_png_of_what_is_denormalized_unless_it_is_called_otherwise() -> None:
    assert name(request("out/", sugar=back())) == "png"
    assert name(request("jpg/", sugar=back())) == "jpeg"
    assert name(request("out/", format="webp", sugar=back())) == "webp"
    assert name(request("x.tif", sugar=back())) == "tiff"
    assert name(request("out/")) is None
    assert name(request("webp/")) == "webp"
    assert name(request("npy/")) is None


@pytest.mark.parametrize(("output", "asked"), [(None, {}), ("x.npy", {}), ("out/", {"format": "npz"})])
def test_numbers_are_no_pictures(output: str | None, asked: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"--denormalize makes pictures; say where: -o DIR/, -o FILE\.png"):
        form(request(output, sugar=back(), **asked))


@pytest.mark.parametrize(
    ("asked", "kind", "chain", "says"),
    [
        ({"write": WriteOptions(80)}, "png", [], "--quality is for JPEG"),
        ({"write": WriteOptions(80)}, None, [], "--quality is for JPEG"),
        ({"verify": True}, "jpeg", [], "--verify compares bit for bit, and JPEG is lossy"),
        ({}, "png", ["cast(float16)"], "PNG holds uint8, uint16 or bool, not float16"),
        ({}, "jpeg", ["scale", "cast(int32)"], "JPEG holds uint8, not int32"),
    ],
)
def test_what_the_format_can_do_nothing_with(
    asked: dict[str, Any], kind: str | None, chain: list[str], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        refuse_unheld(request(**asked), FORMATS[kind] if kind else None, steps_from_text(chain))


@pytest.mark.parametrize(
    ("asked", "kind", "chain"),
    [
        ({"write": WriteOptions(80)}, "jpeg", []),
        ({"verify": True}, "png", ["cast(uint8)"]),
        ({}, "npy", ["cast(float16)"]),
        ({}, "tiff", ["cast(float32)"]),
        ({}, "png", ["cast(float16)", "scale(uint8)"]),
    ],
)
def test_what_it_can(asked: dict[str, Any], kind: str, chain: list[str]) -> None:
    refuse_unheld(request(**asked), FORMATS[kind], steps_from_text(chain))


def test_pictures_of_pictures_keep_their_channels() -> None:
    own = request(own_channels=True)
    assert reading(own, PNG) == ReadOptions("own")
    assert reading(own, FORMATS["npy"]) == reading(own, None) == ReadOptions("rgb")
    assert reading(request(read=ReadOptions("gray")), PNG) == ReadOptions("gray")


def test_arrays_are_arranged_first_and_taken_apart_last_unless_the_user_gave_an_order() -> None:
    def chain(*texts: str, kind: str = "npy", **asked: Any) -> str:
        steps = steps_from_text(texts)
        return " | ".join(map(str, one_by_one(steps, request(**asked), PNG, [one(kind)])))

    assert chain("resize(8)") == "pictures | resize(8) | unstack"
    assert chain("scale", steps=tuple(steps_from_text(["scale"]))) == "scale | pictures | unstack"
    assert chain(*back().chain()) == "pictures | denormalize(imagenet) | unstack | scale(uint8)"
    assert chain("resize(8)", kind="jpeg") == "resize(8)"
    assert chain(kind="gif", read=ReadOptions(frames="all")) == "pictures | unstack"
    assert one_by_one([], request(), FORMATS["npz"], [one("npy")]) == []
