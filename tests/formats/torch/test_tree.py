"""Names for the tensors of nested containers, and the containers refilled."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from typing import Any

import pytest

from tconv.dtypes import DTYPES
from tconv.errors import TconvError
from tconv.formats.torch.objects import Size, Storage, StorageType, StoredTensor
from tconv.formats.torch.tree import fit, flatten
from tconv.tensor import Ref


def a_tensor() -> StoredTensor:
    kind = StorageType("torch.FloatStorage", DTYPES["float32"], 4)
    return StoredTensor(Storage("0", kind, 1, "cpu", 0, 1), DTYPES["float32"], 0, (1,), (1,))


def test_names_are_keys_joined_by_dots() -> None:
    t = [a_tensor() for _ in range(7)]
    value = {"a.b": t[0], "c": [t[1], (t[2], {5: t[3]})], b"d": t[4], (1, "e"): t[5], None: {"": t[6]}}
    flat = flatten(value, "x", 100)
    names = ["a.b", "c.0", "c.1.0", "c.1.1.5", "b'd'", "(1, 'e')", "None."]
    assert list(flat.tensors) == names
    assert list(flat.tensors.values()) == t
    one, two, three, four, five, six, seven = (Ref(n) for n in names)
    assert flat.tree == {"a.b": one, "c": [two, (three, {5: four})], b"d": five, (1, "e"): six, None: {"": seven}}


def test_containers_keep_their_kinds() -> None:
    ordered = OrderedDict(a=1)
    ordered._metadata = {"t": a_tensor()}  # type: ignore[attr-defined]  # where torch keeps versions
    value = [ordered, defaultdict(list, {"x": [1]}), Counter("aab"), Size((1, 2)), (1,), {2}]
    tree = flatten(value, "x", 100).tree
    assert [type(v) for v in tree] == [OrderedDict, defaultdict, Counter, Size, tuple, set]
    assert vars(tree[0]) == {"_metadata": {"t": Ref("0._metadata.t")}}
    assert tree[1:] == [defaultdict(list, {"x": [1]}), Counter("aab"), Size((1, 2)), (1,), {2}]


def test_a_container_in_two_places_gives_names_to_both() -> None:
    shared = {"w": a_tensor()}
    assert list(flatten({"a": shared, "b": shared}, "x", 100).tensors) == ["a.w", "b.w"]


def test_colliding_names_are_refused_with_both_places() -> None:
    with pytest.raises(TconvError, match=r"\['a'\]\[0\] and \['a\.0'\]") as caught:
        flatten({"a": [a_tensor()], "a.0": a_tensor()}, "x", 100)
    assert caught.value.tensor == "a.0"
    with pytest.raises(TconvError, match=r"\[1\] and \['1'\]"):
        flatten({1: a_tensor(), "1": a_tensor()}, "x", 100)


def nested(depth: int) -> Any:
    value: Any = a_tensor()
    for _ in range(depth):
        value = [value]
    return value


def test_depth_has_a_limit() -> None:
    assert list(flatten(nested(100), "x", 100).tensors) == [".".join("0" * 100)]
    with pytest.raises(TconvError, match="more than 100 deep"):
        flatten(nested(101), "x", 100)


def test_what_holds_itself_is_refused() -> None:
    value: dict[str, Any] = {"a": []}
    value["a"].append((value,))
    with pytest.raises(TconvError, match=r"the container at \['a'\]\[0\]\[0\] holds itself"):
        flatten(value, "x", 100)


def test_fit_takes_out_and_puts_in() -> None:
    tree = {"a": Ref("a"), "b": [Ref("b.0"), 1, (Ref("b.2.0"), Ref("b.2.1"))], "c": {"d": Ref("c.d")}, "e": None}
    fitted = fit(tree, dict.fromkeys(["b.2.1", "new", "a"]))
    assert fitted == {"a": Ref("a"), "b": [None, 1, (None, Ref("b.2.1"))], "c": {}, "e": None, "new": Ref("new")}
    assert tree["a"] == Ref("a")
    assert tree["b"] == [Ref("b.0"), 1, (Ref("b.2.0"), Ref("b.2.1"))]


@pytest.mark.parametrize("kept", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1), (0, 1, 2), ()])
@pytest.mark.parametrize("kind", [list, tuple])
def test_what_stays_in_a_list_keeps_its_place(kept: tuple[int, ...], kind: Any) -> None:
    """The place is the name: were the others to move up, one tensor would be taken for another."""
    fitted: Any = fit({"a": kind(Ref(f"a.{n}") for n in range(3))}, {f"a.{n}": None for n in kept})
    assert type(fitted["a"]) is kind
    assert len(fitted["a"]) == max(kept, default=-1) + 1
    assert {n: ref.name for n, ref in enumerate(fitted["a"]) if ref is not None} == {n: f"a.{n}" for n in kept}


@pytest.mark.parametrize("tree", [None, Ref("gone"), Ref("a"), [Ref("a")], (1, 2), 5])
def test_fit_makes_a_dict_where_there_is_none_to_put_in(tree: object) -> None:
    assert fit(tree, dict.fromkeys("ab")) == {"a": Ref("a"), "b": Ref("b")}


@pytest.mark.parametrize("tree", [Ref("a"), [Ref("a")], (Ref("a"), 2), {"k": {"l": Ref("a")}}])
def test_fit_changes_nothing_where_all_is_there(tree: object) -> None:
    assert fit(tree, {"a": None}) == tree


def test_fit_of_nothing_is_an_empty_dict() -> None:
    assert fit(None, {}) == {}
    assert fit(Ref("gone"), {}) == {}
