#!/bin/bash
# Checks the rules of doc/architecture.md that a script can check. A rule is a function that prints each violation. A
# line that begins with "skip:" has the reason why the rule could not run.
set -uo pipefail

root=$IMGWARD_ROOT
build=$IMGWARD_BUILD
cd "$root" || exit 1

rules=(
    "sql_in_db#SQL text stands only under src/db/"
    "driver_headers#a driver's header is included only by its driver file"
    "image_headers#image libraries are included only by the codecs and the thumbnails of src/codec/"
    "engine_includes#engines include libc, libm, FFTW, their own headers and the list of errors"
    "engine_pure#engines do no I/O, read no clock, make no randomness, write no log"
    "http_words#the domain knows no HTTP, no JSON, no SQL driver"
    "edges_call_domain#src/api and src/http reach database and service through the domain"
    "api_links#imgward-api and imgward-worker link no image library"
    "image_links#imgward-image links no database, no Redis, no network library"
    "link_once#each link line names each library once"
    "layers#each room includes and calls only the rooms below it"
    "floors#each folder of a room includes and calls only the folders below it"
    "prefix#the name of a function or table of src/codec, src/ctl, src/engine and src/image that other files see begins with its file's"
    "parameters#no function outside engine, codec and protect_picture has more than six parameters"
    "config_keys_read#every key of src/base/config.c is read outside it"
    "no_unused_functions#every exported function of src/ is called from another file of a program"
    "no_circles#no files call or include each other in circles; only the files of an engine may include each other"
    "struct_names#a struct's name means one thing in all of src/"
    "shadowed#no static function has the name of an exported one"
    "no_goto#there is no goto"
    "transaction_bodies#the loop of a transaction has no return, goto or break: they would leave it open"
    "reasons_written#a reason is for logs and metrics: no code compares it"
    "not_found_fails#in src/domain and src/db, IW_NOT_FOUND is the code of a failure and no step of control flow"
    "columns_in_order#an expression reads at most one column of a row"
    "no_typedef_struct#structs have no typedef"
    "function_length#no function is over 80 lines"
    "format#clang-format agrees"
    "headers_alone#every header compiles alone"
    "no_machine_paths#no file names a path of the machine it was written on"
    "one_version#configure.ac has the release's version, NEWS.md and debian/changelog agree, nothing else names it"
    "packages_used#every Debian package of ./dev is one that something here needs"
    "plain_words#documents, comments and messages are plain technical English (tests/prose.py)"
    "migrations_add#a migration takes no column, table or name away: the previous release goes on with the new schema"
    "unit_mirror#each unit test is in the folder of the source that it names: the test of src/a/b.c is tests/unit/a/test_b.c"
    "formats#the OpenAPI document, the database and the configuration have the formats of src/model/format.c"
    "headers_shipped#every header and every migration is in the release tarball"
    "console_texts#the console's texts have one line each, are complete in each language and used"
    "console_weight#the console's first load is at most 80 kB compressed"
    "console_lines#lines of the console's scripts and style sheet have at most 120 columns"
    "console_files#the console's files are installed, vendored files unchanged, and no other host is named"
    "commit_subjects#the subjects of the branch's commits have at most 72 characters"
    "tools_shipped#every program of tools/ is in the release tarball"
)

# These rules take minutes and only run if they are named.
slow_rules=(
    "analyzer#gcc -fanalyzer finds nothing"
    "tidy#clang-tidy finds nothing (clang-analyzer and bugprone checks)"
    "valgrind#the unit tests run clean under valgrind"
)

sources() { find src tests/unit tests/fuzz -name '*.[ch]' | sort; }
production() { find src -name '*.[ch]' | sort; }

