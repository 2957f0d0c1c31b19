#!/bin/bash
# Runs the parts of ./dev check and adds up their counts. Each part calls "count"; a part that breaks counts as a
# failure.
set -uo pipefail

root=$IMGWARD_ROOT
python=$IMGWARD_PYTHON
out=$IMGWARD_VAR/check
counts=$out/counts
# Why tests failed, repeated before the summary: a failure may be thousands of lines above.
reasons=$out/reasons

parts=(
    "deps#check the Debian packages (as root, install them) and the programs from npm"
    "build#compile the programs"
    "unit#run the unit tests of every room (make check)"
    "lint#check layers, format, length of functions, words"
    "api#test the contract over HTTPS, on parallel private stacks"
    "ways#only by name: run the sessions of the guide and the main ways of orders over HTTPS"
    "console#test the web console's API over HTTPS and its pages in Chromium, on two private stacks"
    "sdk#check the types of a client generated from the OpenAPI document, and run it over HTTPS (needs npm)"
    "fault#kill processes, Redis and MariaDB in the middle of orders, on parallel private stacks"
    "rounds#run seeded rounds that break one part each, with every fault point, on a private stack"
    "ops#test installation, monitoring and the commands of doc/operating.md, on a private stack"
    "cluster#stop, kill and isolate the nodes of a site with two of everything (needs ./dev deps cluster)"
    "sanitizers#run the unit tests with AddressSanitizer and UndefinedBehaviorSanitizer"
    "fuzz#run every fuzz target for a few seconds (needs clang)"
    "dist#run make distcheck without git, Python and autotools: build, test, install and clean the tarball"
    "quick#only by name: build, unit, lint and ways, in two minutes"
    "host#only by name: install, use, break, upgrade and remove the service on a booted Debian 12 and 13 (needs ./dev deps host)"
)

# On a terminal, the line of the progress is cleared first.
say() {
    [ ! -t 1 ] || printf '\r\033[K'
    printf '%s\n' "$*"
}

# Adds to the sums: passed, failed, skipped. The sums are in a file, because parts may run in parallel.
count() { printf '%s %d %d %d\n' "$part" "$1" "$2" "${3:-0}" >>"$counts"; }

failures() { awk '{ failed += $3 } END { print failed + 0 }' "$counts"; }

summary() {
    awk '{ printf "  %-11s %4d passed, %d failed, %d skipped\n", $1, $2, $3, $4
           passed += $2; failed += $3; skipped += $4 }
         END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }' "$counts"
}

# Runs a command and counts it as one test.
check_one() {
    if "$@"; then
        count 1 0
    else
        count 0 1
        say "FAILED $part: $*" >>"$reasons"
    fi
}

part_deps() {
    check_one "$root/dev" deps check
    # Without these packages the part "cluster" is skipped.
    "$root/dev" deps cluster || :
    check_one "$root/dev" deps npm
}

part_build() { check_one "$root/dev" build; }

# CUnit's summary has a line "tests  TOTAL RAN PASSED FAILED INACTIVE". A program that died before the summary counts as
# a failure, a program without a summary as a test.
unit_count() {
    local logs trs
    mapfile -t logs < <(find "$1" -maxdepth 1 -name 'test_*.log')
    mapfile -t trs < <(find "$1" -maxdepth 1 -name 'test_*.trs')
    cat "${logs[@]}" "${trs[@]}" /dev/null | awk '
        $1 == "tests" && NF == 6 { tables++; ran += $4; bad += $5 }
        $1 == ":test-result:" { results[$2]++ }
        END {
            broken = results["FAIL"] + results["ERROR"]
            if (bad == 0) bad = broken
            if (tables == 0) ran = results["PASS"]
            print ran + 0, bad + 0, results["SKIP"] + 0
        }'
}

# In a parallel build the compiler's messages can be far above the last lines.
unit_why() {
    grep -m 10 -A 4 -E '(error|warning): ' "$1" || :
    tail -n 60 "$1"
}

