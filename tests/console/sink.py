"""A mail server that keeps every mail: enough of SMTP (RFC 5321) for one client at a time, without TLS."""
import email
import email.policy
import socketserver
import threading
import time


class Handler(socketserver.StreamRequestHandler):
    def say(self, line):
        self.wfile.write(line.encode() + b"\r\n")

    def handle(self):
        self.say("220 sink ESMTP")
        recipient = None
        for line in self.rfile:
            verb = line.strip().upper()
            if verb.startswith(b"EHLO"):
                self.say("250 sink")
            elif verb.startswith(b"MAIL") and self.server.failures > 0:
                self.server.failures -= 1
                self.say("451 try again later")
            elif verb.startswith(b"RCPT"):
                recipient = line.partition(b"<")[2].partition(b">")[0].decode()
                self.say("250 OK")
            elif verb == b"DATA":
                self.say("354 go on")
                self.server.mails.append((recipient, self.message()))
                self.say("250 OK")
            elif verb == b"QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 OK")

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
        self.mails, self.failures = [], 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"smtp://127.0.0.1:{self.server_address[1]}"

    def of(self, recipient, seconds=60, count=1):
        """Waits for the mails to a recipient; the last one."""
        end = time.monotonic() + seconds
        while True:
            found = [message for to, message in list(self.mails) if to == recipient]
            if len(found) >= count:
                return found[-1]
            assert time.monotonic() < end, f"no mail to {recipient}"
            time.sleep(0.05)

    def token(self, recipient, **more):
        """The token of the link in the last mail to a recipient."""
        text = self.of(recipient, **more).get_content()
        return text.partition("token=")[2].split()[0]
