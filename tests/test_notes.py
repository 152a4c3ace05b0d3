"""Notes of one kind in one line."""

from __future__ import annotations

from tconv.notes import folded


def test_many_notes_that_differ_in_their_file_are_one_line() -> None:
    profiles = [
        f"d{n}.jpg: its ICC profile ({'Display P3' if n % 2 else 'Adobe RGB'}) is not applied" for n in range(33)
    ]
    frames = [f"g/{n}.gif: the first of {n + 2} frames; --frames all reads all" for n in range(5)]
    mixed = [note for pair in zip(profiles, frames, strict=False) for note in pair] + profiles[5:]
    assert folded(mixed) == [
        "d0.jpg: its ICC profile (Adobe RGB) is not applied; likewise d1.jpg, d2.jpg, d3.jpg and 29 more",
        "g/0.gif: the first of 2 frames; --frames all reads all; likewise g/1.gif, g/2.gif, g/3.gif and 1 more",
    ]


def test_the_step_is_said_once() -> None:
    notes = [f"x.npz: a{n}: denormalize(imagenet): {n} of 48 values lie outside" for n in range(6)]
    assert folded(notes) == [f"{notes[0]}; likewise x.npz: a1, x.npz: a2, x.npz: a3 and 2 more"]


def test_a_few_are_told_one_by_one_in_their_order() -> None:
    notes = ["a: odd (x)", "something else", "b: odd (y)", "c: odd"]
    assert folded(notes) == ["a: odd (x)", "b: odd (y)", "c: odd", "something else"]
    assert folded(["same"] * 4) == ["same; and 3 more"]
    assert folded([]) == []


def test_where_all_are_named_nothing_is_more() -> None:
    frames = [f"{name}: the first of 3 frames" for name in ("a.gif", "b.tif", "c.webp", "d.png")]
    assert folded(frames) == ["a.gif: the first of 3 frames; likewise b.tif, c.webp, d.png"]
