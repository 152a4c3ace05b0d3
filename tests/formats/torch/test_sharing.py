"""Which tensors share a storage when a checkpoint is written: those that did when it was read, as long as they can."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tconv.dtypes import DTYPES
from tconv.formats.torch.sharing import View, parted, share
from tconv.formats.torch.writer import TorchWriter
from tconv.tensor import Extra, Spec
from tests.formats.torch.made import read_pt, saved

HALF = DTYPES["float16"]


@pytest.fixture
def specs(tmp_path: Path) -> tuple[Spec, Spec, Spec]:
    """Of a matrix, of the same matrix by another name, and of its second row."""
    w = torch.arange(12.0).view(3, 4)
    emb, head, row = (t.spec for t in read_pt(saved(tmp_path / "x.pt", {"emb": w, "head": w, "row": w[1]})).tensors)
    return emb, head, row


def bases(*specs: Spec) -> list[int]:
    return [view.base for view in share(specs)]


def test_twins_and_parts_share(specs: tuple[Spec, Spec, Spec]) -> None:
    assert share(specs) == [View(0, 0, (4, 1)), View(0, 0, (4, 1)), View(0, 4, (1,))]


def test_in_any_order(specs: tuple[Spec, Spec, Spec]) -> None:
    emb, head, row = specs
    assert bases(row, head, emb) == [2, 2, 2]


def test_a_cast_of_all_keeps_the_ties(specs: tuple[Spec, Spec, Spec]) -> None:
    assert bases(*(replace(s, dtype=HALF) for s in specs)) == [0, 0, 0]


def test_another_dtype_parts(specs: tuple[Spec, Spec, Spec]) -> None:
    emb, head, row = specs
    assert bases(emb, replace(head, dtype=HALF), row) == [0, 1, 0]
    assert bases(replace(emb, dtype=HALF), head, row) == [0, 1, 1]
    assert bases(emb, head, replace(row, dtype=HALF)) == [0, 0, 2]


def test_another_shape_parts(specs: tuple[Spec, Spec, Spec]) -> None:
    emb, head, row = specs
    assert bases(emb, replace(head, shape=(12,)), replace(row, shape=(2, 2))) == [0, 1, 2]
    assert bases(replace(emb, shape=(4, 3)), replace(head, shape=(4, 3)), row) == [0, 0, 2]


def test_an_alias_that_is_none_any_more_parts(specs: tuple[Spec, Spec, Spec]) -> None:
    emb, head, row = specs
    assert bases(emb, replace(head, alias_of=None), row) == [0, 1, 0]


def test_new_names_change_nothing(specs: tuple[Spec, Spec, Spec]) -> None:
    emb, head, row = specs
    renamed = [replace(emb, name="a"), replace(head, name="b"), replace(row, name="c"), replace(row, name="emb")]
    assert bases(*renamed) == [0, 0, 0, 0]


def test_a_name_that_now_is_another_tensors_ties_nothing(specs: tuple[Spec, Spec, Spec]) -> None:
    emb, head, _ = specs
    stranger = Spec("emb", emb.dtype, emb.shape)
    assert bases(stranger, replace(emb, name="old"), head) == [0, 1, 1]


def test_without_the_whole_the_parts_stand_alone(specs: tuple[Spec, Spec, Spec]) -> None:
    _, head, row = specs
    assert bases(head, row) == [0, 0]
    assert bases(row) == [0]


def test_aliases_from_other_formats() -> None:
    plain = [
        Spec(name, HALF, (2,), alias_of=alias) for name, alias in (("a", None), ("b", "a"), ("c", "b"), ("d", "b"))
    ]
    assert bases(*plain) == [0, 0, 2, 2]


def test_gaps_cover_nothing(tmp_path: Path) -> None:
    w = torch.arange(12.0).view(3, 4)
    value = {"left": w[:, :3], "turned": w.t(), "corner": w[0, :2]}
    tensors = read_pt(saved(tmp_path / "x.pt", value)).tensors
    assert bases(*(t.spec for t in tensors)) == [0, 1, 2]


def test_views_of_the_same_bytes_as_other_numbers_part(tmp_path: Path) -> None:
    wide = torch.arange(4).to(torch.uint32)
    value = {"wide": wide, "narrow": wide.view(torch.uint16)[:4]}
    tensors = read_pt(saved(tmp_path / "x.pt", value)).tensors
    assert bases(*(replace(t.spec, dtype=HALF) for t in tensors)) == [0, 1]


def test_empty_tensors_and_scalars() -> None:
    specs = [Spec("e", HALF, (0, 3)), Spec("s", HALF, ())]
    assert share(specs) == [View(0, 0, (3, 1)), View(1, 0, ())]


B = torch.arange(100.0)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ({"a": B.view(10, 10).t(), "b": B[:50]}, ["a", "b"]),
        ({"a": B[:60], "b": B[40:]}, ["a", "b"]),
        ({"a": B[:10], "b": B[5:15], "c": B[90:]}, ["a", "b"]),
        ({"a": B[:60], "b": B[40:], "c": B}, []),
        ({"q": B[:50], "k": B[50:]}, []),
        ({"left": B.view(10, 10)[:, :5], "right": B.view(10, 10)[:, 5:]}, []),
        ({"a": B[:60], "b": B[:60]}, []),
        ({"a": B[:0], "b": B[:1].expand(9)}, []),
    ],
)
def test_bytes_that_are_shared_no_longer_are_told(
    tmp_path: Path, value: dict[str, torch.Tensor], names: list[str]
) -> None:
    tensors = read_pt(saved(tmp_path / "x.pt", value)).tensors
    specs = [t.spec for t in tensors]
    assert parted(specs, share(specs)) == names
    notes = TorchWriter(specs, Extra("weights")).notes
    told = f"shared bytes that none of them has all of, and are written whole: {', '.join(names)}"
    assert notes == ((told,) if names else ())