unit_run() {
    local tree=$1 numbers code=0
    rm -f "$tree"/test_*.log "$tree"/test_*.trs
    make -s -k -C "$tree" -j"$(nproc)" check >"$out/$part.log" 2>&1 || code=$?
    read -r -a numbers <<<"$(unit_count "$tree")"
    # If make fails without a failed test, the tests did not compile.
    [ $code -eq 0 ] || [ "${numbers[1]}" -gt 0 ] || numbers[1]=1
    [ "${numbers[1]}" -eq 0 ] || { say "FAILED $part" && unit_why "$out/$part.log"; } | tee -a "$reasons"
    count "${numbers[@]}"
}

part_unit() { unit_run "$IMGWARD_BUILD"; }

# Also builds the test programs, so that the part only runs them.
tree_sanitizers() {
    IMGWARD_BUILD=$IMGWARD_BUILD-asan IMGWARD_CONFIGURE=--enable-sanitizers "$root/dev" build &&
        make -s -k -C "$IMGWARD_BUILD-asan" -j"$(nproc)" check TESTS=
}

part_sanitizers() {
    renice -n 10 -p "$BASHPID" >/dev/null
    prefetch_stop sanitizers
    if ! tree_sanitizers >"$out/sanitizers-build.log" 2>&1; then
        { say "FAILED $part" && unit_why "$out/sanitizers-build.log"; } | tee -a "$reasons"
        count 0 1
        return
    fi
    unit_run "$IMGWARD_BUILD-asan"
}

part_lint() {
    local numbers
    "$root/tests/lint.sh" >"$out/lint.log" 2>&1
    cat "$out/lint.log"
    grep -A 10 '^not ok ' "$out/lint.log" >>"$reasons"
    read -r -a numbers <<<"$(awk '/^ok /{p++} /^not ok /{f++} /^skip /{s++} END {print p+0, f+0, s+0}' "$out/lint.log")"
    count "${numbers[@]}"
}

# pytest_session NAME WORD...
# Runs pytest; report, log and stacks are named NAME.
pytest_session() {
    local name=$1
    shift
    rm -f "$out/$name.xml"
    IMGWARD_TEST_VAR=$out/$name "$python" -m pytest -q -p no:cacheprovider --tb=short --junitxml="$out/$name.xml" \
        "$@" 2>&1 | tee "$out/$name.log" | tail -n 80
}

# Lists and counts the results in sessions' reports.
pytest_count() {
    local reports=("${@/#/$out/}")
    reports=("${reports[@]/%/.xml}")
    "$python" "$root/tests/junit.py" "${reports[@]}" >"$out/$part.rules"
    sed '$d' "$out/$part.rules"
    "$python" "$root/tests/junit.py" --why "${reports[@]}" >>"$reasons"
    count $(tail -n 1 "$out/$part.rules")
}

pytest_run() {
    pytest_session "$part" "$@"
    pytest_count "$part"
}

# pytest_files N WORD...
# Tests mostly wait, so N sessions share the files, each with a separate stack.
pytest_files() { pytest_run -n "$1" --dist loadfile "${@:2}"; }

part_api() {
    export IMGWARD_ANSWERS=$out/api-answers
    rm -rf "$IMGWARD_ANSWERS"
    pytest_session api -n 6 --dist loadfile "$root/tests/api"
    # This test needs the responses of all sessions.
    pytest_session api-last "$root/tests/api/test_openapi.py::test_every_documented_answer_was_seen"
    unset IMGWARD_ANSWERS
    pytest_count api api-last
}

part_ways() {
    pytest_run -n 2 --dist loadfile "$root/tests/api/test_guide.py" "$root/tests/api/test_3_3_confirm.py" "$root/tests/api/test_3_watermark.py"
}

# Programs come from tests/npm; without them the tests are skipped.
part_sdk() {
    "$root/dev" deps npm
    pytest_run "$root/tests/sdk"
}

# The rounds are a separate part.
part_fault() { pytest_files 2 "$root/tests/fault" --ignore="$root/tests/fault/test_rounds.py"; }

tree_rounds() { "$python" "$root/tests/fault/rounds.py" --build; }

part_rounds() {
    prefetch_stop rounds
    pytest_run "$root/tests/fault/test_rounds.py"
}

# axe-core comes from tests/npm; the pages need Debian's chromium.
part_console() {
    "$root/dev" deps npm
    pytest_files 2 "$root/tests/console"
}