# Prints lines of code without comments as "file:line:text", so that words in comments are no violation.
code_lines() {
    xargs -r awk '
        FNR == 1 { inside = 0 }
        {
            text = $0
            if (inside) { at = index(text, "*/"); if (!at) next; text = substr(text, at + 2); inside = 0 }
            while ((from = index(text, "/*")) > 0) {
                rest = substr(text, from + 2); to = index(rest, "*/")
                if (!to) { text = substr(text, 1, from - 1); inside = 1; break }
                text = substr(text, 1, from - 1) substr(rest, to + 2)
            }
            print FILENAME ":" FNR ":" text
        }'
}

# Prints files that include a header matching $1, except files of the pattern $2.
included_outside() {
    production | xargs grep -nE "^#include <($1)>" | grep -vE "^($2):"
}

rule_sql_in_db() {
    production | grep -v '^src/db/' | code_lines |
        grep -E '"[^"]*\b(SELECT [^"]*( FROM|\()|INSERT INTO|UPDATE [a-z_]+ SET|DELETE FROM|CREATE TABLE|REPLACE INTO)'
}

rule_driver_headers() {
    included_outside 'openssl/.*' 'src/base/crypto\.[ch]'
    included_outside '(mariadb/)?(mysql|errmsg|mysqld_error).*' 'src/db/db(_hosts)?\.c'
    included_outside 'hiredis/.*' 'src/service/redis/redis\.[ch]'
    included_outside 'curl/.*' 'src/service/net/(fetch|netguard|s3|smtp)\.[ch]'
    included_outside 'jansson\.h' 'src/base/json\.[ch]'
    included_outside 'utf8proc\.h' 'src/(service/(files/name|secret/typed)|search/search)\.c'
    included_outside 'zlib\.h' 'src/(service/files/zip|codec/(png|metadata/png_text))\.[ch]'
    included_outside 'sodium\.h' 'src/service/secret/password\.c'
    included_outside 'liboath/.*' 'src/service/secret/totp\.c'
    included_outside 'ini\.h' 'src/base/config\.c'
    included_outside '(fcgi.*|fcgiapp)\.h' 'src/http/[a-z_]+\.[ch]'
    included_outside 'seccomp\.h' 'src/image/seal\.[ch]'
}

rule_image_headers() {
    included_outside '(jpeglib|jerror|jmorecfg|png|lcms2)\.h|webp/.*' 'src/codec/(cmyk|color|conversion|jpeg|png|preview|space|thumbnail|webp)\.[ch]'
}

rule_engine_includes() {
    find src/engine -name '*.[ch]' | xargs grep -nE '^#include' |
        grep -vE '<(assert|complex|ctype|errno|float|inttypes|limits|math|stdalign|stdbool|stddef|stdint|stdlib|string|fftw3|immintrin|emmintrin|tgmath)\.h>|"engine/|"base/error\.h"|<stdarg\.h>|<std(atomic|noreturn)\.h>'
}

rule_engine_pure() {
    find src/engine -name '*.[ch]' | sort | code_lines |
        grep -E '\b(fopen|open|read|write|printf|fprintf|puts|time|clock_gettime|clock|rand|srand|random|getenv|log_[a-z]+|socket|system)\(' |
        grep -vE 'src/engine/watermark/(bits?|soft)[a-z_]*\.[ch].*_(read|write)\('
}

rule_http_words() {
    find src/domain -name '*.[ch]' 2>/dev/null | xargs -r grep -nE '#include "(http|api|worker|ctl)/|#include "base/json\.h"|#include <(jansson|fcgi)'
}

