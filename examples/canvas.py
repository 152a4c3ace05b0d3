"""A canvas for pictures made of arithmetic: noise, gradients, glows and soft edges, all from one seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

Array = np.ndarray[Any, np.dtype[np.float64]]
Colour = tuple[float, float, float]


class Canvas:
    """Scenes are drawn in float at twice the size and reduced at the end, which smooths every edge.

    ``x`` runs from 0 to width / height, ``y`` from 0 (top) to 1. ``pixels``: (H, W, 3), 0 to 1.
    """

    def __init__(self, height: int, width: int, seed: int) -> None:
        self.size = (width, height)
        self.random = np.random.RandomState(seed)  # whose streams NumPy has frozen
        rows, columns = np.mgrid[0 : 2 * height, 0 : 2 * width]
        self.y, self.x = (rows + 0.5) / (2 * height), (columns + 0.5) / (2 * height)
        self.aspect = width / height
        self.pixels: Array = np.zeros((*self.y.shape, 3))

    def noise(self, cells: int, octaves: int = 5, stretch: float = 1.0) -> Array:
        """Fractal value noise from 0 to 1; ``cells`` to the height, ``stretch`` times longer than high."""
        total = np.zeros(self.y.shape)
        for octave in range(octaves):
            rows = cells * 2**octave + 1
            grid = self.random.random_sample((rows, max(2, int(rows * self.aspect / stretch)))).astype(np.float32)
            smooth = Image.fromarray(grid).resize(self.y.shape[::-1], Image.Resampling.BICUBIC)
            total += np.asarray(smooth, np.float64) / 2**octave
        low, high = total.min(), total.max()
        scaled: Array = (total - low) / (high - low)
        return scaled

    def gradient(self, stops: Sequence[tuple[float, Colour]], along: Array | None = None) -> Array:
        """Colours between ``stops``, from top to bottom unless ``along`` says where each pixel is."""
        at = self.y if along is None else along
        places = [place for place, _ in stops]
        return np.stack([np.interp(at, places, [colour[c] for _, colour in stops]) for c in range(3)], axis=-1)

    def paint(self, colour: Array | Colour, cover: Array | float) -> None:
        """Colour laid over what is there; ``cover`` is 1 where nothing shines through."""
        opacity = np.clip(cover, 0, 1)[..., np.newaxis] if isinstance(cover, np.ndarray) else cover
        self.pixels += (np.asarray(colour) - self.pixels) * opacity

    def glow(self, colour: Colour, x: float, y: float, radius: float, strength: float = 1.0) -> None:
        """Light added around a point."""
        distance = np.hypot(self.x - x, self.y - y) / radius
        self.pixels += np.asarray(colour) * (strength * np.exp(-(distance**2)))[..., np.newaxis]

    def disc(self, x: float, y: float, radius: float, soft: float = 0.006) -> Array:
        """1 inside a circle, 0 outside, with an edge ``soft`` wide."""
        inside: Array = np.clip((radius - np.hypot(self.x - x, self.y - y)) / soft, 0, 1)
        return inside

    def below(self, line: Array, soft: float = 0.006) -> Array:
        """1 below a line of heights, 0 above."""
        under: Array = np.clip((self.y - line) / soft, 0, 1)
        return under

    def ridge(self, level: float, rough: float, cells: int) -> Array:
        """The height of a mountain line at each column."""
        profile = self.noise(cells, octaves=6)[0]
        return np.broadcast_to(level + rough * (profile - 0.5), self.y.shape)

    def finish(self, grain: float = 0.012) -> Image.Image:
        """The picture, RGB."""
        return self._reduced(self.pixels + grain * self.random.standard_normal(self.y.shape)[..., np.newaxis])

    def finish_cut_out(self, opacity: Array) -> Image.Image:
        """The picture, RGBA, wherever ``opacity`` lets one see it."""
        return self._reduced(np.dstack([self.pixels, opacity]))

    def _reduced(self, pixels: Array) -> Image.Image:
        values = np.rint(np.clip(pixels, 0, 1) * 255).astype(np.uint8)
        return Image.fromarray(values).resize(self.size, Image.Resampling.BOX)
