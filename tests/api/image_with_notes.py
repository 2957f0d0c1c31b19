"""A proxy between the worker and the image process that adds a note to each answer.

test_5_notes.py writes note.json next to a copy of this file and sets worker.image_program to the copy. With "maps"
it also keeps the result mapped for writing, as a process that a picture has taken over could.
"""
import array
import json
import mmap
import os
import select
import socket
import struct
import sys

# struct image_answer of src/image/image_protocol.h; it ends with the code of the note, the note and the id of the key.
ERROR_AT, NOTE_CODE_BYTES, NOTE_BYTES, KEY_ID_BYTES = 16, 40, 512, 24
MESSAGE_BYTES, FILES_MAX = 1 << 17, 8


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


def main():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "note.json"), encoding="utf-8") as file:
        note = json.load(file)
    worker = socket.socket(fileno=os.dup(3))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        os.dup2(theirs.fileno(), 3)
        os.execv(note["program"], ["imgward-image", *sys.argv[1:]])
    os.close(3)
    theirs.close()
    results, mapped = [], []
    while True:
        for source in select.select([worker, ours], [], [])[0]:
            message, control, _, _ = source.recvmsg(MESSAGE_BYTES, socket.CMSG_SPACE(FILES_MAX * 4))
            if not message:
                return
            files = array.array("i", b"".join(data for _, _, data in control))
            if source is worker and note["maps"] and len(files) > 1:
                results.append(os.dup(files[1]))
            if source is ours and results:
                result = results.pop()
                mapped.append(mmap.mmap(result, os.fstat(result).st_size))
                os.close(result)
            if source is ours:
                worker.sendmsg([noted(message, note)])
            else:
                ours.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)] if files else [])
            for file in files:
                os.close(file)


main()