# The API uses no header of the database or of a service, and calls no function of the database. child.c is excepted, because
# it opens the handles of a process.
rule_edges_call_domain() {
    local names
    find src/api -name '*.[ch]' | xargs grep -nE '#include "(db|service)/'
    find src/http -name '*.[ch]' | grep -vE '/child\.c$' | xargs grep -nE '#include "db/'
    names=$(cat src/db/*.h | grep -oE '\b[a-z_]+\(' | sort -u | grep -vE '^(db_|static|void|bool)' | tr -d '(' | paste -sd'|')
    find src/api src/http -name '*.c' | grep -vE '/child\.c$' | sort | code_lines | grep -E "\b($names)\("
}

# Prints the libraries that a program is linked with.
needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }

linked_to() {
    local program=$build/$1
    if [ -x "$program" ]; then
        ldd "$program" | awk '{print $1}' | grep -E "^lib($2)"
    else
        echo "skip: $1 is not built"
    fi
}

rule_api_links() {
    local program
    for program in imgward-api imgward-worker; do linked_to "$program" 'jpeg|png|webp|lcms|fftw'; done
}
rule_image_links() { linked_to imgward-image 'mariadb|mysql|hiredis|curl|fcgi|utf8proc'; }

# Prints the link lines as make expands them, "NAME_LDADD = ...".
link_lines() {
    local names
    names=$(sed -nE 's/^([A-Za-z_]+_LDADD) = .*/\1/p' "$build/Makefile" | sort -u)
    (cd "$build" && printf 'include Makefile\nlink_lines:\n\t@:\n%s\n' \
        "$(for name in $names; do printf '$(info %s = $(%s))\n' "$name" "$name"; done)" | make -s -f - link_lines)
}

rule_link_once() {
    [ -f "$build/Makefile" ] || { echo "skip: nothing is configured"; return; }
    link_lines | awk '{
        split("", seen)
        for (i = 3; i <= NF; i++)
            if ($i ~ /^(lib.*\.a|-l.*)$/ && seen[$i]++ == 1)
                print $1 ": " $i " stands there twice"
    }'
}

# The rooms that a room may include and call.  A room's library is lib<room>.a; image has two.
layers="
base: base
model: model base
search: search base
service: service model base
db: db search model base
engine: engine base
codec: codec engine model base
image: image codec engine model base
domain: domain db search service model base
http: http domain db service model base
api: api http domain service model base
console: console api http domain db service model base
worker: worker image engine domain db service model base
ctl: ctl image codec engine domain db service model base
"

allowed_of() { sed -n "s/^$1: //p" <<<"$layers"; }

room_of() { basename "$1" .a | sed 's/^lib//; s/client$//'; }

# Checks includes by header, and calls by the symbols of the libraries: a call needs no header when it is declared in
# place. main.c of a program may use any room.
rule_layers() {
    local room rooms library
    find src -name '*.[ch]' ! -name main.c | sort | while read -r file; do
        room=$(cut -d/ -f2 <<<"$file")
        rooms=$(allowed_of "$room" | tr ' ' '|')
        grep -nE '^#include "[a-z]+/' "$file" | grep -vE "#include \"($rooms)/" | sed "s#^#$file:#"
    done
    ls "$build"/lib*.a >/dev/null 2>&1 || { echo "nothing is built: no symbols to look at"; return; }
    for library in "$build"/lib*.a; do
        room=$(room_of "$library")
        grep -q "^${library##*/}:" "$build/Makefile" || continue # left by an earlier Makefile
        [ "$room" = unit ] || nm -A "$library" 2>/dev/null | sed "s#^[^ ]*:\([^:]*\.o\):#$room \1 #"
    done | awk -v layers="$layers" '
        BEGIN {
            count = split(layers, lines, "\n")
            for (i = 1; i <= count; i++) {
                n = split(lines[i], words, "[: ]+")
                for (j = 2; j <= n; j++) allowed[words[1], words[j]] = 1
            }
        }
        $(NF - 1) == "U" { used[$1 " " $2 " " $NF] = 1; next }
        $(NF - 1) ~ /^[TDBRCVW]$/ { defined[$NF] = defined[$NF] " " $1 }
        END {
            for (key in used) {
                split(key, word, " ")
                n = split(defined[word[3]], rooms, " ")
                good = n == 0
                for (i = 1; i <= n; i++) good = good || (word[1], rooms[i]) in allowed
                if (!good) print word[1] "/" word[2] " uses " word[3] " of" defined[word[3]]
            }
        }' | sort
}

# The folders of a room, from the lowest up; "." stands for the room's own files.
floors="
codec: metadata .
domain: . people accounts webhooks orders files
service: secret redis net files
"

