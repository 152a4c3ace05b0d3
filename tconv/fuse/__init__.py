"""Chains of elementwise operations as one table or one pass over cache-sized chunks."""

from tconv.fuse.compiled import compile_run
from tconv.fuse.run import Run

__all__ = ["Run", "compile_run"]
