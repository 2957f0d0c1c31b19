"""The places where tests inject failures, and the file that arms them in all programs of a stack.

A place is a fault point of src/base/fault.h with a part of its key, in one program or in any program.
"""
import mmap
import os
import re
import struct

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEADER = os.path.join(ROOT, "src", "base", "fault.h")

NOTHING, KILL, FAIL, DELAY = range(4)
ACTIONS = {"kill": KILL, "fail": FAIL, "delay": DELAY}
# struct fault_slot: point, action, program, countdown, width, delay_ms, passed, taken, key.
SLOT = struct.Struct("=iiiiiiII96s")
API, WORKER, IMAGE, CONSOLE, ANY = "a", "w", "i", "c", ""

# Name of the place, program, fault point, part of the key, capability, description. The order is the path of a request, then of a job.
PLACES = [
    ("pool.forked", API, "process.forked", "pool", "DIES", "supervisor of the pool: a process was forked"),
    ("pool.reaped", API, "process.reaped", "pool", "DIES", "supervisor of the pool: a dead process was reaped"),
    ("pool.reloaded", API, "pool.reloaded", "", "DIES", "supervisor of the pool: a new configuration is in force"),
    ("child.started", API, "process.started", "pool", "DIES", "process of the pool: before its first request"),
    ("request.read", API, "message.taken", "request", "DIES", "a request was taken, nothing was done"),
    ("request.admitted", API, "request.admitted", "", "DIES", "key and limit are checked, the work not started"),
    ("request.worked", API, "message.sending", "response", "DIES", "the work is done, the response not sent"),
    ("request.answered", API, "message.sent", "response", "DIES", "the response is sent, the request not finished"),
    ("limit.asked", API, "redis.receive", "limit:", "DIES", "limit and lock were sent to Redis, the reply not read"),
    ("redis.send", ANY, "redis.send", "", "FAILS", "before a command goes to Redis"),
    ("redis.receive", ANY, "redis.receive", "", "FAILS", "before a reply of Redis is read"),
    ("db.statement", ANY, "db.statement", "", "FAILS", "before a statement goes to the database"),
    ("db.statement_run", ANY, "db.statement_run", "", "FAILS", "a statement ran; failing: its reply is lost"),
    ("db.row", ANY, "db.row", "", "FAILS", "before a row is read; failing: the rest of the answer is lost"),
    ("db.begun", ANY, "db.begun", "", "FAILS", "a transaction is open and empty"),
    ("db.rolled_back", ANY, "db.rolled_back", "", "FAILS", "a statement of a transaction ran; failing: the server rolled back without an error"),
    ("db.commit", ANY, "db.commit", "", "FAILS", "the work of a transaction is done, it is not committed"),
    ("db.committed", ANY, "db.committed", "", "FAILS", "a transaction is committed; failing: its reply is lost"),
    ("order.ids_lost", API, "db.insert_id", "", "FAILS", "an order is in the database; failing: the server did not report the ids of its files"),
    ("order.created", API, "db.statement_run", "INSERT INTO orders", "DIES", "the order's rows are committed, no worker notified"),
    ("order.confirmed", API, "db.committed", "SELECT id FROM orders WHERE id = ? AND account_id = ? FOR UPDATE", "DIES",
     "an order was started, no worker notified"),
    ("upload.taken", API, "store.synced", "", "DIES", "the body was read, nothing has a name yet"),
    ("upload.stored", API, "store.placed", "", "DIES", "the bytes have their name, no row names them"),
    ("upload.recorded", API, "db.committed", "UPDATE files SET status = 'uploaded'", "DIES", "the row names the bytes, no worker notified, the old bytes not deleted"),
    ("store.begin", ANY, "store.begin", "", "FAILS", "before a file of the store is created"),
    ("store.add", ANY, "store.add", "", "FAILS", "before bytes are written; failing: the disk is full"),
    ("store.synced", ANY, "store.synced", "", "FAILS", "the bytes are on the disk, the file has no name"),
    ("store.placed", ANY, "store.placed", "", "FAILS", "the file has its name, its folder is not synced"),
    ("store.delete", ANY, "store.delete", "", "FAILS", "before a file of the store is deleted"),
    ("wake_up", ANY, "redis.send", "RPUSH", "DIES", "before the wake-up is sent to Redis"),
    ("worker.started", WORKER, "process.started", "worker", "DIES", "supervisor: before the first turn of its loop"),
    ("worker.heartbeat", WORKER, "db.statement", "INSERT INTO workers", "DIES", "supervisor: before a heartbeat"),
    ("worker.swept", WORKER, "leases.lost", "", "DIES", "supervisor: leases of dead workers were taken back"),
    ("worker.leased", WORKER, "db.committed", "UPDATE jobs SET status = 'leased'", "DIES", "supervisor: jobs are leased, none started"),
    ("image.spawning", WORKER, "process.spawn", "image", "FAILS", "before an image process is started"),
    ("image.sent", WORKER, "message.sent", "image request", "FAILS", "a picture was sent to its process; failing: could not be"),
    ("image.started", IMAGE, "process.started", "image", "DIES", "image process: before its first message"),
    ("image.taken", IMAGE, "message.taken", "image request", "DIES", "image process: a request was taken"),
    ("image.decoded", IMAGE, "image.decoded", "", "DIES", "image process: the picture is decoded"),
    ("image.changed", IMAGE, "image.changed", "", "DIES", "image process: the engine is done"),
    ("image.written", IMAGE, "message.sending", "image answer", "DIES", "image process: the result is written, the answer not sent"),
    ("image.answered", IMAGE, "message.sent", "image answer", "DIES", "image process: the answer is sent"),
    ("image.answer_read", WORKER, "message.taken", "image answer", "DIES", "supervisor: the answer is read, nothing stored"),
    ("result.stored", WORKER, "result.stored", "", "FAILS", "the result has its name in the store, no row names it"),
    ("thumbnail.stored", WORKER, "store.placed", "thumb", "FAILS", "the thumbnail has its name, no row names it"),
    ("outcome.known", WORKER, "db.statement", "UPDATE jobs SET status = ?, failure_count", "DIES", "an outcome is not recorded yet"),
    ("outcome.recorded", WORKER, "db.committed", "UPDATE jobs SET status = ?, failure_count", "DIES",
     "an outcome is committed, the next step not started"),
    ("order.ended", WORKER, "db.committed", "UPDATE orders SET status = ?, ended_at", "DIES", "an order has ended, its inputs still exist"),
    ("clear.deleted", WORKER, "db.statement", "UPDATE files SET store_key = NULL", "DIES", "the inputs are deleted, the rows still name them"),
    ("clear.recorded", WORKER, "db.statement_run", "UPDATE files SET store_key = NULL", "DIES", "an ended order is cleared"),
    ("archive.spawning", WORKER, "process.spawn", "archive", "FAILS", "supervisor: before the archive process is started"),
    ("archive.begun", WORKER, "process.started", "archive", "DIES", "archive process: before the archive is written"),
    ("archive.built", WORKER, "store.placed", "zip", "DIES", "archive process: the archive is in the store, the supervisor has no report"),
    ("archive.reaped", WORKER, "process.reaped", "archive", "DIES", "supervisor: the archive process ended, nothing recorded"),
    ("source.asked", WORKER, "peer.asked", "GET", "FAILS", "before a source is asked for its file"),
    ("source.stored", WORKER, "store.placed", "in", "FAILS", "the fetched file is in the store, no row names it"),
    ("target.asked", WORKER, "peer.asked", "PUT", "FAILS", "before a result goes to its target"),
    ("target.answered", WORKER, "peer.answered", "PUT", "DIES", "a target received a result, nothing recorded"),
    ("delivery.leased", WORKER, "db.committed", "UPDATE webhook_deliveries SET status = 'SENDING'", "DIES",
     "deliveries are leased, none sent"),
    ("delivery.sent", WORKER, "peer.asked", "POST", "FAILS", "before a delivery is sent"),
    ("delivery.answered", WORKER, "peer.answered", "POST", "DIES", "the receiver answered, nothing recorded"),
    ("delivery.recorded", WORKER, "db.committed", "UPDATE webhook_deliveries SET status = ?, failure_count = ?, available_at", "DIES",
     "the answer of a receiver is recorded"),
    ("age.files_deleted", WORKER, "db.statement", "UPDATE orders SET has_thumbnail = FALSE", "DIES", "an order expires: its files are deleted"),
    ("age.recorded", WORKER, "db.committed", "UPDATE orders SET has_thumbnail = FALSE", "DIES", "an order has expired"),
    ("age.abandoned", WORKER, "db.committed", "UPDATE orders SET error_code = ?", "DIES", "a pending order was abandoned"),
    ("reclaim.begun", WORKER, "db.statement", "SELECT o.id FROM orders o WHERE o.id >= ?", "DIES", "before the search for inputs of ended orders"),
]

