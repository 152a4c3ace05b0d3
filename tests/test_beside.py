"""Records of single pictures become tensors beside them, whatever stood between."""

from __future__ import annotations

import numpy as np
import pytest

from tconv.beside import ATTR, names_beside, pictures_alone, recognized, record_of, with_tensors_beside
from tconv.evaluate import evaluate
from tconv.pipeline import steps_from_text
from tconv.tensor import Stream
from tests.memory import stream, tensor


def through(text: str, *shapes: tuple[int, ...]) -> Stream:
    made = stream(*(tensor(np.zeros(shape, np.uint8), str(n), "HWC", (0, 255)) for n, shape in enumerate(shapes)))
    for step in steps_from_text([text]):
        made = step.apply(made)
    return made


def test_each_stands_after_the_tensor_that_it_is_about() -> None:
    made = through("pad | scale | permute(CHW) | cast(float16)", (1, 2, 3), (2, 1, 3))
    assert names_beside(made) == ["0.mask", "1.mask"]
    found = with_tensors_beside(made).tensors
    assert [(t.spec.name, str(t.spec.dtype), t.spec.shape, t.spec.axes) for t in found] == [
        ("0", "float16", (3, 2, 2), "CHW"),
        ("0.mask", "bool", (2, 2), None),
        ("1", "float16", (3, 2, 2), "CHW"),
        ("1.mask", "bool", (2, 2), None),
    ]


def test_a_stack_has_those_of_its_parts() -> None:
    made = through("letterbox(4) | stack(all) | permute(NCHW)", (2, 4, 3), (4, 2, 3))
    (stack,) = made.tensors
    assert record_of(stack) is stack.source.parts[0].spec.attrs[ATTR]  # type: ignore[attr-defined]  # it is a stack
    _, beside = with_tensors_beside(made).tensors
    assert (beside.spec.name, beside.spec.shape, beside.spec.attrs) == (
        "all.letterbox",
        (2, 5),
        {"made": "letterbox(4)"},
    )
    assert evaluate(beside)[0].tolist() == [[1, 0, 1, 2, 4], [1, 1, 0, 4, 2]]


def test_without_records_nothing_is_added() -> None:
    made = through("scale | stack", (2, 4, 3), (2, 4, 3))
    assert names_beside(made) == []
    assert with_tensors_beside(made) == made


def read_again(**shapes: tuple[str, tuple[int, ...]]) -> Stream:
    """The tensors of a file, by name: dtype and shape."""
    return recognized(stream(*(tensor(np.zeros(shape, kind), name) for name, (kind, shape) in shapes.items())))


def told(made: Stream) -> list[str]:
    return [t.spec.name for t in made.tensors if t.spec.attrs.get("label")]


@pytest.mark.parametrize(
    ("base", "record", "fits"),
    [
        ((2, 8, 9, 3), ("mask", "bool", (2, 8, 9)), True),
        ((2, 3, 8, 9), ("mask", "bool", (2, 8, 9)), True),
        ((8, 9, 3), ("mask", "bool", (8, 9)), True),
        ((8, 9), ("mask", "bool", (8, 9)), True),
        ((2, 8, 9, 3), ("mask", "uint8", (2, 8, 9)), False),
        ((2, 8, 9, 3), ("mask", "bool", (2, 8, 8)), False),
        ((2, 8, 9, 3), ("mask", "bool", (9,)), False),
        ((2, 8, 9, 3), ("letterbox", "float32", (2, 5)), True),
        ((8, 9, 3), ("letterbox", "float32", (5,)), True),
        ((2, 8, 9, 3), ("letterbox", "float32", (3, 5)), False),
        ((2, 8, 9, 3), ("letterbox", "float32", (2, 4)), False),
        ((2, 8, 9, 3), ("letterbox", "int64", (2, 5)), False),
        ((2, 8, 9, 3), ("bias", "float32", (2, 5)), False),
    ],
)
def test_read_again_they_are_known_by_name_and_shape(
    base: tuple[int, ...], record: tuple[str, str, tuple[int, ...]], fits: bool
) -> None:
    kind, dtype, shape = record
    made = read_again(**{"a.b": ("float32", base), f"a.b.{kind}": (dtype, shape)})
    assert told(made) == ([f"a.b.{kind}"] if fits else [])
    assert told(read_again(**{"other": ("float32", base), f"a.b.{kind}": (dtype, shape)})) == []


def test_what_tells_of_pictures_is_left_out_beside_them_and_kept_alone() -> None:
    made = read_again(x=("uint8", (2, 8, 9, 3)), **{"x.mask": ("bool", (2, 8, 9))})
    alone = pictures_alone(made)
    assert [t.spec.name for t in alone.tensors] == ["x"]
    assert [note.partition(": ")[2] for note in alone.notes] == [
        "x.mask: left out, as it tells of pictures and is none"
    ]
    masks = made.with_tensors(made.tensors[1:])
    assert pictures_alone(masks) is masks
    pictures = made.with_tensors(made.tensors[:1])
    assert pictures_alone(pictures) is pictures
