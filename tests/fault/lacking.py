"""A proxy between the worker and the image process that behaves like a process without memory.

test_image_memory.py writes plan.json next to a copy of this file and sets worker.image_program to the copy. Each
process appends "PID NUMBER" to served.log for each of its pictures. It exits at the picture of number ends_at, and
answers like a process that grew from the picture of number grows_at on.
"""
import array
import json
import os
import select
import socket
import struct
import sys

# image_exit_no_memory of src/image/image_protocol.h.
EXIT_NO_MEMORY = 3
# struct image_answer of src/image/image_protocol.h.
IS_LAST_AT = 20
MESSAGE_BYTES, FILES_MAX = 1 << 17, 8
HERE = os.path.dirname(os.path.abspath(__file__))


def picture_count(number):
    with open(os.path.join(HERE, "served.log"), "a", encoding="ascii") as file:
        file.write(f"{os.getpid()} {number}\n")


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
    number = 0
    while True:
        for source in select.select([worker, ours], [], [])[0]:
            message, control, _, _ = source.recvmsg(MESSAGE_BYTES, socket.CMSG_SPACE(FILES_MAX * 4))
            if not message:
                return
            files = array.array("i", b"".join(data for _, _, data in control))
            if source is worker:
                number += 1
                picture_count(number)
                if number == plan["ends_at"]:
                    os._exit(EXIT_NO_MEMORY)
            elif number >= plan["grows_at"] > 0:
                message = message[:IS_LAST_AT] + struct.pack("=I", 1) + message[IS_LAST_AT + 4:]
            target = ours if source is worker else worker
            target.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)] if files else [])
            for file in files:
                os.close(file)


main()