# Prints includes and calls within a room as lines "FROM TO".
rule_floors() {
    local room folders
    [ -f "$build/src/worker/work.o" ] || { echo "skip: nothing is built"; return; }
    while IFS=': ' read -r room folders; do
        [ -n "$room" ] || continue
        {
            grep -roE --include='*.[ch]' "^#include \"$room/[a-z_/]+\.h\"" "src/$room" | sed -E 's,:#include "(.*)", src/\1,'
            "$IMGWARD_PYTHON" tests/circles.py --edges "src/$room" "$build" | sed -E 's/ -> ([^:]*):.*/ \1/'
        } | awk -v room="src/$room/" -v folders="$folders" '
            BEGIN { count = split(folders, names, " "); for (i = 1; i <= count; i++) rank[names[i]] = i }
            function folder(path) { path = substr(path, length(room) + 1); return path ~ /\// ? substr(path, 1, index(path, "/") - 1) : "." }
            {
                from = folder($1); to = folder($2)
                if (!(from in rank)) print room from " is not in the list of tests/lint.sh"
                else if (rank[from] < rank[to]) print $1 " uses " $2
            }' | sort -u
    done <<<"$floors"
}

# Names that libraries require.
foreign_names='main|de265_start_worker_threads'

# Exported symbols: functions, tables, and functions that are compiled for several processors.
rule_prefix() {
    [ -f "$build/src/codec/libcodec_a-codec.o" ] || { echo "skip: nothing is built"; return; }
    objects_built | grep -E '/src/(codec|ctl|engine|image)/' | while read -r object; do
        nm --defined-only -g "$object" | awk -v object="$object" '$2 ~ /^[TDRi]$/ { print object, $3 }'
    done | sed -E 's#\.(default|avx2|resolver)[^ ]*$##' | awk -v foreign="^($foreign_names)\$" '{
            file = $1; sub(/.*\//, "", file); sub(/\.o$/, "", file); sub(/.*-/, "", file)
            if ($2 !~ foreign && index($2, file "_") != 1 && $2 != file) print $1 ": " $2 " does not begin with " file "_"
        }' | sort -u
}

# Prints the parameters of "(int a, void (*b)(int c, int d))", which are the commas outside of inner brackets.
rule_parameters() {
    command -v ctags >/dev/null || { echo "skip: ctags is missing"; return; }
    production | grep -vE '^src/(engine/|codec/|image/protect_picture)' | xargs ctags -x --_xformat='%F:%n: %N%S' --kinds-C=fp --fields=+S 2>/dev/null |
        awk '{
            text = $0; depth = 0; count = 1
            for (i = index(text, "("); i <= length(text); i++) {
                letter = substr(text, i, 1)
                depth += (letter == "(") - (letter == ")")
                count += letter == "," && depth == 1
            }
            if (count > 6) print count " parameters: " text
        }' | sort -rn
}

# A key is read as a member of struct config. Some keys are read by functions of config.c: config_read_api(),
# config_read_worker() and config_read_console().
rule_config_keys_read() {
    local code
    code=$(production | grep -vE '^src/base/config(_follow)?\.[ch]$' | code_lines)
    # A key of each plan is LIMIT(section, NAME, ...) or QUOTA(section, NAME, ...), a member of struct config_plan.
    tr -d '\n' <src/base/config.c | grep -oE '(TEXT|INTEGER|FOLLOWING|BOOLEAN)\( *[a-z_]+, [a-z_]+, *["I0-9]|(LIMIT|QUOTA)\(section, [a-z_]+, [a-z"]' |
        sed -E 's/.*\( *([a-z_]+), ([a-z_]+),.*/\1.\2/; s/^section\.//; /^name$/d' | grep -vxE 'console.(socket|processes|pid_file)|(api|console|worker).database_password_file' | while read -r key; do
        grep -qE "(->|\.|SWITCH\()${key/./_}\b" <<<"$code" || echo "src/base/config.c: no code reads $key"
    done
}

