"""A step that looks at values, settled and applied to tensors that lie in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tconv.evaluate import evaluate
from tconv.request import Silent
from tconv.scan import Scanner
from tconv.step import Step
from tconv.tensor import Extra, Stream, Tensor

if TYPE_CHECKING:
    from tconv.ops import Array

SCANNER = Scanner(2, 1 << 30, Silent())


def weights(*tensors: Tensor, tree: object = None) -> Stream:
    return Stream(tensors, Extra("weights", tree))


def settled(step: Step, given: Stream) -> Stream:
    """What comes of it, with a note for each decision."""
    step, notes = step.fit(given, SCANNER)
    made = step.apply(given)
    return made.with_tensors(made.tensors, *notes)


def values(made: Stream) -> dict[str, Array]:
    """All of it, by name."""
    return {t.spec.name: evaluate(t)[0] for t in made.tensors}