# Places in the driver of the object store, which are reached only if the store is a bucket (tests/cluster/test_store.py).
OBJECT_PLACES = [
    ("object.asked", ANY, "object.asked", "", "FAILS", "before a request to the object store"),
    ("object.answered", ANY, "object.answered", "", "FAILS", "the object store answered; failing: its answer is lost"),
    ("object.peeked", API, "object.asked", "GET in/", "FAILS", "confirm: before the first bytes of an upload are read"),
    ("object.copied", API, "object.answered", "PUT in/", "FAILS", "confirm: an upload was copied, no row names the copy"),
    ("object.input", WORKER, "object.asked", "GET in/", "FAILS", "before an input is read"),
    ("object.result", WORKER, "object.answered", "PUT out/", "FAILS", "a result is in the bucket; failing: the answer is lost"),
    ("object.part", WORKER, "object.answered", "PUT zip/", "FAILS", "archive: the archive or a part of it is in the bucket"),
    ("object.completed", WORKER, "object.answered", "POST zip/", "FAILS", "archive: a multipart upload began or ended"),
    ("object.deleted", WORKER, "object.answered", "POST bucket delete", "FAILS", "objects were deleted; failing: the answer is lost"),
    ("object.listed", WORKER, "object.asked", "GET bucket list-type", "FAILS", "before a list is read"),
]


