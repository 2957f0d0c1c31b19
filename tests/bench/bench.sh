#!/bin/bash
# ./dev bench [PART [OPTIONS]]: each part is a program in this folder.
set -uo pipefail

root=$IMGWARD_ROOT
parts=(api watermark protect images load lists host)

# Runs a part's program, NAME.sh or NAME.py; an unknown part is an error.
bench_run() {
    local name=$1 program=$root/tests/bench/$1
    shift
    echo "== bench $name"
    if [ -f "$program.sh" ]; then
        "$program.sh" "$@"
    elif [ -f "$program.py" ]; then
        (cd "$root" && "$IMGWARD_PYTHON" "$program.py" "$@")
    else
        echo "bench $name: unknown measurement"
    fi
}

code=0
if [ $# -eq 0 ]; then
    for part in "${parts[@]}"; do bench_run "$part" || code=1; done
    exit $code
fi
if [[ " ${parts[*]} " != *" $1 "* ]]; then
    echo "bench: unknown part \"$1\"; the parts are ${parts[*]}" >&2
    exit 2
fi
bench_run "$@"
