"""Chains of elementwise operations as one table or one pass over cache-sized chunks."""

from tconv.fuse.run import Run, compile_run

__all__ = ["Run", "compile_run"]
