#!/usr/bin/env python3
"""Find call circles between the C files of each room of src/, from the symbols of the built object files.

    circles.py [BUILD]               print each circle of more than one file; exit 1 when there is one

    circles.py --all [BUILD]         print those of ALLOWED and PENDING, too

    circles.py --edges ROOM [BUILD]  print "file -> file: symbols" for a room, such as src/worker

A file depends on another when its object refers to a symbol that the other one defines.  A table of functions counts
like a call.  Static functions do not matter: they never leave their file.
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# The one pair in all of src/ that may depend on each other: the manual prints the table of commands, and is in it.
ALLOWED = [["src/ctl/main.c", "src/ctl/manual.c"]]

# Rooms that still have circles.  Remove a room when it has none; add none.
PENDING = ["src/codec"]


def objects(build, source):
    """The objects of a source: automake puts the name of a program or library before the file's when its flags differ."""
    folder = build / source.parent
    return [folder / name for name in os.listdir(folder) if name.endswith(".o")
            and (name == source.stem + ".o" or name.endswith("-" + source.stem + ".o"))] if folder.is_dir() else []


def symbols(paths):
    """The global symbols that a file's objects define, and those that they refer to."""
    defined, wanted = set(), set()
    lines = subprocess.run(["nm", "--extern-only", *paths], capture_output=True, text=True, check=True).stdout.split("\n")
    for words in (line.split() for line in lines):
        if len(words) == 2 and words[0] in "Uw":
            wanted.add(words[1])
        elif len(words) == 3:
            defined.add(words[2])
    return defined, wanted - defined


def graph(build, room):
    """For each file of a room the other files that it depends on, and by which symbols; files without an object are left out."""
    tables = {}
    for source in sorted((ROOT / room).rglob("*.c")):
        source = source.relative_to(ROOT)
        paths = objects(build, source)
        if paths:
            tables[str(source)] = symbols(paths)
    owner = {symbol: name for name, (defined, _) in tables.items() for symbol in defined}
    edges = {name: {} for name in tables}
    for name, (_, wanted) in tables.items():
        for symbol in sorted(wanted & owner.keys()):
            edges[name].setdefault(owner[symbol], []).append(symbol)
    return edges


def reachable(edges, start):
    found, left = set(), [start]
    while left:
        for name in edges[left.pop()]:
            if name not in found:
                found.add(name)
                left.append(name)
    return found


def circles(edges):
    """The sets of files that all depend on each other, of more than one file."""
    reach = {name: reachable(edges, name) for name in edges}
    sets = {frozenset(other for other in reach[name] if name in reach[other]) for name in edges}
    return sorted(sorted(files) for files in sets if len(files) > 1)


def rooms():
    return sorted(f"src/{path.name}" for path in (ROOT / "src").iterdir() if path.is_dir())


def main(words):
    option = words.pop(0) if words and words[0].startswith("--") else None
    room = words.pop(0) if option == "--edges" else None
    build = pathlib.Path(words[0] if words else os.environ.get("IMGWARD_BUILD", ROOT / "build"))
    if room:
        for name, others in graph(build, room).items():
            for other, names in others.items():
                print(f"{name} -> {other}: {' '.join(names)}")
        return 0
    found = [(name, files) for name in rooms() for files in circles(graph(build, name))]
    refused = [files for name, files in found if files not in ALLOWED and name not in PENDING]
    for files in [files for _, files in found] if option == "--all" else refused:
        print(f"{len(files)} files call each other: {' '.join(files)}")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
