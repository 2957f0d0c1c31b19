#!/bin/bash
# Runs tests/bench/protect.py with the weights of the checkout.
set -euo pipefail

exec "$IMGWARD_PYTHON" "$IMGWARD_ROOT/tests/bench/protect.py" --ctl "$IMGWARD_BUILD/imgwardctl" \
    --weights "$IMGWARD_ROOT/data/protect.weights" "$@"
