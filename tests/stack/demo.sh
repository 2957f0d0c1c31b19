#!/bin/bash
# ./dev demo [--keep] [PICTURE...]: starts a stack and protects pictures.
set -euo pipefail

root=$IMGWARD_ROOT
keep=no
if [ "${1:-}" = --keep ]; then
    keep=yes
    shift
fi
pictures=()
for picture in "$@"; do
    [ -r "$picture" ] || { echo "demo: $picture cannot be read" >&2; exit 1; }
    pictures+=("$(realpath "$picture")")
done

step() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

step "packages"
mkdir -p "$IMGWARD_VAR/demo"
if ! "$root/dev" deps run >"$IMGWARD_VAR/demo/deps.log" 2>&1; then
    tail -n 5 "$IMGWARD_VAR/demo/deps.log" >&2
    exit 1
fi
tail -n 1 "$IMGWARD_VAR/demo/deps.log"

step "build"
if ! "$root/dev" build >"$IMGWARD_VAR/demo/build.log" 2>&1; then
    tail -n 30 "$IMGWARD_VAR/demo/build.log" >&2
    exit 1
fi
tail -n 1 "$IMGWARD_VAR/demo/build.log"

step "a private stack"
"$root/dev" down >/dev/null
"$root/dev" up
[ $keep = yes ] || trap '"$root/dev" down' EXIT

step "orders"
IMGWARD_ENV=$IMGWARD_VAR/dev.env "$IMGWARD_PYTHON" "$root/tests/stack/demo.py" "$IMGWARD_VAR/demo" "${pictures[@]}"

if [ $keep = yes ]; then
    . "$IMGWARD_VAR/dev.env"
    cat <<TEXT

The web console: $IMGWARD_CONSOLE_URL
  user $IMGWARD_CONSOLE_USER, password $IMGWARD_CONSOLE_PASSWORD
The stack keeps running.  In another shell:
  . $IMGWARD_VAR/dev.env
  curl --cacert \$IMGWARD_CA -H "Authorization: Bearer \$IMGWARD_KEY_ENTERPRISE" \$IMGWARD_URL/api/v2/orders
./dev down stops it.
TEXT
else
    printf '\nNext: ./dev demo --keep YOUR.jpg keeps the stack running; ./dev check runs every test.\n'
fi
