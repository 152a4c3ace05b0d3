"""The options of ``convert``: what each is called, what its help says, in which panel of the help it stands."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from tconv.cli import complete, values

STEPS = "Conversion, in this order"
VALUES = "What the values are"
NAMES = "Which tensors"
OUTPUT = "Output"
IMAGES = "Images"
RUNNING = "Running"


def option(panel: str, text: str, *names: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, metavar=metavar, show_default=False, **more)


def choice(panel: str, text: str, name: str, *words: str, metavar: str | None = None) -> Any:
    shown, checked = metavar or "|".join(words), values.one_of(*words)
    return option(panel, text, name, metavar=shown, callback=checked, autocompletion=complete.words(*words))


def flag(panel: str, text: str, *names: str) -> Any:
    return option(panel, text, *names, metavar="")


_AXES = complete.words("CHW", "HWC", "NCHW", "NHWC", "HW", "NHW")

Inputs = Annotated[
    list[str],
    typer.Argument(metavar="INPUT", help="Files, folders or globs.", show_default=False, rich_help_panel="Input"),
]

Resize = Annotated[
    str | None, option(STEPS, "Shorter side N, or HxW; antialiased, bilinear.", "--resize", metavar="SIZE")
]
Pad = Annotated[
    str | None,
    option(STEPS, "To the largest, with VALUE (0), and a mask beside; stacks.", "--pad", metavar="[VALUE]"),
]
Normalize = Annotated[bool, flag(STEPS, "Scale the known range of the values to 0…1.", "--normalize")]
Stats = Annotated[
    str | None,
    option(
        STEPS,
        "(x - mean) / std: imagenet, clip, a file, or MEAN/STD.",
        "--stats",
        metavar="STATS",
        autocompletion=complete.stats,
    ),
]
Denormalize = Annotated[
    str | None,
    option(
        STEPS,
        "The way back, to pictures: STATS as above, or none for values in 0…1.",
        "--denormalize",
        metavar="STATS",
        autocompletion=complete.stats,
    ),
]
Layout = Annotated[
    str | None,
    option(STEPS, "Axes of the result: CHW, HWC, NCHW, NHWC.", "--layout", metavar="AXES", autocompletion=_AXES),
]
QuantizeTo = Annotated[
    str | None,
    option(
        STEPS,
        "To int8, uint8, int4, float8_e4m3fn, nf4 …, with scales beside; 'int4, group=128' and the like.",
        "--quantize",
        metavar="DTYPE",
        autocompletion=complete.words("int8", "uint8", "int4", "uint4", "float8_e4m3fn", "nf4"),
    ),
]
MinSqnr = Annotated[
    float | None,
    option(STEPS, "Tensors of which quantizing leaves a lower SQNR become float16.", "--min-sqnr", metavar="DB"),
]
To = Annotated[
    str | None,
    option(STEPS, "Cast to float32, bfloat16, uint8 …", "--to", metavar="DTYPE", autocompletion=complete.dtypes),
]
Half = Annotated[bool, flag(STEPS, "--to float16", "--half")]
Bf16 = Annotated[bool, flag(STEPS, "--to bfloat16", "--bf16")]
Float = Annotated[bool, flag(STEPS, "--to float32", "--float")]
Double = Annotated[bool, flag(STEPS, "--to float64", "--double")]
Int = Annotated[bool, flag(STEPS, "--to int32", "--int")]
Long = Annotated[bool, flag(STEPS, "--to int64", "--long")]
OnOverflow = Annotated[
    Literal["error", "saturate", "inf", "keep"] | None,
    choice(STEPS, "Values that do not fit (default: error).", "--on-overflow", "error", "saturate", "inf", "keep"),
]
Keep = Annotated[
    list[str] | None,
    option(STEPS, "No cast for names that match, or one to DTYPE; repeatable.", "--keep", metavar="GLOB[=DTYPE]"),
]
PolicyName = Annotated[Literal["amp"] | None, choice(STEPS, "Normalization layers are float32.", "--policy", "amp")]
MaxError = Annotated[
    float | None,
    option(STEPS, "No cast where a value would be off by more than this part of it.", "--max-error", metavar="REL"),
]
Fields = Annotated[
    str | None,
    option(
        STEPS,
        "Integer fields of .npz and the like that arithmetic may change too ('': none).",
        "--fields",
        metavar="GLOB",
    ),
]
StepList = Annotated[
    list[str] | None,
    option(
        STEPS,
        "Instead of the above: a step, or several with | between; repeatable.",
        "--step",
        metavar="'STEP(…)'",
        autocompletion=complete.steps,
    ),
]
PipelineName = Annotated[
    str | None,
    option(
        STEPS,
        "Instead of the above: a pipeline by name, or a .yaml file.",
        "--pipeline",
        metavar="NAME",
        autocompletion=complete.pipelines,
    ),
]
Set = Annotated[
    list[str] | None,
    option(STEPS, "A variable of the pipeline; repeatable.", "--set", metavar="NAME=VALUE"),
]

RangeText = Annotated[str | None, option(VALUES, "The interval in which the values lie.", "--range", metavar="LO,HI")]
InputLayout = Annotated[
    str | None,
    option(VALUES, "Axes of the input arrays: HWC, NCHW …", "--input-layout", metavar="AXES", autocompletion=_AXES),
]

Only = Annotated[list[str] | None, option(NAMES, "Those whose name matches; repeatable.", "--only", metavar="GLOB")]
Skip = Annotated[list[str] | None, option(NAMES, "Not those that match; repeatable.", "--skip", metavar="GLOB")]
Select = Annotated[str | None, option(NAMES, "What lies under this key of a checkpoint.", "--select", metavar="KEY")]
All = Annotated[bool, flag(NAMES, "All of a checkpoint, its optimizer state too.", "--all")]
StripPrefix = Annotated[
    list[str] | None,
    option(NAMES, "Cut this off the front of names; repeatable.", "--strip-prefix", metavar="TEXT"),
]

Out = Annotated[
    str | None,
    option(OUTPUT, "A file, whose suffix picks the format, or a folder/.", "-o", "--output", metavar="PATH"),
]
FormatName = Annotated[
    str | None,
    option(
        OUTPUT,
        "npy, npz, safetensors, pt, compressed-tensors; png, jpeg, webp, tiff.",
        "--format",
        metavar="NAME",
        autocompletion=complete.formats,
    ),
]
StackFlag = Annotated[bool, flag(OUTPUT, "Equal shapes become one array with axis N.", "--stack")]
BatchSize = Annotated[
    int | None,
    option(
        OUTPUT,
        "Stacked, N to a file: PATH-00000.npy …",
        "--batch-size",
        metavar="N",
        callback=values.whole(1, 10**9),
    ),
]
DropLast = Annotated[bool, flag(OUTPUT, "No last batch that is smaller.", "--drop-last")]
Split = Annotated[bool, flag(OUTPUT, "One file a tensor, in the folder of -o.", "--split")]
Quality = Annotated[
    int | None,
    option(OUTPUT, "Of JPEG, 1 to 100 (95).", "--quality", metavar="N", callback=values.whole(1, 100)),
]
ShardSize = Annotated[
    str | None,
    option(OUTPUT, "Weights in shards of at most that, with their index.", "--shard-size", metavar="SIZE"),
]
Tie = Annotated[bool, flag(OUTPUT, "Tied weights once in .safetensors, their other names as metadata.", "--tie")]
Force = Annotated[bool, flag(OUTPUT, "Replace what is there, once the new file is whole.", "-f", "--force")]
Resume = Annotated[bool, flag(OUTPUT, "Go on with shards where an interrupted run ended.", "--resume")]

Report = Annotated[
    str | None, option(OUTPUT, "What was done, and what each cast lost.", "--report", metavar="FILE.json")
]
Verify = Annotated[bool, flag(OUTPUT, "Read again what was written, and compare.", "--verify")]

Channels = Annotated[
    Literal["rgb", "bgr", "gray", "rgba", "keep"] | None,
    choice(
        IMAGES,
        "Channels of the result (rgb; where pictures are written, keep).",
        "--channels",
        "rgb",
        "bgr",
        "gray",
        "rgba",
        "keep",
    ),
]
Alpha = Annotated[
    Literal["white", "black", "drop"] | None,
    choice(IMAGES, "Blend over white (default) or black, or drop.", "--alpha", "white", "black", "drop"),
]
Palette = Annotated[
    Literal["rgb", "index"], choice(IMAGES, "Colours (default), or the indices.", "--palette", "rgb", "index")
]
Frames = Annotated[
    Literal["first", "all"],
    choice(IMAGES, "Of animations and multi-page files (first).", "--frames", "first", "all"),
]
Labels = Annotated[
    str | None,
    option(
        IMAGES,
        "A CSV or JSONL file, a path and a label a row; folders: their names, as by default where all lie in some; "
        "paths: no labels, but the list of names.",
        "--labels",
        metavar="FILE|folders|paths",
        autocompletion=complete.words("folders", "paths"),
    ),
]
NoLabels = Annotated[bool, flag(IMAGES, "No labels from class folders.", "--no-labels")]
NoExif = Annotated[bool, flag(IMAGES, "Pixels as stored, not turned upright.", "--no-exif")]
MaxPixels = Annotated[
    int | None,
    option(IMAGES, "Refuse larger images (89478485).", "--max-pixels", metavar="N", callback=values.whole(1, 10**15)),
]
Fast = Annotated[bool, flag(IMAGES, "Decode large JPEGs smaller before a resize; not exact.", "--fast")]

DeviceName = Annotated[
    str | None,
    option(
        RUNNING,
        "Where the steps are done as far as they can: cuda, cuda:1, mps, cpu, or auto for the best there is.",
        "--device",
        metavar="NAME",
        autocompletion=complete.words("cuda", "cuda:1", "mps", "cpu", "auto"),
    ),
]
DeviceBatch = Annotated[
    int | None,
    option(
        RUNNING, "Tensors that go there at once, at most (64).", "--device-batch", metavar="N",
        callback=values.whole(1, 100_000),
    ),
]  # fmt: skip
SaveDevice = Annotated[bool, flag(RUNNING, "In .pt they are tensors of that device, not of the CPU.", "--save-device")]

GpuJpeg = Annotated[
    bool, flag(IMAGES, "The CUDA device of --device decodes JPEGs, by torchvision; not exact.", "--gpu-jpeg")
]

DryRun = Annotated[bool, flag(RUNNING, "Print the plan, from headers alone.", "-n", "--dry-run")]
Print = Annotated[
    Literal["plan", "steps", "yaml", "json"] | None,
    choice(
        RUNNING, "The same: the plan, or what --step or --pipeline take.", "--print", "plan", "steps", "yaml", "json"
    ),
]
OnBad = Annotated[
    Literal["error", "skip"],
    choice(
        RUNNING, "Inputs that are of no use: name all (default), or leave out and exit 3.", "--on-bad", "error", "skip"
    ),
]
Workers = Annotated[
    int | None,
    option(RUNNING, "Threads (one a core).", "-j", "--workers", metavar="N", callback=values.whole(1, 256)),
]
MaxMemory = Annotated[str, option(RUNNING, "For the values under way (1GB).", "--max-memory", metavar="SIZE")]
Quiet = Annotated[bool, flag(RUNNING, "Only errors on stderr.", "-q", "--quiet")]
Verbose = Annotated[bool, flag(RUNNING, "The plan too: every tensor, before and after.", "-v", "--verbose")]
Debug = Annotated[bool, flag(RUNNING, "A traceback with errors.", "--debug")]