part_ops() { pytest_files 2 "$root/tests/ops"; }

part_cluster() {
    if [ "$(id -u)" -eq 0 ] && ! "$root/dev" deps cluster >"$out/cluster-deps.log" 2>&1; then
        say "skipped: the packages of ./dev deps cluster cannot be installed"
        count 0 0 "$(grep -c '^def test_' "$root"/tests/cluster/test_*.py | awk -F: '{ n += $NF } END { print n }')"
        return
    fi
    pytest_files 2 "$root/tests/cluster"
}

tree_fuzz() { ! command -v clang >/dev/null || "$root/dev" fuzz --build; }

# The part "unit" repeats inputs that fuzzers found. This part searches for new inputs, three seconds per target.
part_fuzz() {
    local code=0 targets
    targets=$(find "$root/tests/fuzz" -name 'fuzz_*.c' | wc -l)
    if ! command -v clang >/dev/null; then
        say "skipped: clang is not installed"
        count 0 0 "$targets"
        return
    fi
    prefetch_stop fuzz
    "$root/dev" fuzz --seconds 3 --jobs 2 >"$out/fuzz.log" 2>&1 || code=$?
    [ $code -eq 0 ] || { say "FAILED $part" && tail -n 60 "$out/fuzz.log"; } | tee -a "$reasons"
    local bad
    bad=$(grep -c 'found something' "$out/fuzz.log")
    [ $code -eq 0 ] || [ "$bad" -gt 0 ] || bad=$targets
    count $((targets - bad)) "$bad"
}

part_dist() {
    renice -n 10 -p "$BASHPID" >/dev/null
    check_one dist_check
}

# Links all programs of this machine except git, Python and the autotools: a release tarball must build with them.
tools_make() {
    rm -rf "$1" && mkdir -p "$1"
    find /sbin/ /bin/ /usr/sbin/ /usr/bin/ -maxdepth 1 ! -type d |
        grep -vE '/(git[^/]*|python[^/]*|auto[^/]*|aclocal[^/]*|libtool[^/]*|ifnames|m4)$' | xargs ln -sf -t "$1"
}

dist_check() {
    tools_make "$out/tools"
    if PATH=$out/tools command -v git python3 autoconf automake aclocal m4; then
        say "git, Python or an autotool is still in the PATH"
        return 1
    fi
    env -u PYTHON PATH="$out/tools" make -s -C "$IMGWARD_BUILD" -j"$(nproc)" distcheck >"$out/dist.log" 2>&1 && return
    tail -n 40 "$out/dist.log"
    return 1
}

