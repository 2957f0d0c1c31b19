"""A proxy between the service and MariaDB that tears responses between two rows.

It reads the packets of the protocol: https://mariadb.com/kb/en/0-packet/. A response with rows is column count, column
definitions, EOF, rows, EOF. A torn response ends after the first row, in one of these ways:

cut     the connection ends
error   an error packet follows, as after KILL QUERY

Two more ways concern the commit of an upload or of a lease: the connection ends before the commit (uncommitted) or before
the response to it (committed). Other commits pass.
"""
import contextlib
import os
import socket
import threading
import time

PREPARE, EXECUTE, EOF_HEAD, ERROR_HEAD = 0x16, 0x17, 0xFE, 0xFF
COMMIT = b"\x03COMMIT"
UPLOAD = b"UPDATE files SET status = 'uploaded'"
LEASE = b"UPDATE jobs SET status = 'leased'"
INTERRUPTED = 1317


class Answer:
    """The progress of one response: the packet that comes next."""

    def __init__(self):
        self.part, self.rows = "count", 0

    def take(self, packet):
        """Records a packet; returns its kind: head, row or end."""
        is_eof = packet[4] == EOF_HEAD and len(packet) < 13
        if self.part == "count":
            self.part = "end" if packet[4] in (0, ERROR_HEAD) else "definitions"
        elif self.part == "definitions" and is_eof:
            self.part = "rows"
        elif self.part == "rows":
            if is_eof or packet[4] == ERROR_HEAD:
                self.part = "end"
                return "end"
            self.rows += 1
            return "row"
        return "head"


class Proxy:
    """Listens on path and forwards to the server's socket. Tears responses while how is set."""

    def __init__(self, path, server):
        self.path, self.server = path, server
        self.how, self.every, self.of = None, 1, UPLOAD
        self.torn, self.seen, self.sent_at, self.silence_s = 0, 0, time.monotonic(), 0.0
        self.lock = threading.Lock()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(64)
        threading.Thread(target=self.serve, daemon=True).start()

    def close(self):
        self.listener.close()
        os.unlink(self.path)

    def tear(self, how, every=1, of=UPLOAD):
        """Tears each every-th response of at least two rows, or the next commit of such a statement; None tears nothing."""
        self.how, self.every, self.of = how, every, of
        self.sent_at, self.silence_s = time.monotonic(), 0.0

    def serve(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.server)
            state = {"answer": None, "is_lost": False, "prepared": None, "known": {}, "ran": set()}
            for run, *ends in ((self.requests, client, server), (self.answers, server, client)):
                threading.Thread(target=run, args=(*ends, state), daemon=True).start()

    def requests(self, client, server, state):
        """Forwards from client to server. Records each execution, and the longest time without a request."""
        with contextlib.suppress(OSError):
            while packet := packet_read(client):
                with self.lock:
                    now = time.monotonic()
                    self.silence_s, self.sent_at = max(self.silence_s, now - self.sent_at), now
                state["answer"] = Answer() if packet[4] == EXECUTE else None
                state["prepared"] = packet[5:] if packet[4] == PREPARE else None
                if packet[4] == EXECUTE and packet[5:9] in state["known"]:
                    state["ran"].add(state["known"][packet[5:9]])
                if packet[4:] == COMMIT:
                    is_of, state["ran"] = self.of in state["ran"], set()
                    if is_of and self.how == "uncommitted":
                        self.how = None
                        break
                    if is_of and self.how == "committed":
                        self.how, state["is_lost"] = None, True
                server.sendall(packet)
        end(client, server)

    def answers(self, server, client, state):
        with contextlib.suppress(OSError):
            while packet := packet_read(server):
                if state["is_lost"]:
                    break
                if state["prepared"] is not None:
                    note_statement(state, packet)
                answer = state["answer"]
                kind = answer.take(packet) if answer else "head"
                if kind == "row" and answer.rows == 2 and self.how in ("cut", "error") and self.is_torn():
                    if self.how == "cut":
                        break
                    message = b"\xff" + INTERRUPTED.to_bytes(2, "little") + b"#70100Query execution was interrupted"
                    client.sendall(len(message).to_bytes(3, "little") + packet[3:4] + message)
                    while answer.take(packet_read(server)) == "row":
                        pass
                    continue
                client.sendall(packet)
        end(client, server)

    def is_torn(self):
        with self.lock:
            self.seen += 1
            is_torn = self.seen % self.every == 0
            self.torn += is_torn
            return is_torn


def note_statement(state, packet):
    """Records the response to a preparation: the statement's number, if the statement is that of an upload or of a lease."""
    for statement in (UPLOAD, LEASE):
        if packet[4] == 0 and state["prepared"].startswith(statement):
            state["known"][packet[5:9]] = statement
    state["prepared"] = None


def end(*sockets):
    for one in sockets:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


def bytes_read(stream, count):
    got = b""
    while len(got) < count:
        more = stream.recv(count - len(got))
        if not more:
            return b""
        got += more
    return got


def packet_read(stream):
    """Returns a packet with the head of 4 bytes; b"" at the end."""
    head = bytes_read(stream, 4)
    return head + bytes_read(stream, int.from_bytes(head[:3], "little")) if head else b""
