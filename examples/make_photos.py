"""Draws the pictures in examples/photos: a dozen scenes of noise and geometry, in the formats that photos come in.

Usage: python examples/make_photos.py [FOLDER]   (NumPy and Pillow only; the same pixels every time)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from canvas import Canvas, Colour
from PIL import Image, ImageFilter

ORIENTATION = 0x0112  # the EXIF tag; 6 says that the camera was held upright, turned by a quarter


def mountains(height: int, width: int) -> Image.Image:
    """Ridges that fade into the haze of a morning, each nearer one darker."""
    c = Canvas(height, width, seed=1)
    c.pixels = c.gradient([(0, (0.36, 0.55, 0.80)), (0.45, (0.95, 0.80, 0.66)), (1, (1.0, 0.93, 0.80))])
    c.paint((1, 1, 1), 0.55 * np.clip(c.noise(3, stretch=3) * 2.4 - 1.3, 0, 1) * (1 - c.y))
    c.glow((1.0, 0.75, 0.4), 0.95 * c.aspect / 1.5, 0.36, 0.22, 0.5)
    layers = 6
    for layer in range(layers):
        near = layer / (layers - 1)
        line = c.ridge(0.42 + 0.46 * near**1.2, 0.30 - 0.12 * near, 3 + layer)
        far, close = np.array([0.66, 0.67, 0.78]), np.array([0.07, 0.16, 0.15])
        colour = far + (close - far) * near
        haze = np.clip((c.y - line) * (2.2 - near), 0, 0.5)[..., np.newaxis] * (1 - near) * 0.8
        c.paint(colour + haze * (np.array([1, 0.9, 0.8]) - colour) + 0.05 * (c.noise(30, 3)[..., np.newaxis] - 0.5),
                c.below(line))  # fmt: skip
    return c.finish()


def dunes(height: int, width: int) -> Image.Image:
    """Sand in low sun: lit on one side of each crest, rippled by the wind."""
    c = Canvas(height, width, seed=2)
    c.pixels = c.gradient([(0, (0.16, 0.20, 0.42)), (0.3, (0.86, 0.47, 0.36)), (0.5, (1.0, 0.76, 0.45))])
    c.glow((1, 0.9, 0.6), 0.3 * c.aspect, 0.36, 0.10, 0.9)
    for layer in range(4):
        crest = 0.44 + 0.15 * layer + 0.07 * np.sin(c.x * (3.1 - 0.4 * layer) * 2 + 1.7 * layer)
        crest = crest + 0.03 * np.sin(c.x * 9 + layer * 2.3)
        slope = np.gradient(crest, axis=1) * height * 2
        ripples = 0.04 * np.sin((c.y - crest) * (260 - 40 * layer) + 14 * c.noise(3, 3) + c.x * 16)
        light = np.clip(0.55 - 0.9 * slope + ripples - 0.9 * (c.y - crest), 0.08, 1)
        c.paint(c.gradient([(0, (0.25, 0.08, 0.10)), (0.5, (0.80, 0.42, 0.20)), (1, (1.0, 0.80, 0.50))], light),
                c.below(crest))  # fmt: skip
    return c.finish()


def lighthouse(height: int, width: int) -> Image.Image:
    """A striped tower on a rock, its beam in the dusk."""
    c = Canvas(height, width, seed=3)
    c.pixels = c.gradient([(0, (0.05, 0.08, 0.22)), (0.5, (0.35, 0.27, 0.48)), (0.72, (0.95, 0.55, 0.42))])
    c.paint((0.9, 0.6, 0.6), 0.5 * np.clip(c.noise(4, stretch=4) * 2.2 - 1.2, 0, 1))
    middle, top = 0.55 * c.aspect, 0.30
    beam = np.exp(-(((c.y - top + 0.16 * (c.x - middle)) / (0.012 + 0.10 * np.abs(c.x - middle))) ** 2))
    c.pixels += (beam * np.clip(1 - 1.2 * np.abs(c.x - middle), 0, 1) * 0.45)[..., np.newaxis] * (1, 0.92, 0.7)
    sea = c.below(np.full(c.y.shape, 0.74))
    glitter = 0.5 + 0.5 * np.sin(c.y * 300 + 22 * c.noise(6, 4, stretch=5))
    c.paint(c.gradient([(0, (0.05, 0.10, 0.20)), (1, (0.55, 0.40, 0.46))], glitter * (1.3 - c.y)), sea)
    half = 0.045 + 0.045 * (c.y - top)
    tower = np.clip((half - np.abs(c.x - middle)) / 0.004, 0, 1) * (c.y > top) * (c.y < 0.82)
    shade = np.clip(1 - 0.75 * np.abs((c.x - middle + 0.02) / 0.07), 0.25, 1)[..., np.newaxis]
    stripes = np.where((np.floor((c.y - top) * 9.5) % 2 == 0)[..., np.newaxis], (0.95, 0.93, 0.90), (0.78, 0.13, 0.13))
    c.paint(stripes * shade, tower)
    lamp = (np.abs(c.x - middle) < 0.032) & (c.y > top - 0.055) & (c.y < top)
    c.paint((1.0, 0.93, 0.65), lamp.astype(np.float64))
    roof = (np.abs(c.x - middle) < (c.y - top + 0.105) * 0.85) & (c.y > top - 0.105) & (c.y < top - 0.055)
    c.paint((0.20, 0.07, 0.09), roof.astype(np.float64))
    c.glow((1, 0.9, 0.6), middle, top - 0.03, 0.09, 0.8)
    rock = 0.80 + 0.9 * (c.x - middle) ** 2 + 0.06 * (c.noise(5)[0] - 0.5)
    c.paint(c.gradient([(0, (0.04, 0.04, 0.07)), (1, (0.34, 0.27, 0.30))], c.noise(14, 5)), c.below(rock))
    return c.finish()


def moon(height: int, width: int) -> Image.Image:
    """The moon past its first quarter; grey."""
    c = Canvas(height, width, seed=4)
    x, y, radius = 0.5 * c.aspect, 0.5, 0.40
    sphere = np.sqrt(np.clip(1 - ((c.x - x) ** 2 + (c.y - y) ** 2) / radius**2, 0, 1))
    relief = 0.5 * c.noise(4, 6)
    for _ in range(90):
        away, angle = radius * np.sqrt(c.random.random_sample()), 2 * np.pi * c.random.random_sample()
        size = 0.006 + 0.05 * c.random.random_sample() ** 4
        distance = np.hypot(c.x - x - away * np.cos(angle), c.y - y - away * np.sin(angle)) / size
        relief += 0.5 * size**0.3 * (np.exp(-(((distance - 1) / 0.25) ** 2)) - 0.8 * np.exp(-((distance / 0.8) ** 4)))
    light = np.clip(0.25 + 0.9 * sphere - 0.8 * (c.x - x) / radius, 0, 1) * np.clip(sphere * 6, 0, 1)
    light = light + 5.0 * np.gradient(relief, axis=1) * np.clip(light * 3, 0, 1)
    stars = (c.random.random_sample(c.y.shape) > 0.9993) * 0.8
    c.paint((1, 1, 1), stars)
    c.paint(np.repeat((light * (0.62 + 0.38 * c.noise(3, 4)))[..., np.newaxis], 3, axis=2), c.disc(x, y, radius))
    return c.finish().convert("L")


def balloon(height: int, width: int) -> Image.Image:
    """A hot-air balloon, cut out: nothing is behind it."""
    c = Canvas(height, width, seed=5)
    x, y, radius = 0.5 * c.aspect, 0.37, 0.34
    drop = np.clip((c.y - y) / 0.45, 0, 1)
    half = np.where(c.y < y, np.sqrt(np.clip(radius**2 - (c.y - y) ** 2, 0, 1)), radius * np.cos(drop * 1.32))
    envelope = np.clip((half - np.abs(c.x - x)) / 0.005, 0, 1) * (c.y > y - radius) * (c.y < 0.80)
    across = np.clip((c.x - x) / np.maximum(half, 1e-3), -1, 1)
    gore = np.floor(np.arcsin(across) / np.pi * 12) % 4
    stripes = np.array([(0.90, 0.20, 0.17), (1.0, 0.73, 0.16), (0.13, 0.47, 0.70), (0.98, 0.93, 0.82)])
    cloth = stripes[gore.astype(int)]
    light = 0.35 + 0.65 * np.sqrt(np.clip(1 - (across + 0.35) ** 2 / 1.9, 0, 1)) * (1.05 - 0.35 * c.y)
    c.paint(cloth * light[..., np.newaxis], 1.0)
    ropes = np.zeros(c.y.shape)
    for side in (-1.0, -0.4, 0.4, 1.0):
        ropes = np.maximum(ropes, np.clip(1 - np.abs(c.x - x - side * (0.085 - 0.18 * (c.y - 0.79))) / 0.004, 0, 1))
    ropes *= (c.y > 0.79) & (c.y < 0.90)
    basket = ((np.abs(c.x - x) < 0.065) & (c.y > 0.89) & (c.y < 0.975)).astype(np.float64)
    weave = 0.75 + 0.25 * np.sin(c.x * 420) * np.sin(c.y * 420)
    c.paint(np.array([0.48, 0.29, 0.13]) * weave[..., np.newaxis], np.maximum(basket, ropes * (envelope < 0.5)))
    return c.finish_cut_out(np.maximum(np.maximum(envelope, basket), 0.8 * ropes))


def orange(height: int, width: int) -> Image.Image:
    """A slice of an orange on white, as a printer wants it: CMYK."""
    c = Canvas(height, width, seed=6)
    x, y = 0.5 * c.aspect, 0.5
    c.pixels[:] = (0.97, 0.96, 0.94)
    c.paint((0.62, 0.55, 0.50), 0.6 * c.disc(x + 0.02, y + 0.035, 0.42, soft=0.10))
    away, angle = np.hypot(c.x - x, c.y - y), np.arctan2(c.y - y, c.x - x)
    c.paint((0.96, 0.52, 0.07), c.disc(x, y, 0.42))
    c.paint((1.0, 0.90, 0.70), c.disc(x, y, 0.385))
    within = np.abs((angle / (2 * np.pi) * 10 + 0.03 * c.noise(4, 3)) % 1 - 0.5)
    segment = np.clip((0.47 - within - 0.010 / np.maximum(away, 0.02)) / 0.03, 0, 1) * c.disc(x, y, 0.355, soft=0.012)
    fibres = np.sin(angle * 90 + 9 * c.noise(9, 4)) * 0.5 + 0.5
    pulp = c.gradient([(0, (0.93, 0.42, 0.03)), (1, (1.0, 0.74, 0.25))], 0.65 * fibres + 0.5 * c.noise(24, 3) - 0.1)
    c.paint(pulp, segment * np.clip((away - 0.03) / 0.02, 0, 1))
    return c.finish(grain=0.006).convert("CMYK")


def poster(height: int, width: int) -> Image.Image:
    """A travel poster in flat colours: a palette of 16."""
    c = Canvas(height, width, seed=7)
    c.pixels[:] = (0.98, 0.87, 0.66)
    rays = np.floor(np.arctan2(c.y - 0.52, c.x - 0.5 * c.aspect) / np.pi * 14) % 2
    c.paint((0.97, 0.76, 0.48), rays)
    c.paint((0.91, 0.36, 0.22), c.disc(0.5 * c.aspect, 0.46, 0.24))
    for level, colour in ((0.52, (0.45, 0.56, 0.60)), (0.62, (0.22, 0.39, 0.46)), (0.74, (0.10, 0.24, 0.32))):
        peaks = level + 0.11 * np.abs(((c.x * (2.2 + level) + level * 7) % 1) - 0.5) * 2 - 0.05
        c.paint(colour, c.below(peaks))
    c.paint((0.93, 0.80, 0.60), c.below(0.86 + 0.02 * np.sin(c.x * 14)))
    frame = np.minimum(np.minimum(c.x, c.aspect - c.x), np.minimum(c.y, 1 - c.y)) < 0.035
    c.paint((1.0, 0.97, 0.90), frame.astype(np.float64))
    return c.finish(grain=0).quantize(16, dither=Image.Dither.NONE)


def elevation(height: int, width: int) -> Image.Image:
    """A height map, the kind of grey that needs 16 bits: an island from the sea (0) to its summit (52428)."""
    c = Canvas(height, width, seed=8)
    away = np.hypot((c.x - 0.5 * c.aspect) / c.aspect, c.y - 0.5) * 2
    island = np.clip(c.noise(3, 7) * 1.25 - 0.9 * away**2, 0, None)
    metres = (island / island.max() * 0.8 * 65535).reshape(height, 2, width, 2).mean(axis=(1, 3))
    return Image.fromarray(np.rint(metres).astype(np.uint16))


def aurora(height: int, width: int) -> Image.Image:
    """Northern lights over a line of firs."""
    c = Canvas(height, width, seed=9)
    c.pixels = c.gradient([(0, (0.01, 0.02, 0.08)), (1, (0.04, 0.13, 0.20))])
    c.paint((1, 1, 1), (c.random.random_sample(c.y.shape) > 0.9985) * c.random.random_sample(c.y.shape))
    for band in range(3):
        foot = 0.52 - 0.13 * band + 0.10 * np.sin(c.x * (2.2 + band) + 2.1 * band) + 0.12 * (c.noise(3, 3)[0] - 0.5)
        rise = np.clip((foot - c.y) / (0.42 - 0.08 * band), 0, 1)
        rays = 0.55 + 0.45 * c.noise(12, 4, stretch=0.4)[0]
        curtain = np.exp(-4 * rise) * np.clip((foot - c.y) / 0.02, 0, 1) * rays
        c.pixels += curtain[..., np.newaxis] * c.gradient([(0, (0.15, 0.95, 0.55)), (1, (0.55, 0.15, 0.75))], rise)
    spikes = np.abs((c.x * 17 + 3 * c.noise(8, 2)[0]) % 1 - 0.5)
    firs = 0.80 + 0.05 * np.sin(c.x * 3) + spikes * (0.12 + 0.16 * c.noise(9, 2)[0])
    c.paint((0.01, 0.02, 0.03), c.below(firs))
    return c.finish(grain=0.008)


def bokeh(height: int, width: int) -> Image.Image:
    """Lights of a city at night, out of focus."""
    c = Canvas(height, width, seed=10)
    c.pixels = c.gradient([(0, (0.03, 0.03, 0.09)), (0.6, (0.13, 0.06, 0.14)), (1, (0.04, 0.03, 0.05))])
    lights: list[Colour] = [
        (1.0, 0.62, 0.22),
        (1.0, 0.30, 0.25),
        (0.35, 0.65, 1.0),
        (0.95, 0.90, 0.70),
        (0.3, 0.9, 0.6),
    ]
    for _ in range(46):
        x, y = c.random.random_sample() * c.aspect, 0.5 + 0.17 * c.random.standard_normal()
        radius, bright = 0.025 + 0.06 * c.random.random_sample(), 0.15 + 0.4 * c.random.random_sample()
        disc = c.disc(x, y, radius, soft=0.01)
        rim = disc - c.disc(x, y, radius * 0.86, soft=0.012)
        c.pixels += ((disc + 0.5 * rim) * bright)[..., np.newaxis] * lights[c.random.randint(len(lights))]
    return c.finish()


def pebbles(height: int, width: int) -> Image.Image:
    """A beach from above: each stone the cell around a point, lit from one side."""
    c = Canvas(height, width, seed=11)
    count = 170
    points = c.random.random_sample((count, 2)) * (c.aspect, 1)
    colours = np.array([0.84, 0.78, 0.72]) + 0.16 * c.random.standard_normal((count, 1)) * (1, 0.95, 0.9)
    colours = colours + 0.05 * c.random.standard_normal((count, 3))
    nearest, second = np.full(c.y.shape, 9.0), np.full(c.y.shape, 9.0)
    stone = np.zeros(c.y.shape, np.int64)
    for number, (x, y) in enumerate(points):
        distance = np.hypot(c.x - x, c.y - y)
        second = np.minimum(second, np.maximum(nearest, distance))
        stone = np.where(distance < nearest, number, stone)
        nearest = np.minimum(nearest, distance)
    bulge = 1 - np.exp(-(second - nearest) / 0.022)
    light = 0.80 + 6 * (np.gradient(bulge, axis=1) + np.gradient(bulge, axis=0))
    veins = 0.88 + 0.24 * c.noise(20, 4)
    c.pixels = colours[stone] * (np.clip(light, 0.2, 1.4) * bulge * veins)[..., np.newaxis]
    return c.finish()


def waves(height: int, width: int) -> Image.Image:
    """The sea at noon, foam on the crests."""
    c = Canvas(height, width, seed=12)
    depth = 1 / (c.y + 0.06)
    swell = np.sin(26 * np.log(depth) * 2.1 + 5 * c.noise(3, 4, stretch=3)) * 0.5 + 0.5
    chop = c.noise(12, 6, stretch=4)
    surface = 0.55 * swell + 0.45 * chop
    c.pixels = c.gradient([(0, (0.02, 0.16, 0.28)), (0.55, (0.05, 0.42, 0.52)), (1, (0.45, 0.80, 0.78))], surface)
    c.paint((0.96, 0.98, 0.98), np.clip((surface + 0.35 * c.noise(40, 3) - 0.98) * 6, 0, 1))
    sky = c.gradient([(0, (0.42, 0.66, 0.90)), (0.22, (0.83, 0.91, 0.96))])
    c.paint(sky, 1 - c.below(np.full(c.y.shape, 0.22), soft=0.01))
    return c.finish()


Saver = Callable[[Path], None]


def photos() -> dict[str, Saver]:
    """By file name, what writes it."""

    def jpeg(picture: Image.Image, **options: Any) -> Saver:
        return lambda path: picture.save(path, "JPEG", quality=84, **options)

    def png(picture: Image.Image) -> Saver:
        return lambda path: picture.save(path, "PNG", optimize=True)

    upright = Image.Exif()
    upright[ORIENTATION] = 6
    lying = lighthouse(300, 200).transpose(Image.Transpose.ROTATE_90)
    soft = bokeh(220, 330).filter(ImageFilter.GaussianBlur(0.6))
    return {
        "aurora.webp": lambda path: aurora(240, 360).save(path, "WEBP", quality=84, method=6),
        "balloon.png": png(balloon(200, 160)),
        "bokeh.jpg": jpeg(soft, progressive=True),
        "dunes.jpg": jpeg(dunes(225, 300)),
        "elevation.png": png(elevation(96, 128)),
        "lighthouse.jpg": jpeg(lying, exif=upright),
        "moon.jpg": jpeg(moon(240, 240)),
        "mountains.jpg": jpeg(mountains(240, 360)),
        "orange.jpg": jpeg(orange(180, 200)),
        "pebbles.jpg": jpeg(pebbles(180, 240), subsampling="4:4:4"),
        "poster.png": png(poster(270, 190)),
        "waves.jpg": jpeg(waves(200, 320)),
    }


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, save in photos().items():
        save(folder / name)


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "photos")