# Places between a proof and the change that it permits (tests/fault/test_user_changes.py).
CONSOLE_PLACES = [(f"verified.{change}", CONSOLE, "user.verified", change, "DIES", "console: password or code is verified, nothing is changed")
                  for change in ("sign_in", "challenge", "second_factor", "hash_renew", "password", "totp_make", "totp_enable",
                                 "totp_disable", "recovery_codes")]


class Point:
    """A place; number is the index of the slot in the file."""

    def __init__(self, number, name, program, point, key, can_fail, sentence):
        self.number = number
        self.name = name
        self.program = program
        self.point = point
        self.key = key
        self.can_fail = can_fail
        self.sentence = sentence
        self.programs = (API, WORKER) if program == ANY else (program,)


def fault_points():
    """Returns the rows of the header's table in the same order: name -> True if the step can fail."""
    with open(HEADER, encoding="utf-8") as file:
        text = re.sub(r"\s*\\\n\s*", " ", file.read())
    return {name: can == "FAILS" for name, can in re.findall(r'FAULT\([A-Z_]+, "([a-z_.]+)", (DIES|FAILS), "[^"]*"\)', text)}


def table(remotes=None):
    """Returns the places of a list (by default PLACES) in the same order."""
    remotes = PLACES if remotes is None else remotes
    known = fault_points()
    for name, _, point, _, can, _ in remotes:
        assert point in known and (can == "DIES" or known[point]), f"{name}: the header has no point {point} that {can}"
    assert all(len(place[3]) < 96 for place in remotes)
    return [Point(number, name, program, point, key, can == "FAILS", sentence)
            for number, (name, program, point, key, can, sentence) in enumerate(remotes)]


class Faults:
    """The file of a stack; the programs see changes immediately."""

    def __init__(self, path, remotes=None):
        self.path = path
        self.points = {point.name: point for point in table(remotes)}
        numbers = {name: number for number, name in enumerate(fault_points())}
        with open(path, "wb") as file:
            for point in self.points.values():
                program = ord(point.program) if point.program else 0
                file.write(SLOT.pack(numbers[point.point], NOTHING, program, 0, 0, 0, 0, 0, point.key.encode()))
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 0)

    def read(self, name):
        return SLOT.unpack_from(self.map, self.points[name].number * SLOT.size)

    def passed(self, name):
        return self.read(name)[6]

    def taken(self, name):
        return self.read(name)[7]

    def arm(self, name, action, nth=1, width=1, delay_ms=0, program=""):
        """Arms a point for width times from the nth on, in one program or in any program."""
        at = self.points[name].number * SLOT.size + 4
        program = program or self.points[name].program
        struct.pack_into("=i", self.map, at, NOTHING)
        struct.pack_into("=iiii", self.map, at + 4, ord(program) if program else 0, nth, width, delay_ms)
        struct.pack_into("=i", self.map, at, ACTIONS[action])

    def disarm(self):
        for point in self.points.values():
            at = point.number * SLOT.size + 4
            struct.pack_into("=ii", self.map, at, NOTHING, ord(point.program) if point.program else 0)
