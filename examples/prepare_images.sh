#!/usr/bin/env bash
# A folder of pictures as batches for an ImageNet model: OUT/batch-0000.npy …, each float32 (N, 3, 224, 224).
# Beside each batch a .txt names its pictures, in order. Prints the paths of the batches.
#
# Usage: prepare_images.sh FOLDER OUT [PICTURES_PER_BATCH]
set -euo pipefail

if [ $# -lt 2 ]; then
    sed -n 's/^# \{0,1\}//p' "$0" | tail -n +2 >&2
    exit 2
fi
folder=$1
out=$2
per_batch=${3:-256}

pictures=()
while IFS= read -r -d '' picture; do
    pictures+=("$picture")
done < <(find "$folder" -type f \( -iname '*.jpg' -o -iname '*.jpeg' -o -iname '*.png' -o -iname '*.webp' \
    -o -iname '*.bmp' -o -iname '*.gif' -o -iname '*.tif' -o -iname '*.tiff' \) -print0 | LC_ALL=C sort -z)
if [ ${#pictures[@]} -eq 0 ]; then
    echo "prepare_images.sh: no pictures in $folder" >&2
    exit 1
fi

mkdir -p "$out"
for ((first = 0; first < ${#pictures[@]}; first += per_batch)); do
    batch=("${pictures[@]:first:per_batch}")
    name=$(printf '%s/batch-%04d' "$out" $((first / per_batch)))
    tconv "${batch[@]}" -o "$name.npy" --force \
        --step 'resize(256) | crop(224) | scale | normalize(imagenet) | stack | permute(NCHW)'
    printf '%s\n' "${batch[@]}" > "$name.txt"
done
