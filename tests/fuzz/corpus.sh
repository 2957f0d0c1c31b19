#!/bin/bash
# The inputs of the fuzz targets: one archive for each target in tests/fuzz/corpus/.
# Names are sorted, and owners and times are fixed, so that the same inputs give the same archive.
#
#   corpus.sh unpack FOLDER         write FOLDER/TARGET/INPUT; skip targets that are up to date
#
#   corpus.sh add TARGET FILE...    add the files to the target's archive
#
#   corpus.sh drop TARGET NAME...   remove inputs from the target's archive
set -euo pipefail
export LC_ALL=C

archives=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/corpus

fail() {
    printf 'corpus: %s\n' "$*" >&2
    exit 2
}

archive_pack() {
    local target=$1 folder=$2 archive=$archives/$1.tar.xz
    tar --create --format=ustar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=a-x,u=rwX,go=rX \
        --directory="$folder" "$target" | xz --threads=1 -9e >"$archive.new"
    mv "$archive.new" "$archive"
    printf '%s: %d inputs\n' "$target" "$(find "$folder/$target" -type f | wc -l)"
}

# Sets $work to a folder with the target's inputs, which is removed at exit.
work_begin() {
    [ -f "$archives/$1.tar.xz" ] || [ -f "$archives/../$1.c" ] || fail "there is no target $1"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mkdir "$work/$1"
    [ ! -f "$archives/$1.tar.xz" ] || tar --extract --xz --directory="$work" --file="$archives/$1.tar.xz"
}

corpus_unpack() {
    local folder=$1 archive target
    mkdir -p "$folder"
    for archive in "$archives"/*.tar.xz; do
        target=$(basename "$archive" .tar.xz)
        [ "$folder/$target" -nt "$archive" ] && continue
        rm -rf "${folder:?}/$target" "$folder/$target.new"
        mkdir "$folder/$target.new"
        tar --extract --xz --no-same-owner --strip-components=1 --directory="$folder/$target.new" --file="$archive"
        mv "$folder/$target.new" "$folder/$target"
        touch "$folder/$target"
    done
}

corpus_add() {
    local target=$1 file place
    shift
    work_begin "$target"
    for file in "$@"; do
        place=$work/$target/$(basename "$file")
        [ ! -e "$place" ] || cmp -s "$file" "$place" || fail "$target has another input named $(basename "$file")"
        cp "$file" "$place"
    done
    archive_pack "$target" "$work"
}

corpus_drop() {
    local target=$1 name
    shift
    work_begin "$target"
    for name in "$@"; do
        rm "$work/$target/$name" || fail "$target has no input named $name"
    done
    archive_pack "$target" "$work"
}

usage="usage: corpus.sh unpack FOLDER | add TARGET FILE... | drop TARGET NAME..."
case ${1:-} in
unpack) [ $# -eq 2 ] || fail "$usage" ;;
add | drop) [ $# -ge 3 ] || fail "$usage" ;;
*) fail "$usage" ;;
esac
"corpus_$1" "${@:2}"