# Functions that only their own file and tests call, because a test needs the step without its surroundings.
test_seams=(
    auth_forget             # fuzz targets forget the keys of the previous input
    de265_start_worker_threads # libheif calls it
    failure_status          # the status of each error code
    key_from_bytes          # a key of known bytes
    key_is_well_formed      # the checksum of a key, without a lookup
    mail_text               # the texts of mails, without a queue
    usage_scale_for         # the scale of a chart, without its usage
    protect_apply           # the engine on a whole picture; programs encode between its steps
    change_psnr            # the distance of two pictures, as tests measure it
    webhook_event_type_name # the event of an order's end, without a database
    visibility_total        # the visibility of a result by the model
    webhook_event_type_of
)

# Prints the objects of the build whose source still exists.
objects_built() {
    find "$build/src" -name '*.o' 2>/dev/null | while read -r object; do
        source=${object#"$build/"}
        source=${source%/*}/$(sed -E 's/.*-//; s/\.o$/.c/' <<<"${source##*/}")
        [ ! -f "$source" ] || echo "$object"
    done
}

# A call within a file needs no symbol, so such a function must be static or a seam.
rule_no_unused_functions() {
    local objects
    mapfile -t objects < <(objects_built)
    [ ${#objects[@]} -gt 0 ] || { echo "skip: nothing is built"; return; }
    comm -23 <(nm --defined-only -g "${objects[@]}" | awk '$2 == "T" { print $3 }' | sort -u) \
        <({ nm -u "${objects[@]}" | awk '$1 == "U" { print $2 }'; printf '%s\n' main "${test_seams[@]}"; } | sort -u) |
        sed 's/$/: no other file of src\/ calls it/'
}

rule_no_circles() {
    [ -f "$build/src/worker/work.o" ] || { echo "skip: nothing is built"; return; }
    "$IMGWARD_PYTHON" tests/circles.py "$build"
}

# Prints the tags of a kind (s: structs, f: functions) as lines "NAME FILE static"; exported tags lack the last word.
tags() { production | xargs ctags -x --_xformat='%N %F %{file}' --kinds-C="$1" --fields=+f 2>/dev/null | sed 's/ file$/ static/; s/ -$//'; }

rule_struct_names() {
    command -v ctags >/dev/null || { echo "skip: ctags is missing"; return; }
    tags s | awk '$1 !~ /^__anon/ && !seen[$1 " " $2]++ { files[$1] = files[$1] " " $2; count[$1]++ }
        END { for (name in files) if (count[name] > 1) print "struct " name " is in" files[name] }' | sort
}

rule_shadowed() {
    command -v ctags >/dev/null || { echo "skip: ctags is missing"; return; }
    tags f | awk '$1 == "main" { next }
        $3 == "static" { hidden[$1] = hidden[$1] " " $2; next }
        { exported[$1] = $2 }
        END { for (name in hidden) if (name in exported) print name " is static in" hidden[name] " and exported by " exported[name] }' | sort
}

rule_no_goto() { sources | code_lines | grep -E ':[^"]*\bgoto\b'; }

# clang-format puts the end of the loop at the column of its beginning. A break may end a loop or switch inside it.
rule_transaction_bodies() {
    production | grep -v '^src/db/transaction\.' | code_lines | awk '
        function has(word) { return text ~ "(^|[^a-z_])" word "([^a-z_]|$)" }
        {
            match($0, /^[^:]*:[0-9]+:/); text = substr($0, RLENGTH + 1); column = match(text, /[^ ]/)
            if (column == 0) next
            if (inside && text ~ /^ *}/ && column == inside) { inside = 0; next }
            if (inner && column <= inner) inner = 0
            if (inside && !inner && text ~ /^ *(} else )?(for|while|do|switch) /) inner = column
            if (inside && (has("return") || has("goto") || (!inner && has("break")))) print
            if (text ~ /transaction_begin\(/ && text !~ /{$/) print $0 "  (write one line, with a brace)"
            else if (text ~ /transaction_begin\(/) { inside = column; inner = 0 }
        }'
}

rule_reasons_written() { production | code_lines | grep -E 'str(n|case|ncase)?cmp\([^)]*reason|text_equal[a-z_]*\([^)]*reason'; }

# For the file store, the code means that a file is missing; download.c and health.c use it.
rule_not_found_fails() {
    production | grep -E '^src/(domain|db)/' | grep -vE '^src/domain/(files/download|health)\.c$' | code_lines |
        grep 'IW_NOT_FOUND' | grep -v 'context_fail('
}

# C does not define the order of calls in an expression, except in the initializers of declarators and the parts of ?:.
rule_columns_in_order() {
    production | grep '^src/db/' | code_lines | awk '
        function check(text,   i, letter, depth, part) {
            depth = 0; part = ""
            for (i = 1; i <= length(text); i++) {
                letter = substr(text, i, 1)
                depth += (letter ~ /[({[]/) - (letter ~ /[])}]/)
                if (letter == "," && depth == 0) { look(part); part = "" } else part = part letter
            }
            look(part)
        }
        function look(part,   copy) {
            copy = part
            if (part !~ /db_next_is_null\([^)]*\) [?]/ && gsub(/db_next_[a-z_]+\(/, "", copy) > 1) print place part
        }
        {
            match($0, /^[^:]*:[0-9]+:/); place = substr($0, 1, RLENGTH); text = substr($0, RLENGTH + 1)
            statement = statement " " text
            if (text ~ /; *$/) check(statement)
            if (text ~ /; *$/ || (text ~ /{ *$/ && text !~ /(= |\)){ *$/) || text ~ /^ *}/) statement = ""
        }'
}

rule_no_typedef_struct() { sources | code_lines | grep -E ':\s*typedef struct'; }

rule_function_length() {
    command -v ctags >/dev/null || { echo "skip: ctags is missing"; return; }
    sources | grep '\.c$' | xargs ctags -x --_xformat='%n %{end} %N %F' --kinds-C=f --fields=+ne 2>/dev/null |
        awk '$2 - $1 + 1 > 80 { print $4 ":" $1 ": " $3 " has " $2 - $1 + 1 " lines" }'
}

rule_format() {
    command -v clang-format >/dev/null || { echo "skip: clang-format is missing"; return; }
    # Debian 12's version; later ones format macros differently.
    clang-format --version | grep -q 'version 14\.' || { echo "skip: the sources are formatted by clang-format 14"; return; }
    sources | xargs clang-format --dry-run 2>&1 | grep 'warning:' | sed 's/ warning:.*//'
}

# Uses the compiler flags that configure found for the libraries.
rule_headers_alone() {
    local header flags
    flags=$(pkg-config --cflags fcgi jansson libmariadb hiredis libcurl inih fftw3f lcms2 2>/dev/null)
    # A file "_body.h" is the body of a function that is compiled several times.
    find src -name '*.h' ! -name '*_body.h' | sort | while read -r header; do
        printf '#include "%s"\n' "$root/$header" |
            gcc -std=gnu11 -fsyntax-only -D_GNU_SOURCE -Isrc $flags -x c - 2>&1 | grep -m 1 'error:'
    done
}

rule_no_machine_paths() {
    { git ls-files 2>/dev/null || find . -type f -not -path './.git/*' -not -path './build*' -not -path './var/*' -not -path '*/node_modules/*'; } |
        grep -vE '^(COPYING|tests/lint\.sh)$' | xargs -r grep -nIE '(^|[^A-Za-z0-9_.])/(work|root|home/[a-z]+)/' | head
}

rule_one_version() {
    local version
    version=$(sed -nE 's/^AC_INIT\(\[imgward\], \[([^]]*)\].*/\1/p' configure.ac)
    [ -n "$version" ] || echo "configure.ac: AC_INIT names no version"
    grep -m 1 '^## ' NEWS.md | grep -qF "## $version," || echo "NEWS.md: its first heading is not of $version"
    head -n 1 debian/changelog | grep -qF "imgward ($version)" || echo "debian/changelog: its first entry is not of $version"
    production | xargs grep -nF "$version" /dev/null
    grep -nF "$version" doc/*.[58] packaging/*/*.service.in Makefile.am dev 2>/dev/null
}

# Prints the rows of the table of formats, without archives: name, word, title and whether it is changed.
formats_listed() {
    tr -s ' \n' ' ' <src/model/format.c | grep -oE '\{"[a-z]+", "[A-Z]+", "[A-Za-z]+",[^{]*\{[^}]*\},[^,]*' |
        sed -E 's/^\{"([a-z]+)", "([A-Z]+)", "([A-Za-z]+)".*, *(true|false)$/\1 \2 \3 \4/' | grep -v '^zip '
}

rule_formats() {
    local rows words names changed name key
    rows=$(formats_listed)
    [ "$(wc -l <<<"$rows")" -ge 3 ] || { echo "src/model/format.c: the rows of the table cannot be read"; return; }
    words=$(awk '{ printf "%s%s", sep, $2; sep = ", " }' <<<"$rows")
    names=$(awk -v quote="'" '{ printf "%s%s%s%s", sep, quote, $1, quote; sep = ", " }' <<<"$rows")
    changed=$(awk -v quote="'" '$4 == "true" { printf "%s%s%s%s", sep, quote, $1, quote; sep = ", " }' <<<"$rows")
    grep -nE 'fileFormat: \{type: string, enum:' doc/openapi.yaml | grep -vF "enum: [$words]" | sed "s/^/doc\/openapi.yaml: not [$words]: /"
    for name in "$names" "$changed"; do
        grep -qE " format ENUM\\($name\\)" sql/*.sql || echo "sql: no column format has ENUM($name)"
    done
    while read -r name _ _ key; do
        [ "$key" = true ] || grep -q "BOOLEAN(image, read_$name," src/base/config.c || echo "src/base/config.c: no key read_$name"
    done <<<"$rows"
    awk '{ print $3 }' <<<"$rows" | while read -r name; do
        grep -q "^| $name |" doc/pictures.md || grep -qE "\b$name\b" doc/pictures.md || echo "doc/pictures.md: does not name $name"
    done
}

rule_plain_words() { "$IMGWARD_PYTHON" tests/prose.py; }

rule_headers_shipped() {
    local header
    find src sql tests/unit -name '*.h' -o -name '*.sql' | sort | while read -r header; do
        grep -rqF --include="*.am" --include="Makefile.inc" "$header" Makefile.am src tests || echo "$header is named in no .am"
    done
}

# 0001_init.sql is the first schema. Comments may contain the words.
rule_migrations_add() {
    find sql -name '*.sql' ! -name '0001_*' | sort | xargs grep -nHiE '^[^#]*\b(DROP|RENAME|CHANGE)\b' | grep -vE '^[^:]*:[0-9]+: *--'
}

# The name may continue after that of the source: test_codec_damage.c is a test of codec.c, test_storage.c of storage*.c.
rule_unit_mirror() {
    local file folder name
    find tests/unit -name 'test_*.c' | sort | while read -r file; do
        folder=src${file#tests/unit}
        folder=${folder%/*}
        name=${file##*/test_}
        name=${name%.c}
        until compgen -G "$folder/$name.[ch]" >/dev/null || compgen -G "$folder/${name}_*.[ch]" >/dev/null; do
            [[ $name == *_* ]] || { echo "$file: $folder/ has no ${name}.c or ${name}_*.c"; break; }
            name=${name%_*}
        done
    done
}

rule_tools_shipped() {
    local file
    for file in tools/*.* tools/train/*; do
        grep -rqF --include="Makefile.inc" "$file" src doc site || echo "$file is named in no .am"
    done
}

rule_console_texts() { "$IMGWARD_PYTHON" tests/web_files.py texts; }
rule_console_weight() { "$IMGWARD_PYTHON" tests/web_files.py weight; }
rule_console_lines() { "$IMGWARD_PYTHON" tests/web_files.py lines; }
rule_console_files() { "$IMGWARD_PYTHON" tests/web_files.py files; }

# Commits before this one were written without the rule. A shallow clone may lack it.
rule_commit_subjects() {
    local since=cbaf45b252af67a73259f8064894894e4cd17b56
    git cat-file -e "$since" 2>/dev/null || { echo "skip: the history is not here"; return; }
    git log --no-merges --format='%h %s' "$since..HEAD" | awk '{ subject = substr($0, index($0, " ") + 1) } length(subject) > 72 { print $1 ": " length(subject) " characters: " subject }'
}

rule_packages_used() { "$root/dev" deps check --verify; }

# ---------------------------------------------------------------- slow rules
rule_analyzer() {
    local tree=$root/build-analyzer
    mkdir -p "$tree"
    (cd "$tree" && { [ -f Makefile ] || "$root/configure" -q CFLAGS='-g -O1 -fanalyzer'; } && make -s -k -j"$(nproc)" all) 2>&1 |
        grep -E 'warning: .*\[-Wanalyzer' | sort -u
}

tidy_checks='-*,clang-analyzer-*,-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling,bugprone-*'
for name in easily-swappable-parameters reserved-identifier narrowing-conversions branch-clone \
    implicit-widening-of-multiplication-result macro-parentheses assignment-in-if-condition; do
    tidy_checks+=",-bugprone-$name"
done

rule_tidy() {
    command -v clang-tidy >/dev/null || { echo "skip: clang-tidy is missing"; return; }
    local flags
    flags=$(pkg-config --cflags fcgi jansson libmariadb hiredis libcurl inih fftw3f lcms2 2>/dev/null)
    flags+=' -std=gnu11 -D_GNU_SOURCE -DPACKAGE_VERSION="" -DIW_SYSCONFDIR="" -DIW_DATADIR="" -DIW_LOCALSTATEDIR="" -DIW_LIBEXECDIR=""'
    export tidy_checks flags
    production | grep '\.c$' | xargs -P "$(nproc)" -n 4 sh -c 'clang-tidy --quiet "--checks=$tidy_checks" "$@" -- -Isrc $flags' sh 2>/dev/null |
        grep -E '(warning|error): ' | sort -u
}

rule_valgrind() {
    command -v valgrind >/dev/null || { echo "skip: valgrind is missing"; return; }
    [ -f "$build/Makefile" ] || { echo "skip: nothing is built"; return; }
    make -s -k -C "$build" check LOG_COMPILER=valgrind \
        LOG_FLAGS='-q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite' 2>&1 | grep -E '^(FAIL|ERROR):'
}

rules_list() {
    local line
    for line in "${rules[@]}"; do printf '  %-20s %s\n' "${line%%#*}" "${line#*#}"; done
    echo "Only when named, for they take minutes:"
    for line in "${slow_rules[@]}"; do printf '  %-20s %s\n' "${line%%#*}" "${line#*#}"; done
}

rule_run() {
    local name=$1 sentence=$2 findings
    if declare -F "rule_$name" >/dev/null; then
        findings=$("rule_$name")
    else
        findings="there is no rule_$name"
    fi
    case $findings in
    '') echo "ok $sentence" ;;
    skip:*) echo "skip $sentence (${findings#skip: })" ;;
    *)
        echo "not ok $sentence ($name)"
        printf '%s\n' "$findings" | sed 's/^/    /' | head -n 20
        return 1
        ;;
    esac
}

main() {
    local line code=0
    if [ "${1:-}" = --list ]; then
        echo "Rules, all of them when none is named:"
        rules_list
        return
    fi
    [ $# -eq 0 ] || rules+=("${slow_rules[@]}")
    for line in "${rules[@]}"; do
        if [ $# -eq 0 ] || [[ " $* " == *" ${line%%#*} "* ]]; then
            rule_run "${line%%#*}" "${line#*#}" || code=1
        fi
    done
    return $code
}

main "$@"
