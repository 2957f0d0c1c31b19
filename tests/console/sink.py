"""A mail server that keeps every mail. It has enough of SMTP (RFC 5321) for one client at a time, without TLS."""
import configparser
import contextlib
import email
import email.policy
import io
import socketserver
import threading
import time


class Dropped(Exception):
    """The server closes the connection instead of a reply."""


class Handler(socketserver.StreamRequestHandler):
    def say(self, what, line):
        """Replies with line, or with the entry of the server's table "odd": bytes, or None to close the connection."""
        answer = self.server.odd.get(what, line.encode() + b"\r\n")
        if answer is None:
            raise Dropped
        self.wfile.write(answer)

    def handle(self):
        with contextlib.suppress(Dropped, ConnectionError):
            self.talk()

    def talk(self):
        self.say("greeting", "220 sink ESMTP")
        for line in self.rfile:
            verb = line.strip().upper()
            self.server.lines.append(line.strip().decode())
            if verb.startswith(b"EHLO"):
                self.say("EHLO", "250 sink")
            elif verb.startswith(b"MAIL"):
                self.say("MAIL", "250 OK")
            elif verb.startswith(b"RCPT"):
                recipient = line.partition(b"<")[2].partition(b">")[0].decode()
                is_failing = recipient in self.server.failing
                self.server.failing.discard(recipient)
                self.say("RCPT", "451 try again later" if is_failing else "250 OK")
            elif verb == b"DATA":
                self.say("DATA", "354 go on")
                self.server.mails.append((recipient, self.message()))
                time.sleep(self.server.slow_s)
                self.say("end", "250 OK")
            elif verb.startswith(b"AUTH"):
                self.say("AUTH", "334 ")
                self.rfile.readline()
                self.say("password", "235 2.7.0 welcome")
            elif verb == b"QUIT":
                self.say("QUIT", "221 bye")
                return
            else:
                self.say(verb.decode().split()[0], "250 OK")

    def message(self):
        lines = []
        for line in self.rfile:
            if line == b".\r\n":
                break
            lines.append(line[1:] if line.startswith(b"..") else line)
        return email.message_from_bytes(b"".join(lines), policy=email.policy.default)


class Sink(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.mails, self.odd, self.lines = [], {}, []
        self.slow_s = 0  # from the end of a mail to the reply
        self.failing = set()  # the next mail to each of these recipients fails
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"smtp://127.0.0.1:{self.server_address[1]}"

    def of(self, recipient, seconds=60, count=1):
        """Waits for the mails to a recipient; returns the last."""
        end = time.monotonic() + seconds
        while True:
            found = [message for to, message in list(self.mails) if to == recipient]
            if len(found) >= count:
                return found[-1]
            assert time.monotonic() < end, f"no mail to {recipient}"
            time.sleep(0.05)

    def token(self, recipient, **more):
        """Returns the token of the link in the last mail to a recipient."""
        text = self.of(recipient, **more).get_content()
        return text.partition("token=")[2].split()[0]


@contextlib.contextmanager
def mail_server(stack, sender):
    """A Sink that the stack uses during the block, with this mail.from."""
    server = Sink()
    with open(stack.environment["IMGWARD_CONFIG"], encoding="utf-8") as file:
        before = file.read()
    parser = configparser.RawConfigParser()
    parser.read_string(before)
    parser["mail"] = {"url": server.url, "from": sender, "tls": "no"}
    after = io.StringIO()
    parser.write(after)
    try:
        stack.configure(after.getvalue())
        stack.reload()
        yield server
    finally:
        stack.configure(before)
        stack.reload()
        server.shutdown()
        server.server_close()
