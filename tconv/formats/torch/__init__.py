"""PyTorch checkpoints without torch: both layouts, an allow-list unpickler, and a writer that torch can map."""
