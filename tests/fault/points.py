"""The fault points of include/imgward/fault.h, and the file that arms them in all programs of a stack."""
import mmap
import os
import re
import struct

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEADER = os.path.join(ROOT, "include", "imgward", "fault.h")

NOTHING, KILL, FAIL, DELAY = range(4)
ACTIONS = {"kill": KILL, "fail": FAIL, "delay": DELAY}
# struct fault_slot: action, program, countdown, width, delay_ms, passed, taken, spare.
SLOT = struct.Struct("=iiiiiIIi")

# Points that several programs reach; all others belong to one program.
SHARED = ("db.", "store.", "redis.", "bell")


class Point:
    def __init__(self, number, name, can_fail, sentence):
        self.number = number
        self.name = name
        self.can_fail = can_fail
        self.sentence = sentence
        self.programs = ("a", "w") if name.startswith(SHARED) else ("",)


def table():
    """Every row of the header's table, in its order."""
    with open(HEADER, encoding="utf-8") as file:
        text = re.sub(r"\s*\\\n\s*", " ", file.read())
    rows = re.findall(r'FAULT\(([A-Z_]+), "([a-z_.]+)", (DIES|FAILS), "([^"]*)"\)', text)
    return [Point(number, name, can == "FAILS", sentence) for number, (_, name, can, sentence) in enumerate(rows)]


class Faults:
    """The file of a stack; its programs see changes immediately."""

    def __init__(self, path):
        self.path = path
        self.points = {point.name: point for point in table()}
        with open(path, "wb") as file:
            file.write(bytes(SLOT.size * len(self.points)))
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 0)

    def read(self, name):
        return SLOT.unpack_from(self.map, self.points[name].number * SLOT.size)

    def passed(self, name):
        return self.read(name)[5]

    def taken(self, name):
        return self.read(name)[6]

    def arm(self, name, action, nth=1, width=1, delay_ms=0, program=""):
        """Arms a point for width times from the nth on, in one program or in any."""
        at = self.points[name].number * SLOT.size
        struct.pack_into("=i", self.map, at, NOTHING)
        struct.pack_into("=iiii", self.map, at + 4, ord(program) if program else 0, nth, width, delay_ms)
        struct.pack_into("=i", self.map, at, ACTIONS[action])

    def disarm(self):
        for point in self.points.values():
            struct.pack_into("=i", self.map, point.number * SLOT.size, NOTHING)
