"""A proxy between the worker and the image process that changes the messages of the image process.

proxied() sets worker.image_program to a copy of this file, which reads plan.json next to it. Each process appends "PID NUMBER"
to served.log for each of its pictures. The keys of a plan:

    program     the real imgward-image
    note        code and message, added to each answer about a processed picture
    is_mapped   keep the result mapped for writing, as a compromised process could
    ends_at     exit for lack of memory at the picture of this number
    grows_at    answer like a process with a grown heap, from the picture of this number on
"""
import array
import contextlib
import json
import mmap
import os
import select
import socket
import struct
import sys

# image_exit_no_memory of src/image/image_protocol.h.
EXIT_NO_MEMORY = 3
# struct image_answer of src/image/image_protocol.h; the last members are the code of the note, the note and the key id.
ERROR_AT, IS_LAST_AT, NOTE_CODE_BYTES, NOTE_BYTES, KEY_ID_BYTES = 16, 20, 40, 512, 24
MESSAGE_BYTES, FILES_MAX = 1 << 17, 8
HERE = os.path.dirname(os.path.abspath(__file__))


@contextlib.contextmanager
def proxied(stack, folder, processes):
    """Yields a function that sets the plan and restarts the worker."""
    program = folder / "image_proxy"

    def restart():
        stack.part("stop", "worker")
        stack.part("start", "worker")

    def set(**plan):
        plan["program"] = os.path.join(stack.environment["IMGWARD_BUILD"], "imgward-image")
        (folder / "plan.json").write_text(json.dumps(plan))
        (folder / "served.log").write_text("")
        restart()
    with open(os.path.join(HERE, "image_proxy.py"), encoding="utf-8") as file:
        program.write_text("#!/usr/bin/python3\n" + file.read())
    program.chmod(0o755)
    with stack.configured("worker", "image_program", str(program)), stack.configured("worker", "processes", str(processes)):
        yield set
    restart()


def noted(answer, note):
    """Adds the note to an answer about a processed picture."""
    kind, ticket = struct.unpack_from("=4xIQ", answer)
    if kind == 0 or struct.unpack_from("=I", answer, ERROR_AT)[0] != 0:
        return answer
    answer = bytearray(answer)
    note_at = len(answer) - KEY_ID_BYTES - NOTE_BYTES
    struct.pack_into(f"{NOTE_CODE_BYTES}s", answer, note_at - NOTE_CODE_BYTES, note["code"].encode())
    struct.pack_into(f"{NOTE_BYTES}s", answer, note_at, note["message"].replace("JOB", str(ticket)).encode())
    return bytes(answer)


class Proxy:
    def __init__(self, plan):
        self.plan, self.number, self.results, self.mapped = plan, 0, [], []

    def request(self, message, files):
        """Counts a picture that the worker sends to the image process."""
        self.number += 1
        with open(os.path.join(HERE, "served.log"), "a", encoding="ascii") as file:
            file.write(f"{os.getpid()} {self.number}\n")
        if self.number == self.plan.get("ends_at"):
            os._exit(EXIT_NO_MEMORY)
        if self.plan.get("is_mapped") and len(files) > 1:
            self.results.append(os.dup(files[1]))
        return message

    def answer(self, message, _):
        """Changes an answer that the image process sends to the worker."""
        if self.results:
            result = self.results.pop()
            self.mapped.append(mmap.mmap(result, os.fstat(result).st_size))
            os.close(result)
        if self.number >= self.plan.get("grows_at", 0) > 0:
            message = message[:IS_LAST_AT] + struct.pack("=I", 1) + message[IS_LAST_AT + 4:]
        return noted(message, self.plan["note"]) if "note" in self.plan else message

    def run(self, worker, image):
        ways = {worker: (image, self.request), image: (worker, self.answer)}
        while True:
            for source in select.select(list(ways), [], [])[0]:
                message, control, _, _ = source.recvmsg(MESSAGE_BYTES, socket.CMSG_SPACE(FILES_MAX * 4))
                if not message:
                    return
                files = array.array("i", b"".join(data for _, _, data in control))
                target, change = ways[source]
                target.sendmsg([change(message, files)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)] if files else [])
                for file in files:
                    os.close(file)


def main():
    with open(os.path.join(HERE, "plan.json"), encoding="utf-8") as file:
        plan = json.load(file)
    worker = socket.socket(fileno=os.dup(3))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        os.dup2(theirs.fileno(), 3)
        os.execv(plan["program"], ["imgward-image", *sys.argv[1:]])
    os.close(3)
    theirs.close()
    Proxy(plan).run(worker, ours)


if __name__ == "__main__":
    main()
