#!/usr/bin/env bash
# Before a night of training: can every file be read, is every value finite, and does float64 hide in one of them?
# Exit 0 if all is well; else what is not on stdout, tensor by tensor, and exit 1; exit 2 if a file cannot be read.
#
# Usage: check_before_training.sh PATH...
set -euo pipefail

if [ $# -lt 1 ]; then
    sed -n 's/^# \{0,1\}//p' "$0" | tail -n +2 >&2
    exit 2
fi

models_take=float32,float16,bfloat16,bool,uint8,int8,uint16,int16,int32,int64
exec tconv check "$@" --finite --expect "$models_take"
