"""Sharded checkpoints as Hugging Face's libraries lay them out, written by hand: shards, an index, files beside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

FIRST = {"model.embed.weight": torch.arange(32, dtype=torch.float32).reshape(8, 4) / 7, "model.0.w": torch.eye(4)}
SECOND = {"lm_head.weight": torch.full((8, 4), -0.3), "model.1.w": torch.ones(4, 4), "model.steps": torch.tensor(3)}
ALL = FIRST | SECOND
TOTAL = (32 + 16 + 32 + 16) * 4 + 8  # bytes


def write_index(path: Path, weight_map: Mapping[str, Any], metadata: Any = None) -> Path:
    path.write_text(json.dumps({"metadata": metadata or {}, "weight_map": weight_map}, indent=2, sort_keys=True) + "\n")
    return path


def safetensors_folder(folder: Path) -> Path:
    """Two shards, of which the index names the second one first, as names are sorted in there."""
    folder.mkdir(parents=True)
    weight_map: dict[str, str] = {}
    for n, tensors in enumerate((FIRST, SECOND), 1):
        name = f"model-{n:05d}-of-00002.safetensors"
        save_file(tensors, folder / name, {"format": "pt"})
        weight_map |= dict.fromkeys(tensors, name)
    write_index(folder / "model.safetensors.index.json", weight_map, {"total_size": TOTAL, "made_by": "hand"})
    return _besides(folder)


def bin_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    weight_map: dict[str, str] = {}
    for n, tensors in enumerate((FIRST, SECOND), 1):
        name = f"pytorch_model-{n:05d}-of-00002.bin"
        torch.save(tensors, folder / name)
        weight_map |= dict.fromkeys(tensors, name)
    write_index(folder / "pytorch_model.bin.index.json", weight_map, {"total_size": TOTAL})
    return _besides(folder)


def _besides(folder: Path) -> Path:
    (folder / "config.json").write_text('{"hidden_size": 4}\n')
    (folder / "tokenizer").mkdir()
    (folder / "tokenizer" / "vocab.txt").write_text("a\nb\n")
    (folder / ".cache").write_text("hidden")
    torch.save({"lr": 0.1}, folder / "training_args.bin")
    (folder / "model.gguf").write_bytes(b"GGUF")
    return folder
