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
    [[ ${pictures[-1]} != "$IMGWARD_VAR/demo/"* ]] || { echo "demo: move $picture out of $IMGWARD_VAR/demo, which is emptied" >&2; exit 1; }
done

step() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

# logged LOG WORDS COMMAND...: runs a command with its output in a log, and every five seconds says WORDS and how many
# lines of the log match the pattern PATTERN so far.
logged() {
    local log=$1 words=$2 pattern=$3 begin=$SECONDS pid code=0
    shift 3
    # A process group, so that Ctrl-C ends it, too.
    set -m
    "$@" </dev/null >"$log" 2>&1 &
    pid=$!
    set +m
    trap 'kill -- "-$pid" 2>/dev/null' EXIT
    while sleep 1 && kill -0 $pid 2>/dev/null; do
        [ $(((SECONDS - begin) % 5)) -ne 0 ] || echo "  $((SECONDS - begin)) s: $(grep -cE "$pattern" "$log") $words"
    done
    wait $pid || code=$?
    trap - EXIT
    [ $code -eq 0 ] || tail -n 30 "$log" >&2
    return $code
}

echo "This takes about two minutes on two cores, and one more if packages must be installed."
step "packages"
rm -rf "$IMGWARD_VAR/demo"
mkdir -p "$IMGWARD_VAR/demo"
logged "$IMGWARD_VAR/demo/deps.log" "packages set up" '^Setting up ' "$root/dev" deps run
tail -n 1 "$IMGWARD_VAR/demo/deps.log"

step "build"
sources=$(find "$root/src" -name '*.c' | wc -l)
logged "$IMGWARD_VAR/demo/build.log" "of about $sources files compiled" '^  CC ' "$root/dev" build
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
  export IMGWARD_URL IMGWARD_CA IMGWARD_KEY=\$IMGWARD_KEY_ENTERPRISE
  sh $root/doc/examples/protect.sh YOUR.jpg
./dev down stops it.
TEXT
else
    printf '\nNext: ./dev demo --keep YOUR.jpg keeps the stack running; ./dev check runs every test.\n'
fi
