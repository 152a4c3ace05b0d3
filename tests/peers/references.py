"""What other libraries make of a picture, in the words of their own documentation: what the pipelines are measured by.

Imports neither tconv nor, before it is asked, any of the libraries: it runs where only one of them is installed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PHOTOS = ("bokeh.jpg", "balloon.png", "aurora.webp")  # enlarged and made smaller, with and without opacity
STRIDE = 97  # of the values that are kept: a prime, so that every channel, row and column has its turn


@dataclass(frozen=True)
class Reference:
    """``make`` is what ``library`` does to the picture in a file; ``argv`` what tconv does in its place.

    ``within``: the largest difference that is fine, and ``why`` there is one.
    """

    name: str
    library: str
    code: str
    argv: tuple[str, ...]
    make: Callable[[Path], Any]
    within: float
    why: str = "float32 arithmetic there, float64 rounded once here"


def photo(name: str) -> Path:
    return ROOT / "examples" / "photos" / name


def kept(values: Any) -> Any:
    """The part of an array that is written down."""
    return np.asarray(values, np.float32).reshape(-1)[::STRIDE]


# ---------------------------------------------------------------------------------------------- torchvision
def _v2() -> Any:
    return importlib.import_module("torchvision.transforms.v2")


def _opened(path: Path) -> Any:
    return importlib.import_module("PIL.Image").open(path).convert("RGB")


def _composed(path: Path, *transforms: Any) -> Any:
    """Transforms of a Pillow image, then a float32 tensor in [0, 1], normalized by the last of them."""
    v2, torch = _v2(), importlib.import_module("torch")
    *first, last = transforms
    steps = [*first, v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True), last]
    return v2.Compose(steps)(_opened(path)).numpy()


IMAGENET = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
CLIP = {"mean": [0.48145466, 0.4578275, 0.40821073], "std": [0.26862954, 0.26130258, 0.27577711]}


def _imagenet(path: Path) -> Any:
    v2 = _v2()
    return _composed(path, v2.Resize((224, 224)), v2.Normalize(**IMAGENET))


def _imagenet_of_tensors(path: Path) -> Any:
    v2, torch = _v2(), importlib.import_module("torch")
    io = importlib.import_module("torchvision.io")
    steps = [v2.Resize((224, 224), antialias=True), v2.ToDtype(torch.float32, scale=True), v2.Normalize(**IMAGENET)]
    return v2.Compose(steps)(io.decode_image(str(path), mode="RGB")).numpy()


def _imagenet_eval(path: Path) -> Any:
    models = importlib.import_module("torchvision.models")
    return models.ResNet50_Weights.IMAGENET1K_V1.transforms()(_opened(path)).numpy()


def _clip(path: Path) -> Any:
    v2 = _v2()
    bicubic = v2.InterpolationMode.BICUBIC
    return _composed(path, v2.Resize(224, interpolation=bicubic), v2.CenterCrop(224), v2.Normalize(**CLIP))


def _vit(path: Path) -> Any:
    v2 = _v2()
    return _composed(path, v2.Resize((224, 224)), v2.Normalize(mean=[0.5] * 3, std=[0.5] * 3))


def _mnist(path: Path) -> Any:
    v2 = _v2()
    return _composed(path, v2.Grayscale(), v2.Resize((28, 28)), v2.Normalize((0.1307,), (0.3081,)))


TENSORS = "torchvision's resize of tensors rounds otherwise than Pillow's: up to one level of 255, over 0.224"
TORCHVISION = [
    Reference(
        "imagenet", "torchvision", "v2.Resize((224, 224)) of a Pillow image, ToDtype(scale=True), Normalize",
        ("--pipeline", "imagenet"), _imagenet, 1e-6,
    ),
    Reference(
        "imagenet of tensors", "torchvision", "decode_image, v2.Resize((224, 224), antialias=True), …",
        ("--pipeline", "imagenet"), _imagenet_of_tensors, 0.02, TENSORS,
    ),
    Reference(
        "imagenet-eval", "torchvision", "ResNet50_Weights.IMAGENET1K_V1.transforms()",
        ("--pipeline", "imagenet-eval"), _imagenet_eval, 1e-6,
    ),
    Reference(
        "clip", "torchvision", "Resize(224, BICUBIC), CenterCrop(224), Normalize, as CLIP's own preprocessing",
        ("--pipeline", "clip"), _clip, 1e-6,
    ),
    Reference(
        "vit-inception", "torchvision", "Resize((224, 224)), Normalize(0.5, 0.5), as ViTImageProcessor's defaults",
        ("--pipeline", "vit-inception"), _vit, 1e-6,
    ),
    Reference(
        "mnist", "torchvision", "Grayscale, Resize((28, 28)), Normalize(0.1307, 0.3081)",
        ("--pipeline", "mnist"), _mnist, 1e-6,
    ),
]  # fmt: skip


# ---------------------------------------------------------------------------------------------- transformers
def _processed(module: str, name: str) -> Callable[[Path], Any]:
    """An image processor with its defaults, the one that resizes by Pillow."""

    def make(path: Path) -> Any:
        processor = getattr(importlib.import_module(f"transformers.models.{module}"), name)()
        return processor(_opened(path), return_tensors="np")["pixel_values"][0]

    return make


TRANSFORMERS = [
    Reference(
        "clip of transformers", "transformers", "CLIPImageProcessorPil()",
        ("--pipeline", "clip"), _processed("clip.image_processing_pil_clip", "CLIPImageProcessorPil"), 1e-6,
    ),
    Reference(
        "vit of transformers", "transformers", "ViTImageProcessorPil()",
        ("--pipeline", "vit-inception"), _processed("vit.image_processing_pil_vit", "ViTImageProcessorPil"), 1e-6,
    ),
]  # fmt: skip


# ---------------------------------------------------------------------------------------------- TensorFlow, Keras
def _tf() -> Any:
    return importlib.import_module("tensorflow")


def _load_img(path: Path) -> Any:
    utils = importlib.import_module("keras.utils")
    return utils.img_to_array(utils.load_img(path, target_size=(224, 224)))


def _mobilenet(path: Path) -> Any:
    return importlib.import_module("keras.applications.mobilenet_v2").preprocess_input(_load_img(path))


def _keras_mode(mode: str) -> Callable[[Path], Any]:
    def make(path: Path) -> Any:
        return importlib.import_module("keras.applications.imagenet_utils").preprocess_input(_load_img(path), mode=mode)

    return make


def _representative(path: Path) -> Any:
    utils = importlib.import_module("keras.utils")
    image = utils.load_img(path, target_size=(224, 224), interpolation="bilinear")
    return utils.img_to_array(image) / np.float32(255)


def _tf_decoded(path: Path) -> Any:
    return _tf().io.decode_image(path.read_bytes(), channels=3, expand_animations=False)


def _tf_decoded_well(path: Path) -> Any:
    """JPEG by the transform that libjpeg and everybody else uses by default."""
    if path.suffix != ".jpg":
        return _tf_decoded(path)
    return _tf().io.decode_jpeg(path.read_bytes(), channels=3, dct_method="INTEGER_ACCURATE")


def _tf_image(decoded: Callable[[Path], Any]) -> Callable[[Path], Any]:
    def make(path: Path) -> Any:
        tf = _tf()
        scaled = tf.image.convert_image_dtype(decoded(path), tf.float32)
        return tf.image.resize(scaled, (224, 224), antialias=True).numpy()

    return make


def _tf_scaled(path: Path) -> Any:
    tf = _tf()
    return tf.image.convert_image_dtype(_tf_decoded(path), tf.float32).numpy()


JPEG = "TensorFlow decodes JPEG by a coarser transform: up to 4 levels of 255"
NEAREST = "resize(224x224, method=nearest)"
KERAS = [
    Reference(
        "keras-mobilenet", "Keras", "load_img(target_size=(224, 224)), mobilenet_v2.preprocess_input",
        ("--pipeline", "keras-mobilenet"), _mobilenet, 1e-6,
    ),
    Reference(
        "tflite-representative", "Keras", "load_img(target_size=(224, 224), interpolation='bilinear'), x / 255",
        ("--pipeline", "tflite-representative"), _representative, 0, "the same division, rounded once",
    ),
    Reference(
        "Keras, mode tf", "Keras", "load_img, imagenet_utils.preprocess_input(mode='tf')",
        ("--step", f"{NEAREST} | scale | normalize(mean=0.5, std=0.5)"), _keras_mode("tf"), 1e-6,
    ),
    Reference(
        "Keras, mode torch", "Keras", "load_img, imagenet_utils.preprocess_input(mode='torch')",
        ("--step", f"{NEAREST} | scale | normalize(imagenet)"), _keras_mode("torch"), 1e-6,
    ),
    Reference(
        "Keras, mode caffe", "Keras", "load_img, imagenet_utils.preprocess_input(mode='caffe')",
        ("--step", f"{NEAREST} | normalize(mean=[103.939, 116.779, 123.68], std=1)", "--channels", "bgr"),
        _keras_mode("caffe"), 2e-5, "a subtraction in float32, whose last bit at 151 is 1.5e-05",
    ),
    Reference(
        "tf-image", "TensorFlow", "decode_image, convert_image_dtype(float32), image.resize(antialias=True)",
        ("--pipeline", "tf-image"), _tf_image(_tf_decoded), 0.02, JPEG,
    ),
    Reference(
        "tf-image, JPEG decoded well", "TensorFlow", "the same of decode_jpeg(dct_method='INTEGER_ACCURATE')",
        ("--pipeline", "tf-image"), _tf_image(_tf_decoded_well), 1e-5, "TensorFlow makes its filter in float32",
    ),
    Reference(
        "TensorFlow, scaled", "TensorFlow", "decode_image, convert_image_dtype(float32)",
        ("--step", "scale(float32, like=tensorflow)"), _tf_scaled, 0.02, JPEG,
    ),
]  # fmt: skip


# ---------------------------------------------------------------------------------------------- YOLO
def _letterbox(path: Path) -> Any:
    """The arithmetic of ultralytics' LetterBox((640, 640), auto=False), with Pillow's resize in place of OpenCV's."""
    cv2 = importlib.import_module("cv2")
    image = _opened(path)
    ratio = min(640 / image.height, 640 / image.width)
    wide, high = round(image.width * ratio), round(image.height * ratio)
    dw, dh = (640 - wide) / 2, (640 - high) / 2
    top, bottom, left, right = round(dh - 0.1), round(dh + 0.1), round(dw - 0.1), round(dw + 0.1)
    pixels = np.asarray(image.resize((wide, high), importlib.import_module("PIL.Image").Resampling.BILINEAR))
    boxed = cv2.copyMakeBorder(pixels, top, bottom, left, right, cv2.BORDER_CONSTANT, value=(114, 114, 114))
    return boxed.transpose(2, 0, 1).astype(np.float32) / np.float32(255)


YOLO = [
    Reference(
        "yolo-letterbox", "OpenCV", "copyMakeBorder of ultralytics' LetterBox, after Pillow's resize",
        ("--pipeline", "yolo-letterbox"), _letterbox, 0, "the same float32 division, rounded once",
    ),
]  # fmt: skip
REFERENCES = {"torchvision": TORCHVISION, "transformers": TRANSFORMERS, "keras": KERAS, "opencv": YOLO}
