#!/bin/bash
# ./dev fuzz [OPTIONS] [TARGET...]: builds every target with libFuzzer,
# AddressSanitizer and UBSan in build-fuzz/, then lets tests/fuzz/run.py run them.
set -euo pipefail

root=$IMGWARD_ROOT
tree=$root/build-fuzz
here=$root/tests/fuzz
flags='-gline-tables-only -O2 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined'

command -v clang >/dev/null || { echo "fuzz: clang is missing; ./dev deps lint"; exit 3; }

[ -x "$root/configure" ] || (cd "$root" && autoreconf -i)
mkdir -p "$tree"
cd "$tree"
[ -f Makefile ] || "$root/configure" -q CC=clang CFLAGS="$flags" LDFLAGS=-fsanitize=address,undefined
make -s -j"$(nproc)" libhttp.a libapi.a libdomain.a libstore.a libcodec.a libengine.a libservice.a libbase.a

# The libraries of the Makefile, so that no list of them is kept twice.
linked=$(make -s -f - print <<'MAKE'
include Makefile
print:
	@echo libhttp.a libapi.a libhttp.a $(DOMAIN_LIBS) $(STORE_LIBS) $(DOMAIN_LIBS) $(CODEC_LIBS) $(SERVICE_LIBS) $(ENGINE_LIBS) $(BASE_LIBS) $(FCGI_LIBS)
MAKE
)

# The rest of the flags that the sources of a target need beside those of the rooms.
sources_of() {
    case $1 in
    fuzz_body | fuzz_query | fuzz_path | fuzz_fastcgi) echo "$here/http_harness.c $here/memory_store.c -Wl,--wrap=write" ;;
    fuzz_png) echo "$here/codec_harness.c $here/png_mutator.c" ;;
    # The extractor searches for long: its engine is built quick, without a call at every comparison.
    fuzz_watermark) echo "$root"/src/engine/*.c -O3 -fno-math-errno -fno-sanitize-coverage=trace-cmp -fno-sanitize=undefined ;;
    fuzz_jpeg | fuzz_webp) echo "$here/codec_harness.c" ;;
    esac
}

for source in "$here"/fuzz_*.c; do
    name=$(basename "$source" .c)
    [ "$name" -nt libengine.a ] && [ "$name" -nt libapi.a ] && [ "$name" -nt libcodec.a ] && [ "$name" -nt libbase.a ] &&
        [ "$name" -nt libhttp.a ] && [ "$name" -nt libservice.a ] && [ "$name" -nt libdomain.a ] &&
        [ -z "$(find "$here" -maxdepth 1 -name '*.[ch]' -newer "$name")" ] && continue
    clang $flags -fsanitize=fuzzer -D_GNU_SOURCE -DFUZZ_TARGET="$name" -I"$root/include" -I"$root/src" -I"$tree" -I"$here" \
        -o "$name.new" "$here/entry.c" "$source" $(sources_of "$name") $linked
    mv "$name.new" "$name"
done
exec "$IMGWARD_PYTHON" "$here/run.py" "$@"
