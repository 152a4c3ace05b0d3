"""The files of a data set that can be read, as the policy on bad files has it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tconv.errors import TconvError, raise_all
from tconv.intake import read_all
from tconv.planner import SKIP_REMEDY

if TYPE_CHECKING:
    from tconv.inputs import Found, Input
    from tconv.request import Progress, Request
    from tconv.tensor import Stream


def readable(
    request: Request, found: Found, chosen: Sequence[Input], progress: Progress
) -> tuple[list[Input], dict[Path, Stream], list[TconvError]]:
    """Those of ``chosen`` whose headers can be read, what is in them, and what is wrong with the others and with what
    was ``found`` to be of no use. Raises that unless the request says to skip it and something is left.
    """
    streams, failures = read_all(chosen, request, progress)
    bad = [*found.failures, *failures]
    if bad and (request.on_bad == "error" or not streams):
        raise_all(bad, remedy=SKIP_REMEDY if streams else "")
    return [one for one in chosen if one.path in streams], streams, bad
