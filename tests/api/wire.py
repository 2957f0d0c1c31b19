"""Raw bytes over the network, which no correct client sends."""
import os
import re
import socket
import struct
import urllib.parse
import uuid


class Wire:
    """One TLS connection from the loopback address source."""

    def __init__(self, stack, source=None, timeout=120):
        parts = urllib.parse.urlsplit(stack.url)
        plain = socket.create_connection((parts.hostname, parts.port), timeout=timeout,
                                         source_address=(source, 0) if source else None)
        self.socket = stack.tls.wrap_socket(plain, server_hostname=parts.hostname)
        self.host = parts.netloc
        self.data = b""  # received after the last response

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data.encode("latin-1") if isinstance(data, str) else data)

    def rest(self):
        """Returns all bytes until the peer closes."""
        data = self.data
        try:
            while piece := self.socket.recv(65536):
                data += piece
        except (ConnectionResetError, BrokenPipeError):
            pass
        return data

    def answer(self):
        """Returns one response with Content-Length: status, headers in lower case, body."""
        while b"\r\n\r\n" not in self.data:
            self.receive()
        head, _, self.data = self.data.partition(b"\r\n\r\n")
        status, headers = head_read(head)
        length = int(headers.get("content-length", ["0"])[0])
        while len(self.data) < length:
            self.receive()
        body, self.data = self.data[:length], self.data[length:]
        return status, headers, body

    def receive(self):
        piece = self.socket.recv(65536)
        if not piece:
            raise EOFError(self.data)
        self.data += piece

    def answers(self, request, count):
        """Returns the responses to count equal requests, sent in one write so that a slow machine reaches a limit, too."""
        self.send(request * count)
        return [self.answer() for _ in range(count)]


def head_read(head):
    lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers.setdefault(name.lower(), []).append(value.strip())
    return int(lines[0].split()[1]), headers


def statuses(data):
    """Returns the statuses of all responses in a stream of bytes, except "100 Continue"."""
    return [int(word) for word in re.findall(rb"(?:^|\r\n|\}|\n)HTTP/1\.1 (\d{3})", data) if word != b"100"]


def fastcgi(stack, parameters, body=b"", is_whole=True):
    """Returns the pool's response to a FastCGI client that bypasses nginx; the body is complete or broken off."""
    def record(kind, content=b""):
        return struct.pack("!BBHHBx", 1, kind, 1, len(content), 0) + content
    given = {"REQUEST_ID": uuid.uuid4().hex, **parameters}
    pairs = b"".join(struct.pack("!BI", len(name), len(value) | 1 << 31) + (name + value).encode() for name, value in given.items())
    pieces = b"".join(record(5, body[at:at + 65535]) for at in range(0, len(body), 65535))
    with socket.socket(socket.AF_UNIX) as pool:
        pool.settimeout(180)
        pool.connect(os.path.join(stack.run, "api.sock"))
        pool.sendall(record(1, struct.pack("!HB5x", 1, 0)) + record(4, pairs) + record(4) + pieces)
        if is_whole:
            pool.sendall(record(5))
        pool.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: pool.recv(65536), b""))


def once(stack, request, **more):
    """Sends bytes on a new connection; returns all received bytes."""
    with Wire(stack, **more) as wire:
        wire.send(request)
        return wire.rest()
