#!/usr/bin/env python3
"""Find circles between the files of src/: of calls in each room, and of includes in the whole tree.

    circles.py [BUILD]               print each circle of more than one file; exit 1 if there is one

    circles.py --all [BUILD]         print those of ENGINES, too

    circles.py --edges ROOM [BUILD]  print "file -> file: symbols" for a room, such as src/worker

A file calls another if its object refers to a symbol that the other file defines. A table of functions counts like a
call. Static functions are ignored, because they never leave their file.

A module is NAME.c and NAME.h.  It includes another module if either file includes the other's header.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# The files of an engine share the types of its public header, so they may include each other in circles.
ENGINES = ["src/engine/protect/", "src/engine/watermark/"]


def objects(build, source):
    """Returns the objects of a source. automake prefixes the name of a program or library if its flags differ."""
    folder = build / source.parent
    return [folder / name for name in os.listdir(folder) if name.endswith(".o")
            and (name == source.stem + ".o" or name.endswith("-" + source.stem + ".o"))] if folder.is_dir() else []


def symbols(paths):
    """Returns the global symbols that a file's objects define, and those that they refer to."""
    defined, wanted = set(), set()
    lines = subprocess.run(["nm", "--extern-only", *paths], capture_output=True, text=True, check=True).stdout.split("\n")
    for words in (line.split() for line in lines):
        if len(words) == 2 and words[0] in "Uw":
            wanted.add(words[1])
        elif len(words) == 3:
            defined.add(words[2])
    return defined, wanted - defined


def graph(build, room):
    """Returns for each file of a room the files on which it depends, and by which symbols; files without an object are left out."""
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


def modules():
    """Returns for each module the other modules that it includes."""
    edges = {}
    for path in sorted((ROOT / "src").rglob("*.[ch]")):
        name = str(path.relative_to(ROOT).with_suffix(""))
        headers = re.findall(r'^#include "([a-z0-9_/]+)\.h"', path.read_text(), re.M)
        edges.setdefault(name, set()).update(f"src/{header}" for header in headers)
    return {name: (others & edges.keys()) - {name} for name, others in edges.items()}


def reachable(edges, start):
    found, left = set(), [start]
    while left:
        for name in edges[left.pop()]:
            if name not in found:
                found.add(name)
                left.append(name)
    return found


def circles(edges):
    """Returns the sets of more than one file that all depend on each other."""
    reach = {name: reachable(edges, name) for name in edges}
    sets = {frozenset(other for other in reach[name] if name in reach[other]) for name in edges}
    return sorted(sorted(files) for files in sets if len(files) > 1)


def is_engine(names):
    return any(all(name.startswith(folder) for name in names) for folder in ENGINES)


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
    called = [files for name in rooms() for files in circles(graph(build, name))]
    included = [names for names in circles(modules()) if option == "--all" or not is_engine(names)]
    for files in called:
        print(f"{len(files)} files call each other: {' '.join(files)}")
    for names in included:
        print(f"{len(names)} modules include each other: {' '.join(names)}")
    return 1 if called or included else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
