"""Convert images, arrays and checkpoints into framework-ready tensors: exact, loud, lazy, fast."""

__version__ = "0.1.0"
