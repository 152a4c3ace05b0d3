#!/usr/bin/env bash
# Before a night of training: can every file be read, and does float64 hide in one of them? From headers alone.
# Silent and exit 0 if all is well; else the tensors in question on stdout, and exit 1.
#
# Usage: check_before_training.sh PATH...
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n 's/^# \{0,1\}//p' "$0" | tail -n +2 >&2
    exit 2
fi

found=0
for path in "$@"; do
    listing=$(tconv inspect "$path") # a file that cannot be read ends the script here, with the reason on stderr
    if doubles=$(grep -w float64 <<< "$listing"); then
        printf '%s holds float64, where models expect float32:\n%s\n' "$path" "$doubles"
        echo "convert it with: tconv $path --to float32" >&2
        found=1
    fi
done
exit "$found"
