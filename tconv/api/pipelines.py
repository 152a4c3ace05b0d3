"""Steps as Python has them: text, a YAML file or steps become a pipeline, which arrays in memory go through too."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from tconv.arguments import WrongType, shown
from tconv.arguments import path as path_text
from tconv.errors import TconvError, UsageError
from tconv.pipeline import steps_from_text
from tconv.step import Step

if TYPE_CHECKING:
    from tconv.arrays.casting import Numbers
    from tconv.ops import Array
    from tconv.tensor import Range

    T = TypeVar("T")


_SAID = {"axes": str | None, "fields": str | None, "weights": bool}
ALONE = "array"  # what an array without a name is called in messages


@dataclass(frozen=True)
class Pipeline:
    """A chain of steps, to be used wherever steps are taken, and to be called with arrays.

    >>> to_batch = Pipeline("resize(224x224) | scale | normalize(imagenet) | permute(CHW)")
    >>> to_batch(pixels, axes="HWC").shape
    (3, 224, 224)
    """

    steps: tuple[Step, ...]
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)

    def __init__(self, steps: Steps) -> None:
        """``steps``: text as ``--step`` takes it, several such texts or ``Step`` objects, a ``Path`` to a YAML file.

        Raises ``UsageError`` for a step or a parameter that does not exist.
        """
        object.__setattr__(self, "steps", steps_of(steps))
        object.__setattr__(self, "settings", settings_of(steps))

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str], variables: Mapping[str, str | float] | None = None) -> Pipeline:
        """The pipeline in a YAML file, or one that comes with tconv, by its name: ``"imagenet"``, ``"clip"`` …

        ``variables``: for those that the file has, texts or numbers. What it says of inputs and outputs counts in
        ``convert`` and ``plan``, where their own arguments beat it.
        """
        from tconv.recipes import recipe

        if not isinstance(variables, Mapping | None):
            raise WrongType(f"variables are {shown(variables)}", remedy='give a dict: {"size": 224}')
        given = {str(name): _value(name, value) for name, value in (variables or {}).items()}
        found = recipe(path_text(path, "a pipeline"), given)
        made = cls(found.steps)
        object.__setattr__(made, "settings", dict(found.settings))
        return made

    def __str__(self) -> str:
        return " | ".join(map(str, self.steps))

    def __or__(self, more: Steps) -> Pipeline:
        """This pipeline, and then ``more``."""
        return Pipeline((*self.steps, *steps_of(more)))

    def __ror__(self, earlier: Steps) -> Pipeline:
        """``earlier``, and then this pipeline."""
        return Pipeline((*steps_of(earlier), *self.steps))

    @overload
    def __call__(
        self,
        x: Mapping[str, Any],
        *,
        axes: str | None = ...,
        range: Range | None = ...,
        fields: str | None = ...,
        weights: bool = ...,
    ) -> dict[str, Any]: ...
    @overload
    def __call__(
        self,
        x: Numbers,
        *,
        axes: str | None = ...,
        range: Range | None = ...,
        fields: str | None = ...,
        weights: bool = ...,
    ) -> Array: ...
    @overload
    def __call__(
        self,
        x: T,
        *,
        axes: str | None = ...,
        range: Range | None = ...,
        fields: str | None = ...,
        weights: bool = ...,
    ) -> T: ...
    def __call__(
        self,
        x: Any,
        *,
        axes: str | None = None,
        range: Range | None = None,  # noqa: A002  # as the option is called
        fields: str | None = None,
        weights: bool = False,
    ) -> Any:
        """``x`` after all steps, computed as from files: in float64, rounded once at each cast and at the end.

        ``x``: an array or tensor of any library, and the result is one of the same library on the same device; or a
        mapping of such by name (a state dict, say), which gives a dict. Nothing of it is changed; what no step touches
        comes back as it is.

        ``axes``: what the axes of x are ("HWC", "NCHW"), which resize, normalize and permute by letters need.
        ``range``: in which the values lie; bool, uint8 and uint16 have that of their dtype. ``fields``: a glob for the
        integer fields of a mapping that arithmetic may change, ``""`` for none. ``weights``: the mapping is of weights,
        so that integers and bools stay as they are.

        Raises ``UsageError`` for arguments that mean nothing, and ``TconvError`` for what does not fit: shapes, ranges,
        values, rules of ``match`` for no name (an array that is alone is called "array"). What was lost is told to the
        log ``tconv``.
        """
        from tconv.api import in_memory

        said = in_memory.said(axes, range, fields, weights)
        if isinstance(x, Mapping):
            return in_memory.through(self.steps, x, said)
        made = in_memory.through(self.steps, {ALONE: x}, said)
        if len(made) != 1:
            raise TconvError(
                f"the steps make several of one array: {', '.join(made)}", remedy="give a mapping, and get one"
            )
        return next(iter(made.values()))


def _value(name: str, value: Any) -> str:
    """What ``--set`` would say."""
    if not isinstance(value, str | int | float):
        raise UsageError(f"the variable {name!r} is {value!r}", remedy="give a text or a number")
    return str(value).lower() if isinstance(value, bool) else str(value)


# Text of a chain, a step, a pipeline, the path of a YAML file, or several texts and steps; None for no steps.
Steps: TypeAlias = str | Step | Pipeline | os.PathLike[str] | Sequence[str | Step] | None


def settings_of(steps: Steps) -> Mapping[str, Any]:
    """What a pipeline file says beside its steps, if they are of one."""
    if isinstance(steps, Pipeline):
        return steps.settings
    return Pipeline.from_yaml(steps).settings if isinstance(steps, os.PathLike) else {}


def _from_text(text: str) -> tuple[Step, ...]:
    try:
        return tuple(steps_from_text([text]))
    except UsageError as problem:
        from tconv.recipes import recipe_files

        if text.strip() in {path.stem for path in recipe_files()}:
            problem.remedy = f'it is a pipeline: tconv.Pipeline.from_yaml("{text.strip()}")'
        elif text.lower().endswith((".yaml", ".yml")):
            problem.remedy = f"tconv.Pipeline.from_yaml({text!r}), or a pathlib.Path, is that file"
        raise


def steps_of(steps: Steps) -> tuple[Step, ...]:
    """The steps that are meant, in any of the ways that Python code may say them."""
    if steps is None:
        return ()
    if isinstance(steps, Pipeline):
        return steps.steps
    if isinstance(steps, Step):
        return (steps,)
    if isinstance(steps, str):
        return _from_text(steps)
    if isinstance(steps, os.PathLike):
        return Pipeline.from_yaml(steps).steps
    if isinstance(steps, Sequence) and not isinstance(steps, bytes | bytearray):
        return tuple(step for item in steps for step in steps_of(item))
    raise WrongType(f"{shown(steps)} are no steps", remedy="write them as text: 'scale | cast(float16)'")