# Boots machines, so it runs only if it is named. SUITES selects some: SUITES=bookworm ./dev check host.
part_host() {
    local suite code numbers
    [ "$(id -u)" -ne 0 ] || "$root/dev" deps host
    for suite in ${SUITES:-bookworm trixie}; do
        "$root/packaging/test-host" "$suite" 2>&1 | tee "$out/host-$suite.log"
        code=${PIPESTATUS[0]}
        numbers=$(tail -n 1 "$out/host-$suite.log" | sed -nE 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p')
        grep -A 12 '^NOT OK ' "$out/host-$suite.log" >>"$reasons"
        if [ "$code" -eq 77 ]; then count 0 0 1; else count ${numbers:-0 1}; fi
    done
}

parts_list() {
    local line
    for line in "${parts[@]}"; do printf '  %-11s %s\n' "${line%%#*}" "${line#*#}"; done
}

part_is_wanted() { [[ ($wanted == "  " && $1 != @(host|quick|ways)) || $wanted == *" $1 "* ]]; }

# The parts of a group run in parallel, each with separate stacks, because most of them wait. "sanitizers" and "dist" compute
# at low priority. The output is printed one part after the other.
groups=("unit lint ways" "api sdk" "fault rounds ops console" "cluster sanitizers dist")

# Runs the wanted parts of a group.
parts_parallel() {
    local running=() waited=()
    for part in $1; do
        if part_is_wanted "$part"; then
            part_run >"$out/$part.out" 2>&1 &
            running+=("$part")
            waited+=($!)
        fi
    done
    [ ${#waited[@]} -gt 0 ] || return 0 # "wait" without a process waits for all of them
    wait "${waited[@]}"
    [ ! -t 1 ] || printf '\r\033[K'
    for part in "${running[@]}"; do cat "$out/$part.out"; done
}

# Prints the group that a part begins; "-" for another part of a group.
group_of() {
    local group
    for group in "${groups[@]}"; do
        [[ " $group " != *" $1 "* ]] || { [ "${group%% *}" = "$1" ] && printf '%s' "$group" || printf -- '-'; }
    done
}

# Trees of later parts, in the order of their use. They are built one after the other at low priority, while earlier parts
# mostly wait. A part stops the build of its tree and continues it itself, so that it reports each failure.
trees=(rounds sanitizers fuzz)

prefetch_start() {
    local tree before=
    for tree in "${trees[@]}"; do
        part_is_wanted "$tree" || continue
        # Each build has a process group, which can be stopped as a whole.
        set -m
        {
            echo "$BASHPID" >"$out/$tree-prefetch.pid"
            renice -n 19 -p "$BASHPID" >/dev/null
            [ -z "$before" ] || tail --pid="$before" -f /dev/null
            "tree_$tree"
            rm -f "$out/$tree-prefetch.pid"
        } </dev/null >"$out/$tree-prefetch.log" 2>&1 &
        set +m
        before=$!
        disown
    done
}

# Stops the builds of the named trees, or of all trees.
prefetch_stop() {
    local tree file pid
    [ $# -gt 0 ] || set -- "${trees[@]}"
    for tree in "$@"; do
        file=$out/$tree-prefetch.pid
        [ -f "$file" ] || continue
        pid=$(cat "$file")
        rm -f "$file"
        while kill -TERM -- "-$pid" 2>/dev/null; do sleep 0.1; done
    done
}

part_run() {
    local begin=$SECONDS
    say "== $part"
    rm -f "$out/$part.log"
    : >"$out/$part.running"
    "part_$part"
    rm -f "$out/$part.running"
    say "== $part took $((SECONDS - begin)) s"
}

# Prints the running parts every five seconds, with the share of tests that pytest names. A terminal shows one line.
progress_start() {
    local file name share text
    rm -f "$out"/*.running
    while sleep 5 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
        text=
        for file in "$out"/*.running; do
            [ -e "$file" ] || continue
            name=$(basename "$file" .running)
            share=$(grep -aoE '[0-9]+%' "$out/$name.log" 2>/dev/null | tail -n 1)
            text+="${text:+, }$name${share:+ $share}"
        done
        [ -z "$text" ] || if [ -t 1 ]; then printf '\r\033[K   %d s: %s' $SECONDS "$text"; else say "   $SECONDS s: $text"; fi
    done
}

main() {
    local line wanted=" $* " part group
    if [ "${1:-}" = --list ]; then
        parts_list
        return
    fi
    for part in "$@"; do
        [[ " ${parts[*]%%#*} " == *" $part "* ]] || { say "check: unknown part \"$part\""; parts_list; exit 2; }
    done
    wanted=${wanted/ quick / build unit lint ways }
    # The part "rounds" belongs to "fault".
    if [[ $wanted == *" fault "* ]]; then wanted+="rounds "; fi
    mkdir -p "$out"
    : >"$counts"
    : >"$reasons"
    progress_start &
    progress=$!
    trap 'prefetch_stop; kill $progress 2>/dev/null' EXIT
    rm -f "$out"/*-prefetch.pid
    for line in "${parts[@]}"; do
        part=${line%%#*}
        group=$(group_of "$part")
        case $group in
        "") if part_is_wanted "$part"; then part_run; fi ;;
        -) ;;
        *) parts_parallel "$group" ;;
        esac
        # Without a build, further parts would only fail.
        if [ "$part" = build ] && [ "$(failures)" -gt 0 ]; then break; fi
        # If only one part is named, there is no earlier part during which its tree could be built.
        if [ "$part" = build ] && [ $# -ne 1 ]; then prefetch_start; fi
    done
    [ ! -s "$reasons" ] || { say "== failures" && cat "$reasons"; }
    say "in $SECONDS s:"
    summary
    [ "$(failures)" -eq 0 ]
}

main "$@"
