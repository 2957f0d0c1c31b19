#!/bin/bash
# ./dev fuzz [SECONDS]: libFuzzer with AddressSanitizer and UBSan on the parsers
# of untrusted bytes, SECONDS for each (60).  What is found stays in
# $IMGWARD_VAR/fuzz with the inputs that reached new code.
set -euo pipefail

root=$IMGWARD_ROOT
seconds=${1:-60}
tree=$root/build-fuzz
work=$IMGWARD_VAR/fuzz
flags='-g -O1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined'

[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "fuzz: how many seconds?" >&2; exit 2; }
command -v clang >/dev/null || { echo "fuzz: clang is missing; ./dev deps lint"; exit 1; }

mkdir -p "$tree" "$work"
[ -x "$root/configure" ] || (cd "$root" && autoreconf -i)
cd "$tree"
[ -f Makefile ] || "$root/configure" -q CC=clang CFLAGS="$flags" LDFLAGS=-fsanitize=address,undefined
libraries=(libcodec.a libengine.a libservice.a libbase.a)
make -s -j"$(nproc)" "${libraries[@]}"

# The libraries of the Makefile, so that no list of them is kept twice.
linked=$(make -s -f - print <<'MAKE'
include Makefile
print:
	@echo $(CODEC_LIBS) $(SERVICE_LIBS) $(ENGINE_LIBS) $(BASE_LIBS) $(SECCOMP_LIBS)
MAKE
)

seeds_make() {
    mkdir -p "$work/seeds-fuzz_codec" "$work/seeds-fuzz_json" "$work/seeds-fuzz_filekey"
    PYTHONPATH=$root/tests/api "$IMGWARD_PYTHON" - "$work/seeds-fuzz_codec" <<'PYTHON'
import pathlib, sys
import pictures
folder = pathlib.Path(sys.argv[1])
for form in ("JPEG", "PNG", "WEBP"):
    for mode in ("RGB", "L", "RGBA", "P"):
        if form != "PNG" and mode in ("P",) or form == "JPEG" and mode == "RGBA":
            continue
        (folder / f"{form}-{mode}").write_bytes(pictures.encode(pictures.scene(48, 32).convert(mode), form))
PYTHON
    printf '{"idempotencyKey":"k","files":[{"fileName":"a.jpg"}],"mode":{"zeroCopy":true},"n":[1,-2.5e3,null]}' >"$work/seeds-fuzz_json/one"
    printf 'in/382515091307376618/1' >"$work/seeds-fuzz_filekey/one"
    printf 'out/382515091307376618/12' >"$work/seeds-fuzz_filekey/two"
}

seeds_make
code=0
for source in "$root"/tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    clang $flags -fsanitize=fuzzer -I"$root/include" -I"$root/src" -o "$name" "$source" $linked
    mkdir -p "$work/$name"
    echo "== $name, $seconds s"
    if "./$name" -max_total_time="$seconds" -max_len=65536 -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$work/$name-" "$work/$name" "$work/seeds-$name" >"$work/$name.log" 2>&1; then
        grep -E 'number_of_executed_units|new_units_added' "$work/$name.log"
    else
        code=1
        tail -n 40 "$work/$name.log"
    fi
done
exit $code
