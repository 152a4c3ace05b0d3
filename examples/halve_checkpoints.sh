#!/usr/bin/env bash
# Every checkpoint below a folder to half precision, beside the original: run/epoch3.pt → run/epoch3.float16.pt.
# What is up to date already is left alone. Prints the paths that were written; stops at the first that fails.
#
# Usage: halve_checkpoints.sh FOLDER [TCONV_OPTIONS...]      (--skip 'ema.*', --on-overflow saturate, …)
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n 's/^# \{0,1\}//p' "$0" | tail -n +2 >&2
    exit 2
fi
folder=$1
shift
if [ ! -d "$folder" ]; then
    echo "halve_checkpoints.sh: $folder is no folder" >&2
    exit 1
fi

while IFS= read -r -d '' checkpoint <&3; do
    half="${checkpoint%.*}.float16.${checkpoint##*.}"
    if [ "$half" -nt "$checkpoint" ]; then
        echo "$half is up to date" >&2
        continue
    fi
    tconv "$checkpoint" --half -o "$half" --force "$@"
done 3< <(find "$folder" -type f \( -name '*.pt' -o -name '*.pth' -o -name '*.ckpt' \) \
    ! -name '*.float16.*' -print0 | LC_ALL=C sort -z)
