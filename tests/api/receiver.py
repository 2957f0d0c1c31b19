"""A receiver of webhooks, by default on loopback: keeps deliveries and responds as configured."""
import base64
import hashlib
import hmac
import http.server
import json
import threading
import time


class Delivery:
    def __init__(self, path, headers, body):
        self.at = time.monotonic()
        self.path = path
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def id(self):
        return self.headers["webhook-id"]

    def signatures(self):
        return self.headers["webhook-signature"].split(" ")

    def is_signed_with(self, secret):
        """Verifies the signature by the text of the standard, with no code of the service."""
        key = base64.b64decode(secret.removeprefix("whsec_"))
        content = f"{self.id}.{self.headers['webhook-timestamp']}.".encode() + self.body
        digest = hmac.new(key, content, hashlib.sha256).digest()
        return "v1," + base64.b64encode(digest).decode() in self.signatures()


class Receiver:
    """Responds to each path as answers[path] says:

    - a status, or "hang"
    - a (status, headers, body), or a (status, headers, body, seconds before it answers)
    - a list of these, used one by one; the last is repeated
    """

    def __init__(self, address="127.0.0.1"):
        self.answers = {}
        self.deliveries = []
        self.open = {}
        self.open_most = {}
        self.let_gone = set()
        self.changed = threading.Condition()
        self.released = threading.Event()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.take(self, Delivery(self.path, self.headers, body))

            def log_message(self, *words):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 256
            daemon_threads = True

        self.server = Server((address, 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.released.set()
        with self.changed:
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()

    def url(self, path):
        return f"http://{self.server.server_address[0]}:{self.server.server_port}{path}"

    def answer_of(self, path):
        answer = self.answers.get(path, 200)
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        return answer if isinstance(answer, (tuple, str)) else (answer, {}, b"")

    def take(self, handler, delivery):
        with self.changed:
            self.deliveries.append(delivery)
            self.open[delivery.path] = self.open.get(delivery.path, 0) + 1
            self.open_most[delivery.path] = max(self.open_most.get(delivery.path, 0), self.open[delivery.path])
            answer = self.answer_of(delivery.path)
            self.changed.notify_all()
        try:
            if answer == "hang":
                with self.changed:
                    self.changed.wait_for(lambda: self.released.is_set() or delivery.path in self.let_gone, 300)
                self.shut(delivery)
                return
            status, headers, body, *pause = answer
            time.sleep(*pause or (0,))
            self.shut(delivery)
            handler.send_response(status)
            for name, value in headers.items():
                handler.send_header(name, value)
            if "Content-Length" not in headers:
                handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)
        except OSError:
            pass

    def shut(self, delivery):
        """Ends the wait before the response, because the sender may send the next delivery immediately."""
        with self.changed:
            self.open[delivery.path] -= 1
            self.changed.notify_all()

    def let_go(self, path):
        """Ends hanging requests without a response."""
        with self.changed:
            self.let_gone.add(path)
            self.changed.notify_all()

    def at(self, path):
        with self.changed:
            return [delivery for delivery in self.deliveries if delivery.path == path]

    def wait(self, path, count=1, seconds=90):
        """Returns the deliveries to a path when there are count of them; raises after the given seconds."""
        end = time.monotonic() + seconds
        with self.changed:
            while True:
                found = [delivery for delivery in self.deliveries if delivery.path == path]
                if len(found) >= count:
                    return found
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"{len(found)} of {count} deliveries to {path} after {seconds} s")
                self.changed.wait(left)
