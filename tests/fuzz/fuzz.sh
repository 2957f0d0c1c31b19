#!/bin/bash
# ./dev fuzz [OPTIONS] [TARGET...]: builds every target with libFuzzer, AddressSanitizer and UBSan in build-fuzz/,
# then runs them with tests/fuzz/run.py.
set -euo pipefail

root=$IMGWARD_ROOT
tree=$root/build-fuzz
here=$root/tests/fuzz
# clang 14 does not define __SANITIZE_ADDRESS__, with which the engine allocates each piece separately.
flags='-DENGINE_PIECES_ALONE -gline-tables-only -O2 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined'

case ${1:-} in
--add) exec "$here/corpus.sh" add "${@:2}" ;;
esac
command -v clang >/dev/null || { echo "fuzz: clang is missing; ./dev deps check"; exit 3; }

[ -x "$root/configure" ] || (cd "$root" && autoreconf -i)
mkdir -p "$tree"
cd "$tree"
if [ ! -f .configured ]; then
    "$root/configure" -q CC=clang CFLAGS="$flags" LDFLAGS=-fsanitize=address,undefined
    touch .configured
fi
make -s -j"$(nproc)" libhttp.a libapi.a libdomain.a libdb.a libsearch.a libcodec.a libengine.a libservice.a libmodel.a libbase.a

# The libraries come from the Makefile, so that there is no second list.
linked=$(make -s -f - print <<'MAKE'
include Makefile
print:
	@echo $(FUZZ_LIBS)
MAKE
)

# Further compiler flags for the sources of a target.
sources_of() {
    case $1 in
    fuzz_body | fuzz_query | fuzz_path | fuzz_fastcgi) echo "$here/http_harness.c $here/memory_db.c -Wl,--wrap=write" ;;
    fuzz_png) echo "$here/codec_harness.c $here/png_mutator.c" ;;
    # The extractor is slow, so its engine is optimised and has no coverage callback at comparisons.
    fuzz_watermark) echo "$root"/src/engine/*.c "$root"/src/engine/watermark/*.c -O3 -fno-math-errno -fno-sanitize-coverage=trace-cmp -fno-sanitize=undefined ;;
    fuzz_jpeg | fuzz_webp | fuzz_reading) echo "$here/codec_harness.c" ;;
    esac
}

target_is_built() {
    [ "$1" -nt libengine.a ] && [ "$1" -nt libdb.a ] && [ "$1" -nt libapi.a ] && [ "$1" -nt libcodec.a ] && [ "$1" -nt libbase.a ] &&
        [ "$1" -nt libhttp.a ] && [ "$1" -nt libservice.a ] && [ "$1" -nt libdomain.a ] && [ "$1" -nt libmodel.a ] && [ "$1" -nt libsearch.a ] &&
        [ -z "$(find "$here" -maxdepth 1 -name '*.[ch]' -newer "$1")" ]
}

target_build() {
    clang $flags -fsanitize=fuzzer -D_GNU_SOURCE -DFUZZ_TARGET="$1" -I"$root/include" -I"$root/src" -I"$tree" -I"$here" \
        -o "$1.new" "$here/entry.c" "$here/$1.c" $(sources_of "$1") $linked
    mv "$1.new" "$1"
}

# As many builds run in parallel as there are processors.
building=0
for source in "$here"/fuzz_*.c; do
    name=$(basename "$source" .c)
    target_is_built "$name" && continue
    if [ $building -eq "$(nproc)" ]; then
        wait -n
        building=$((building - 1))
    fi
    target_build "$name" &
    building=$((building + 1))
done
for ((; building > 0; building--)); do wait -n; done
"$here/corpus.sh" unpack corpus
[ "${1:-}" != --build ] || exit 0
exec "$IMGWARD_PYTHON" "$here/run.py" "$@"
