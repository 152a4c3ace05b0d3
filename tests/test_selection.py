"""Which tensors go on and under which names: the model of a checkpoint, patterns, prefixes, collisions."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tconv import selection
from tconv.errors import NotTensor, TconvError
from tconv.tensor import Extra, Ref, Stream
from tests.memory import tensor


def checkpoint(tree: Any) -> Stream:
    names: list[str] = []

    def collect(value: Any) -> None:
        if isinstance(value, Ref):
            names.append(value.name)
        elif isinstance(value, dict):
            for item in value.values():
                collect(item)
        elif isinstance(value, (list, tuple)):
            for item in value:
                collect(item)

    collect(tree)
    return Stream(tuple(tensor(np.zeros(2), name=n) for n in names), Extra("weights", tree))


def names(stream: Stream) -> list[str]:
    return [t.spec.name for t in stream.tensors]


LIGHTNING = {
    "epoch": 76,
    "state_dict": OrderedDict(a=Ref("state_dict.a"), b=Ref("state_dict.b")),
    "optimizer_states": [{"state": {0: {"exp_avg": Ref("optimizer_states.0.state.0.exp_avg")}}}],
    "hyper_parameters": {"lr": 0.1},
}


@pytest.mark.parametrize("key", ["state_dict", "model_state_dict", "model"])
def test_the_model_is_what_lies_under_its_key_named_from_there(key: str) -> None:
    tree = {"epoch": 3, key: {"w": Ref(f"{key}.w")}, "optimizer": {"m": Ref("optimizer.m")}}
    got = selection.only_model(checkpoint(tree))
    assert names(got) == ["w"]
    assert got.extra.tree is None
    assert got.notes == ("left out, as the target holds tensors only: epoch, optimizer",)


def test_without_such_a_key_all_but_the_training_state_is_the_model() -> None:
    tree = {"encoder": {"w": Ref("encoder.w")}, "head": Ref("head"), "optimizer": {"m": Ref("optimizer.m")}, "step": 1}
    got = selection.only_model(checkpoint(tree))
    assert names(got) == ["encoder.w", "head"]
    assert got.notes == ("left out, as the target holds tensors only: optimizer, step",)


def test_a_layer_that_is_called_like_training_state_stays_in_a_flat_dict() -> None:
    tree = {"amplifier.weight": Ref("amplifier.weight"), "optim.w": Ref("optim.w")}
    assert names(selection.only_model(checkpoint(tree))) == ["amplifier.weight", "optim.w"]


def test_select_takes_what_lies_under_a_key_with_its_structure() -> None:
    got = selection.select(checkpoint(LIGHTNING), "state_dict")
    assert names(got) == ["a", "b"]
    assert got.extra.tree == OrderedDict(a=Ref("a"), b=Ref("b"))
    assert type(got.extra.tree) is OrderedDict


def test_select_keeps_what_a_dict_carries_beside_its_items() -> None:
    class Carrying(OrderedDict[str, Any]):
        pass

    inner = Carrying(w=Ref("state_dict.w"))
    inner._metadata = {"": 1}  # type: ignore[attr-defined]  # as torch does
    got = selection.select(checkpoint({"state_dict": inner}), "state_dict")
    assert got.extra.tree._metadata == {"": 1}
    assert inner["w"] == Ref("state_dict.w")  # what was read is not changed


@pytest.mark.parametrize(
    ("path", "name"),
    [("nets.1", "w"), ("nets.1.w", "nets.1.w"), ("a.b", "c.w"), ("a.b.c", "w"), ("a.b.c.w", "a.b.c.w")],
)
def test_select_goes_by_places_of_lists_and_by_keys_with_dots(path: str, name: str) -> None:
    tree = {"nets": [{"w": Ref("nets.0.w")}, {"w": Ref("nets.1.w")}], "a": {"x": Ref("a.x")}}
    tree["a.b"] = {"c": {"w": Ref("a.b.c.w")}}
    assert names(selection.select(checkpoint(tree), path)) == [name]


@pytest.mark.parametrize(
    ("path", "says"),
    [("modle", "has epoch, state_dict, optimizer_states, hyper_parameters"), ("state_dict.x", "state_dict has a, b"),
     ("hyper_parameters", "no tensor under")],
)  # fmt: skip
def test_select_says_which_keys_there_are(path: str, says: str) -> None:
    with pytest.raises(TconvError) as caught:
        selection.select(checkpoint(LIGHTNING), path)
    assert says in str(caught.value)


def test_patterns_cross_dots_and_slashes() -> None:
    stream = checkpoint({n: Ref(n) for n in ("a.norm.weight", "a.w", "b/c.png", "b/d.jpg")})
    assert names(selection.matching(stream, ["a.*"], ["*norm*"])) == ["a.w"]
    assert names(selection.matching(stream, ["*.png"], [])) == ["b/c.png"]
    assert selection.matching(stream, [], []) is stream
    with pytest.raises(
        TconvError, match=r"no tensor is left by --only; names here are a\.norm\.weight, a\.w, b/c\.png, b/d\.jpg$"
    ):
        selection.matching(stream, ["nothing"], [])


def test_a_pattern_that_skips_nothing_is_told() -> None:
    assert selection.unmatched(["a.w", "b.w"], ["*.w", "moon"]) == [
        "--skip 'moon' matches no name; names here are a.w, b.w"
    ]


def test_what_is_no_tensor_is_skipped_by_its_name() -> None:
    stream = replace(checkpoint({"w": Ref("w")}), others=(NotTensor("text", tensor="names"),))
    assert selection.matching(stream, [], ["names"]).others == ()
    assert selection.matching(stream, ["w"], []).others == ()
    assert selection.matching(stream, ["*"], []).others == stream.others


def test_what_is_no_tensor_goes_where_its_neighbours_go() -> None:
    def with_others(tree: dict[str, Any], *names: str) -> Stream:
        return replace(checkpoint(tree), others=tuple(NotTensor("sparse", tensor=name) for name in names))

    nested = {"state_dict": {"w": Ref("state_dict.w")}, "optimizer": {"m": Ref("optimizer.m")}}
    stream = with_others(nested, "state_dict.q", "optimizer.s")
    assert [o.tensor for o in selection.only_model(stream).others] == ["q"]
    assert [o.tensor for o in selection.select(stream, "optimizer").others] == ["s"]
    tree = {"w": Ref("w"), "q": None, "epoch": 3, "optimizer": {"m": Ref("optimizer.m")}}
    flat = with_others(tree, "q", "optimizer.s")
    chosen = selection.only_model(flat)
    assert [o.tensor for o in chosen.others] == ["q"]
    assert chosen.notes == ("left out, as the target holds tensors only: epoch, optimizer",)


def test_a_prefix_without_its_dot_is_refused() -> None:
    with pytest.raises(TconvError, match=r"a name would become '\.w'; a prefix ends with its dot"):
        selection.strip_prefixes(checkpoint({"module.w": Ref("module.w")}), ["module"])


def test_an_alias_without_its_base_stands_alone() -> None:
    base, alias = tensor(np.zeros(2), name="a"), tensor(np.zeros(2), name="b")
    alias = replace(alias, spec=replace(alias.spec, alias_of="a"))
    stream = Stream((base, alias), Extra("weights"))
    (kept,) = selection.matching(stream, [], ["a"]).tensors
    assert kept.spec.alias_of is None
    assert selection.matching(stream, ["*"], []).tensors[1].spec.alias_of == "a"


def test_leading_prefixes_go_in_any_order_and_inner_ones_stay() -> None:
    read = ["_orig_mod.module.fc.weight", "module._orig_mod.fc.bias", "_orig_mod.module.submodule.module.x"]
    got = selection.strip_prefixes(checkpoint({n: Ref(n) for n in read}), ["_orig_mod.", "module."])
    assert names(got) == ["fc.weight", "fc.bias", "submodule.module.x"]
    assert list(got.extra.tree.items()) == [(n, Ref(n)) for n in names(got)]


def test_prefixes_of_the_keys_of_a_nested_dict() -> None:
    tree = {"epoch": 1, "state_dict": {"module.w": Ref("state_dict.module.w")}}
    got = selection.strip_prefixes(checkpoint(tree), ["module."])
    assert names(got) == ["state_dict.w"]
    assert got.extra.tree == {"epoch": 1, "state_dict": {"w": Ref("state_dict.w")}}


def test_a_prefix_that_leads_no_name_is_told() -> None:
    got = selection.strip_prefixes(checkpoint({"w": Ref("w")}), ["module."])
    assert got.notes == ("no name starts with module.; names here are w",)


def test_names_that_a_prefix_kept_apart_are_refused() -> None:
    with pytest.raises(TconvError, match="two keys of one container would become 'w'"):
        selection.strip_prefixes(checkpoint({"module.w": Ref("module.w"), "w": Ref("w")}), ["module."])


def test_two_tensors_of_one_name_are_refused_with_their_files() -> None:
    stream = Stream((tensor(np.zeros(1), name="w"), tensor(np.ones(1), name="w")), Extra("data"))
    with pytest.raises(TconvError, match=r"w: two tensors have that name, from memory and memory"):
        selection.refuse_doubles(stream)
