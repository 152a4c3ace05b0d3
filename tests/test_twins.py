"""Tensors share a storage only if the very same is done to them; what torch makes of each by itself is the witness."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tconv import twins
from tconv.dtypes import dtype
from tconv.ops import CastTo, MoveTo, Permute, Promise
from tconv.tensor import Extra, Stream, Tensor
from tests.cli.conftest import Ran, tconv
from tests.memory import tensor

__all__ = ["tconv"]  # the fixture
Tconv = Callable[..., Ran]

T = torch.linspace(-3, 3, 32).reshape(8, 4)  # float32, of which bfloat16 and float16 are two different roundings
BF16, HALF = torch.bfloat16, torch.float16


def settled(*tensors: Tensor) -> list[Tensor]:
    return list(twins.settled(Stream(tensors, Extra("weights"))).tensors)


def named(like: Tensor, name: str) -> Tensor:
    return replace(like, spec=replace(like.spec, name=name))


def test_the_same_source_and_the_same_operations_make_twins() -> None:
    a = tensor(np.zeros((2, 2), np.float32), "a")
    half = CastTo(dtype=dtype("float16"))
    made = [a, named(a, "b"), named(a, "c").then(half), named(a, "d").then(half), tensor(np.zeros((2, 2)), "e")]
    assert [t.spec.alias_of for t in settled(*made)] == [None, "a", None, "c", None]
    stale = replace(made[2], spec=replace(made[2].spec, alias_of="a"))
    assert [t.spec.alias_of for t in settled(a, stale)] == [None, None]


def test_a_view_stays_one_through_casts_and_statements_but_not_through_more() -> None:
    view = tensor(np.zeros((2, 2), np.float32), "v")
    view = replace(view, spec=replace(view.spec, attrs={"place": {"storage": "s"}}))
    kept = view.then(Promise(range=(0, 1))).then(CastTo(dtype=dtype("float16")))
    attrs = [t.spec.attrs for t in settled(kept, named(view, "w"), kept.then(Permute(perm=(1, 0))))]
    assert attrs == [{"place": {"storage": "s", "chain": 0}}, {"place": {"storage": "s", "chain": 1}}, {}]


def test_where_it_is_done_makes_no_other_tensor() -> None:
    a = tensor(np.zeros((2, 2), np.float32), "a")
    a = replace(a, spec=replace(a.spec, attrs={"place": {"storage": "s"}}))
    half, move = CastTo(dtype=dtype("float16")), MoveTo(device="torch")
    made = settled(a.then(half), named(a, "b").then(move).then(half), named(a, "c").then(half).then(move))
    assert [t.spec.alias_of for t in made] == [None, "a", "a"]
    assert [t.spec.attrs["place"]["chain"] for t in made] == [0, 0, 0]


def pointers(found: dict[str, torch.Tensor]) -> set[tuple[str, str]]:
    """The pairs of names that share a storage."""
    return {
        (m, n)
        for (m, x), (n, y) in combinations(found.items(), 2)
        if x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
    }


@pytest.mark.parametrize(
    ("steps", "want", "shared"),
    [
        (
            ["cast(bfloat16, keep=[a])", "cast(float16)"],
            {"a": T.half(), "b": T.bfloat16().half(), "c": T[:3].bfloat16().half()},
            {("b", "c")},
        ),
        (
            ["cast(bfloat16, keep=[b])", "cast(float16)"],
            {"a": T.bfloat16().half(), "b": T.half(), "c": T[:3].bfloat16().half()},
            {("a", "c")},
        ),
        (
            ['match("c": cast(bfloat16))', "cast(float16)"],
            {"a": T.half(), "b": T.half(), "c": T[:3].bfloat16().half()},
            {("a", "b")},
        ),
        (
            ['match("a": cast(bfloat16))'],
            {"a": T.bfloat16(), "b": T, "c": T[:3]},
            {("b", "c")},
        ),
        (
            ["cast(bfloat16)", "cast(float16)"],
            {"a": T.bfloat16().half(), "b": T.bfloat16().half(), "c": T[:3].bfloat16().half()},
            {("a", "b"), ("a", "c"), ("b", "c")},
        ),
    ],
)
def test_aliases_and_views_have_the_values_that_each_has_alone(
    tconv: Tconv, tmp_path: Path, steps: list[str], want: dict[str, torch.Tensor], shared: set[tuple[str, str]]
) -> None:
    torch.save({"a": T, "b": T, "c": T[:3]}, tmp_path / "p.pt")
    chain = [word for step in steps for word in ("--step", step)]
    assert tconv("p.pt", *chain, "-o", "po.pt").code == 0
    found = torch.load(tmp_path / "po.pt")
    assert {n: (t.dtype, t.tolist()) for n, t in found.items()} == {n: (t.dtype, t.tolist()) for n, t in want.items()}
    assert pointers(found) == shared


def test_what_becomes_of_overflow_is_part_of_what_is_done(tconv: Tconv, tmp_path: Path) -> None:
    big = torch.full((8, 4), 1e6)
    torch.save({"a": big, "c": big[:3]}, tmp_path / "p.pt")
    rules = 'match("c": cast(float16, on_overflow=saturate), "*": cast(float16, on_overflow=inf))'
    assert tconv("p.pt", "--step", rules, "-o", "po.pt").code == 0
    found = torch.load(tmp_path / "po.pt")
    assert (found["a"].unique().tolist(), found["c"].unique().tolist()) == ([float("inf")], [65504])


def test_a_master_weight_that_is_left_alone_lends_nothing_to_the_model(tconv: Tconv, tmp_path: Path) -> None:
    torch.save({"optimizer": {"state": {0: {"master": T}}}, "model": {"w": T, "v": T[:2]}}, tmp_path / "p.pt")
    assert tconv("p.pt", "--step", "cast(bfloat16)", "--step", "cast(float32)", "-o", "po.pt").code == 0
    found = torch.load(tmp_path / "po.pt")
    assert found["optimizer"]["state"][0]["master"].tolist() == T.tolist()
    assert found["model"]["w"].tolist() == T.bfloat16().float().tolist()
    assert found["model"]["v"].tolist() == T[:2].bfloat16().float().tolist()


def test_shared_codes_with_other_scales_are_other_weights(tconv: Tconv, tmp_path: Path) -> None:
    codes = torch.tensor([[1, -2], [3, 127]], dtype=torch.int8)
    scales = {"a.scale": torch.full((2,), 0.5), "b.scale": torch.full((2,), 2.0), "c.scale": torch.full((2,), 0.5)}
    torch.save({"a": codes, "b": codes, "c": codes, **scales}, tmp_path / "p.pt")
    want = {"a": [[0.5, -1], [1.5, 63.5]], "b": [[2, -4], [6, 254]], "c": [[0.5, -1], [1.5, 63.5]]}
    for out, load in (("po.pt", torch.load), ("po.safetensors", load_file)):
        assert tconv("p.pt", "--step", "dequantize(axis=0)", "-o", out).code == 0
        found = load(tmp_path / out)
        assert {n: t.tolist() for n, t in found.items()} == want
    assert pointers(torch.load(tmp_path / "po.pt")) == {("a", "c")}


def test_tied_weights_stay_tied_when_quantized_and_back(tconv: Tconv, tmp_path: Path) -> None:
    torch.save({"e": T, "h": T}, tmp_path / "p.pt")
    assert tconv("p.pt", "--quantize", "uint8", "--tie", "-o", "q.safetensors").err == ""
    assert sorted(load_file(tmp_path / "q.safetensors")) == ["e", "e.scale", "e.zero_point"]
    assert "idle" not in tconv("q.safetensors", "--step", "dequantize", "--tie", "-o", "d.safetensors").err
    assert list(load_file(tmp_path / "d.safetensors")) == ["e"]
    assert tconv("q.safetensors", "-o", "q.pt").code == 0
    shared = {("e", "h"), ("e.scale", "h.scale"), ("e.zero_point", "h.zero_point")}
    assert pointers(torch.load(tmp_path / "q.pt")) == shared


def test_what_differs_by_an_earlier_step_is_quantized_by_its_own_range(tconv: Tconv, tmp_path: Path) -> None:
    wide = torch.tensor([[1.0, 300.4], [2.0, 3.0]])  # 300.4 is 300 in bfloat16
    torch.save({"a": wide, "b": wide}, tmp_path / "p.pt")
    chain = ["--step", "cast(bfloat16, keep=[a])", "--step", "quantize(int8, axis=None)"]
    assert tconv("p.pt", *chain, "-o", "q.pt").code == 0
    found = torch.load(tmp_path / "q.pt")
    assert found["a.scale"].tolist() == (torch.tensor(300.4) / 127).tolist()
    assert found["b.scale"].tolist() == (torch.tensor(300.0) / 127).tolist()
