"""Sources and output targets, by default on loopback, with correct and with faulty behaviour."""
import http.server
import threading
import time


class Remotes:
    """Responds to GET as gives[path] says, and to PUT as takes[path] says. A behaviour is one of:

    - a status, bytes (200), or a (status, headers, body)
    - "hang", "endless", "cut", ("slow", body)
    - ("gate", event, body): waits half-way for the event
    - ("pause", seconds, behaviour): waits before the response
    - a function of the request's headers that returns a behaviour
    - a list of behaviours, used one by one; the last is repeated

    put[path] keeps received bodies as (headers, body). With tls, an ssl.SSLContext of a server, it serves HTTPS.
    """

    def __init__(self, tls=None, address="127.0.0.1"):
        self.gives = {}
        self.takes = {}
        self.put = {}
        self.asked = []
        self.open = 0
        self.open_most = 0
        self.lock = threading.Lock()
        self.changed = threading.Condition()
        self.let_gone = set()
        self.released = threading.Event()
        remotes = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                remotes.serve(self, remotes.gives, 404)

            def do_PUT(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                remotes.serve(self, remotes.takes, 200, lambda: remotes.put.setdefault(self.path, []).append((self.headers, body)))

            def log_message(self, *words):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 256
            daemon_threads = True

            def handle_error(self, request, client_address):
                """Ignores clients that refuse a certificate, because tests expect that."""

        self.scheme = "https" if tls else "http"
        self.server = Server((address, 0), Handler)
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.released.set()
        with self.changed:
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()

    def let_go(self, path):
        """Ends hanging requests without a response."""
        with self.changed:
            self.let_gone.add(path)
            self.changed.notify_all()

    def url(self, path):
        return f"{self.scheme}://{self.server.server_address[0]}:{self.server.server_port}{path}"

    def count(self, path):
        with self.lock:
            return sum(1 for asked, _, _ in self.asked if asked == path)

    def times(self, path):
        with self.lock:
            return [at for asked, at, _ in self.asked if asked == path]

    def headers(self, path):
        with self.lock:
            return next(headers for asked, _, headers in self.asked if asked == path)

    def what(self, handler, table, default):
        with self.lock:
            self.asked.append((handler.path, time.monotonic(), dict(handler.headers)))
            handler.is_open = True
            self.open += 1
            self.open_most = max(self.open_most, self.open)
            answer = table.get(handler.path, default)
            if isinstance(answer, list):
                answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if isinstance(answer, tuple) and answer[0] == "pause":
            self.released.wait(answer[1])
            answer = answer[2]
        if callable(answer):
            answer = answer(handler.headers)
        if isinstance(answer, int):
            return answer, {}, b""
        return (200, {}, answer) if isinstance(answer, bytes) else answer

    def serve(self, handler, table, default, keep=lambda: None):
        """Keeps a received body before the response, so that a test that receives the response finds the body."""
        answer = self.what(handler, table, default)
        try:
            if answer == "hang":
                with self.changed:
                    self.changed.wait_for(lambda: self.released.is_set() or handler.path in self.let_gone, 300)
                return None
            if answer == "endless":
                return self.endless(handler)
            if answer[0] in (200, 201, 202, 204, "gate", "slow", "cut"):
                keep()
            if answer[0] == "gate":
                return self.halt(handler, *answer[1:])
            if answer[0] == "slow":
                return self.slow(handler, answer[1])
            if answer[0] == "cut":
                return self.send(handler, 200, {}, answer[1], cut=True)
            return self.send(handler, *answer)
        except OSError:
            return None
        finally:
            self.shut(handler)

    def shut(self, handler):
        with self.lock:
            self.open -= handler.is_open
            handler.is_open = False

    def send(self, handler, status, headers, body, cut=False):
        self.shut(handler)  # before the response, because the service may send the next request immediately
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        if "Content-Length" not in headers:
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[:len(body) // 2] if cut else body)
        return status

    def endless(self, handler):
        """Sends the beginning of a JPEG without an end and without a length."""
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01")
        while not self.released.is_set():
            handler.wfile.write(bytes(65536))

    def halt(self, handler, event, body):
        """Sends one half, and the other half after the event."""
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[:len(body) // 2])
        handler.wfile.flush()
        event.wait(300)
        handler.wfile.write(body[len(body) // 2:])
        return 200

    def slow(self, handler, body):
        """Sends the body in about three seconds."""
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        for at in range(30):
            handler.wfile.write(body[at * len(body) // 30:(at + 1) * len(body) // 30])
            handler.wfile.flush()
            self.released.wait(0.1)
        return 200
