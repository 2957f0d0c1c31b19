#!/bin/bash
# Runs tests/bench/watermark with the built imgwardctl if its programs and pictures are installed.
set -euo pipefail

root=$IMGWARD_ROOT
if ! "$IMGWARD_PYTHON" -c 'import cv2, skimage' 2>/dev/null; then
    echo "bench watermark: skipped: python3-opencv or python3-skimage is missing (./dev deps bench)"
    exit
fi
if [ ! -d "$root/tests/bench/pictures" ]; then
    echo "bench watermark: skipped: there are no pictures in tests/bench/pictures (a release tarball has none)"
    exit
fi
make -s -C "$IMGWARD_BUILD" watermark_serve watermark_speed >/dev/null # test programs, which a plain build leaves out
if [ "${1:-}" = --forging ]; then
    exec "$IMGWARD_PYTHON" "$root/tests/bench/watermark_forging" --serve "$IMGWARD_BUILD/watermark_serve" "${@:2}"
elif [ "${1:-}" = --growth ]; then
    exec "$IMGWARD_PYTHON" "$root/tests/bench/watermark_growth" --ctl "$IMGWARD_BUILD/imgwardctl" "${@:2}"
else
    exec "$IMGWARD_PYTHON" "$root/tests/bench/watermark" --ctl "$IMGWARD_BUILD/imgwardctl" "$@"
fi
