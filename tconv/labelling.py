"""Which labels a job has, and whether its output has a place for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tconv import registry
from tconv.errors import UsageError
from tconv.inputs import Found, Input
from tconv.label_matching import from_file
from tconv.labels import Labelling, are_class_folders, from_folders, in_order, paths_only
from tconv.request import Request
from tconv.selection import first_few
from tconv.targets import Target


def asked(request: Request, found: Found) -> Labelling | None:
    """The labels of all images, where they are asked for, or where class folders speak for themselves. Those that are
    not wanted count: a row of theirs is no stray, and a class keeps its number.
    """
    found = replace(found, inputs=(*found.inputs, *found.unwanted))
    if isinstance(request.labels, Path):
        return from_file(request.labels, found, [Path(w) for w in request.inputs if Path(w).is_dir()])
    if request.labels == "paths":
        return paths_only(found)
    wanted = request.labels == "folders" or (request.labels == "auto" and are_class_folders(found))
    return from_folders(found) if wanted else None


def arranged(request: Request, labelling: Labelling | None, inputs: Sequence[Input]) -> Sequence[Input]:
    """Images of class folders in the order that goes with their labels; all others as they are."""
    as_they_are = labelling is None or isinstance(request.labels, Path) or request.labels == "paths"
    return inputs if as_they_are else in_order(inputs)


def fitting(
    request: Request, labelling: Labelling | None, chosen: Sequence[Target]
) -> tuple[Labelling | None, tuple[str, ...]]:
    """The labels if the output has a place for them, and what the user should hear. Refused if asked for in vain."""
    if labelling is None:
        return None, ()
    apart = len(chosen) > 1 or chosen[0].split or chosen[0].sharded
    single = registry.writer(chosen[0].format).single
    if not apart and not single:
        unasked = request.labels == "auto" and labelling.classes is not None
        told = f"{labelling.origin}: its folders are labels: {first_few(labelling.classes or ())}"
        return labelling, (*((f"{told}; --no-labels leaves them out",) if unasked else ()), *labelling.notes)
    what = "paths" if labelling.bare else "labels"
    why = f"{what} go into one file with their images" if apart else f"this format holds a single array, and no {what}"
    if request.labels != "auto":
        raise UsageError(why, remedy="write -o FILE.npz, .safetensors or .pt, with --stack for one array")
    if apart:
        return None, ()
    stem = Path(chosen[0].shown).with_suffix("")
    return None, (
        f"{labelling.origin}: the labels of its class folders are left out; --stack -o {stem}.npz holds both",
    )
