"""Shards of a run that is interrupted: kept until --resume goes on with them, or has put them in place."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tconv import journal
from tconv.errors import TconvError
from tconv.request import Request
from tconv.resume import AnotherRun, is_begun
from tconv.staging import Staging
from tconv.superseded import Superseded


def completed(request: Request, note: Callable[[str], None]) -> bool:
    """Whether all that was left of an earlier run was to put its shards in place, so that this is done now. Until then
    there are shards of two checkpoints there, of which nothing is to be made: raises ``TconvError`` if it is not asked.
    """
    if request.output is None:
        return False
    root = Path(os.path.realpath(request.output))
    staged = journal.pending(root)
    if staged is None:
        return False
    if not request.resume:
        reason = "an earlier run was interrupted while it put its shards in place"
        raise TconvError(reason, remedy="--resume completes that, and does nothing else", file=root)
    journal.complete(root, staged)
    note(f"{root}: all shards of the earlier run were done, and are in place now")
    return True


@contextmanager
def kept_if_interrupted(staging: Staging, resumable: Iterable[Path], note: Callable[[str], None]) -> Iterator[None]:
    """Whatever ends the making of shards early, an interrupt or a full disk, leaves those that are done; so does the
    refusal to go on with what another run left, which says itself what to do.
    """
    try:
        yield
    except BaseException as problem:
        for root in resumable:
            if not is_begun(staging.folder(root)):
                continue
            staging.keep(root)
            if not isinstance(problem, AnotherRun):
                note(f"{root}: the shards that are done are kept; --resume goes on from there")
        raise


@contextmanager
def completed_later_if_interrupted(
    staging: Staging,
    resumable: Iterable[Path],
    published: Sequence[tuple[Path, Path]],
    old: Sequence[Superseded],
    note: Callable[[str], None],
) -> Iterator[None]:
    """Shards of which some are in place, and some cannot be or are not yet, stay for --resume."""
    ours = [root for root in resumable if any(root == of for of, _ in published)]
    for root in ours:
        files = [path.relative_to(root) for of, path in published if of == root]
        gone = [path.relative_to(root) for one in old if one.target.root == root for path in one.gone]
        journal.begin(staging.folder(root), files, gone)
    try:
        yield
    except BaseException:
        for root in ours:
            staging.keep(root)
            note(f"{root}: not all shards are in place; --resume completes that")
        raise
    for root in ours:
        journal.end(staging.folder(root))
