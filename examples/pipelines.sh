#!/usr/bin/env bash
# Every pipeline that comes with tconv, as a line to copy: pictures to OUT/NAME.npz, a checkpoint to OUT/NAME.pt.
# Prints the paths that were written; stops at the first that fails.
#
# Usage: pipelines.sh PICTURES CHECKPOINT OUT
set -euo pipefail

if [ $# -ne 3 ]; then
    sed -n 's/^# \{0,1\}//p' "$0" | tail -n +2 >&2
    exit 2
fi
pictures=$1
checkpoint=$2
out=$3

tconv "$pictures" --pipeline clip -o "$out/clip.npz" --force
tconv "$pictures" --pipeline imagenet -o "$out/imagenet.npz" --force
tconv "$pictures" --pipeline imagenet-eval -o "$out/imagenet-eval.npz" --force
tconv "$pictures" --pipeline keras-mobilenet -o "$out/keras-mobilenet.npz" --force
tconv "$pictures" --pipeline mnist -o "$out/mnist.npz" --force
tconv "$pictures" --pipeline tf-image -o "$out/tf-image.npz" --force
tconv "$pictures" --pipeline tflite-representative -o "$out/tflite-representative.npz" --force
tconv "$pictures" --pipeline vit-inception -o "$out/vit-inception.npz" --force
tconv "$pictures" --pipeline yolo-letterbox -o "$out/yolo-letterbox.npz" --force

tconv "$checkpoint" --pipeline bf16 -o "$out/bf16.pt" --force
tconv "$checkpoint" --pipeline half -o "$out/half.pt" --force
tconv "$checkpoint" --pipeline half-keep-norms -o "$out/half-keep-norms.pt" --force
tconv "$checkpoint" --pipeline int8-weights -o "$out/int8-weights.pt" --force
