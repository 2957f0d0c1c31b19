#!/bin/bash
# ./dev bench [PART...]: every part is a program of its own beside this one.
set -uo pipefail

root=$IMGWARD_ROOT
parts=(api watermark protect images)

# A part's program: NAME.py or NAME.sh; one that is not there yet says so.
bench_run() {
    local program=$root/tests/bench/$1
    if [ -f "$program.py" ]; then
        "$IMGWARD_PYTHON" "$program.py"
    elif [ -f "$program.sh" ]; then
        "$program.sh"
    else
        echo "bench $1: there is no such measurement yet"
    fi
}

code=0
[ $# -gt 0 ] || set -- "${parts[@]}"
for part in "$@"; do
    [[ " ${parts[*]} " == *" $part "* ]] || { echo "bench: there is no part \"$part\"; the parts are ${parts[*]}" >&2; exit 2; }
    bench_run "$part" || code=1
done
exit $code
