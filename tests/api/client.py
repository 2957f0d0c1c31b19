"""A small client of the service. It uses only the standard library.

Every call returns an Answer: status, headers, body bytes and parsed JSON. Only until_served() asserts.
"""
import configparser
import contextlib
import hashlib
import http.client
import io
import json
import os
import shlex
import shutil
import signal
import ssl
import subprocess
import time
import urllib.parse
import uuid

import openapi

ORDERS = "/api/v2/orders"
ENDED = ("complete", "failed", "expired", "detected", "undetected")


def environment_read(path):
    """Returns the variables of a dev.env file."""
    with open(path, encoding="utf-8") as file:
        words = shlex.split(file.read(), comments=True)
    return dict(word.split("=", 1) for word in words)


def children(pid):
    """Returns the ids of the children of a process, except those that are reaped."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return {int(word) for word in file.read().split()}
    except (FileNotFoundError, ProcessLookupError):
        return set()


def until_served(request, *good, seconds=60):
    """Repeats a request while the response is 502 or 503, which a stopping pool gives."""
    end = time.monotonic() + seconds
    while (answer := request()).status in (502, 503) and time.monotonic() < end:
        time.sleep(0.3)
    assert answer.status in good, answer
    return answer


def repeated(headers):
    """Returns the names of headers that occur more than once, except Cache-Control, a list that may have several lines."""
    names = [name.lower() for name in headers.keys() if name.lower() != "cache-control"]
    return sorted({name for name in names if names.count(name) > 1})


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def data(self):
        return self.json["data"]

    @property
    def items(self):
        """Returns the only array of a list response."""
        [items] = [value for name, value in self.data.items() if name != "pageInfo"]
        return items

    @property
    def page(self):
        """Returns the pageInfo of a list response."""
        return self.data["pageInfo"]

    @property
    def code(self):
        return self.json["code"]

    def fields(self):
        """Returns the fields in details of a validation error."""
        return [detail["field"] for detail in self.json.get("details", [])]

    def __repr__(self):
        return f"<{self.status} {self.body[:600]!r}>"


class Stack:
    """A running stack, described by a dev.env file."""

    def __init__(self, environment):
        self.environment = environment
        self.url = environment["IMGWARD_URL"]
        self.run = environment["IMGWARD_RUN"]
        self.store = environment["IMGWARD_STORE"]
        self.tls = ssl.create_default_context(cafile=environment["IMGWARD_CA"])

    def key(self, plan):
        return self.environment["IMGWARD_KEY_" + plan.upper()]

    def ctl(self, *words, check=True):
        """Runs imgwardctl; returns its standard output."""
        done = subprocess.run(
            [self.environment["IMGWARD_CTL"], "--config", self.environment["IMGWARD_CONFIG"], *words],
            capture_output=True, text=True, timeout=180)
        if check and done.returncode != 0:
            raise RuntimeError(f"imgwardctl {' '.join(words)}: {done.returncode}: {done.stderr}")
        return done.stdout

    def part(self, verb, name):
        """Starts, stops or kills (-9) a part: mariadbd, redis, api, worker, nginx."""
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        subprocess.run([os.path.join(root, "dev"), "stack", verb, name], check=True, timeout=300,
                       env={**os.environ, "IMGWARD_VAR": self.environment["IMGWARD_VAR"],
                            "IMGWARD_BUILD": self.environment["IMGWARD_BUILD"]},
                       stdout=subprocess.DEVNULL)

    def reload(self, seconds=120):
        """Sends HUP to API, console and worker. Waits until each has logged the reload and the old pool processes are gone."""
        asked = [self.hangup(name) for name in ("api", "console", "worker")]
        end = time.monotonic() + seconds
        for has_heard in filter(None, asked):
            while not has_heard():
                if time.monotonic() > end:
                    raise TimeoutError(f"no reload within {seconds} s")
                time.sleep(0.02)

    def hangup(self, name):
        """Sends HUP to a part. Returns a function that tests whether the reload is finished, or None if the part does not
        run."""
        log = os.path.join(self.environment["IMGWARD_LOG"], name + ".log")
        try:
            size, pid = os.path.getsize(log), self.pid(name)
            before = children(pid) if name in ("api", "console") else set()
            os.kill(pid, signal.SIGHUP)
        except (FileNotFoundError, ProcessLookupError, ValueError):
            return None

        def has_heard():
            with open(log, "rb") as file:
                file.seek(size)
                text = file.read()
            # A part that died for another reason starts with the current file.
            if b'"event":"reload_refused"' in text or not os.path.exists(f"/proc/{pid}"):
                return True
            return b'"event":"reloaded"' in text and not before & children(pid)
        return has_heard

    def configure(self, text):
        """Replaces the configuration file atomically."""
        path = self.environment["IMGWARD_CONFIG"]
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        shutil.copymode(path, path + ".new")
        os.replace(path + ".new", path)

    @contextlib.contextmanager
    def configured(self, section, key, value):
        """Sets one key of the configuration for the duration of the block."""
        with open(self.environment["IMGWARD_CONFIG"], encoding="utf-8") as file:
            before = file.read()
        parser = configparser.RawConfigParser()
        parser.read_string(before)
        if not parser.has_section(section):
            parser.add_section(section)
        parser.set(section, key, value)
        after = io.StringIO()
        parser.write(after)
        try:
            self.configure(after.getvalue())
            self.reload()
            yield
        finally:
            self.configure(before)
            self.reload()

    def pid(self, name):
        with open(os.path.join(self.run, name + ".pid"), encoding="ascii") as file:
            return int(file.read())

    def worker_places(self, seconds=120):
        """Returns the number of image processes, which the worker writes to the database after the start."""
        end = time.monotonic() + seconds
        while not (rows := self.sql(f"SELECT places FROM workers WHERE pid = {self.pid('worker')}")):
            assert time.monotonic() < end, "the worker does not say that it is there"
            time.sleep(0.1)
        return int(rows[0][0])

    def sql(self, statement):
        """Runs a statement as the administrator of the database; returns the rows as lists of text.

        As in the programs, a statement reads committed rows. The client escapes line feeds and tabs in values, but no other
        line ends, which a digest may contain.
        """
        done = subprocess.run(
            ["mariadb", "--no-defaults", "-N", "-B", "-S", self.environment["IMGWARD_DB_SOCKET"], "imgward",
             "--init-command=SET tx_isolation = 'READ-COMMITTED'", "-e", statement], capture_output=True, timeout=180, check=True)
        return [line.split("\t") for line in done.stdout.decode(errors="replace").split("\n")[:-1]]

    def connections_kill(self):
        """Kills every database connection of the service; a connection may be closed already."""
        for number, user in (row[:2] for row in self.sql("SHOW PROCESSLIST")):
            if user == "imgward" or user.startswith("imgward_"):
                with contextlib.suppress(subprocess.CalledProcessError):
                    self.sql(f"KILL {number}")

    def stored(self, order):
        """Returns the order's files in the store: the first folder of each path."""
        return sorted(os.path.relpath(folder, self.store).split(os.sep)[0]
                      for folder, _, names in os.walk(self.store) for name in names
                      if str(order) in os.path.join(folder, name))

    def settled(self, order, seconds=60):
        """Waits until the inputs of a finished order are deleted, which happens after the end."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and (
                self.sql(f"SELECT 1 FROM files WHERE order_id = {order} AND store_key IS NOT NULL")
                or {"in", "original"} & set(self.stored(order))):
            time.sleep(0.1)

    def emptied(self, order, seconds=60):
        """Waits until the store contains no file of the order."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.stored(order):
            time.sleep(0.1)

    def redis(self, *words):
        done = subprocess.run(["redis-cli", "-s", self.environment["IMGWARD_REDIS_SOCKET"], *words],
                              capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.strip()

    def account_new(self, plan="enterprise", requests_per_minute=1000000):
        """Creates an account; returns a client with the key. By default, no test reaches the rate limit."""
        name = "test-" + uuid.uuid4().hex[:12]
        account = self.ctl("account", "create", "--plan", plan, name).split()[-1]
        if requests_per_minute is not None:
            self.ctl("account", "plan", "--requests-per-minute", str(requests_per_minute), account, plan)
        return Client(self, self.key_new(account), account)

    def key_new(self, account, *options):
        output = self.ctl("key", "create", *options, account)
        return next(word for word in output.split() if word.startswith("iw_live_"))


class Client:
    """Calls the API over HTTPS with one key. Each call opens a connection, unless it is kept."""

    def __init__(self, stack, key=None, account=None):
        self.stack = stack
        self.key = key
        self.account = account

    def request(self, method, path, body=None, headers=None, key=True, timeout=180):
        """Sends a request. path may be an absolute URL for an upload or download, which gets no key."""
        target = urllib.parse.urlsplit(path)
        base = urllib.parse.urlsplit(self.stack.url)
        sent = dict(headers or {})
        if key and self.key and not target.netloc and "Authorization" not in sent:
            sent["Authorization"] = "Bearer " + self.key
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        if isinstance(body, str):
            body = body.encode()
        place = target.path + ("?" + target.query if target.query else "")
        connection = http.client.HTTPSConnection(target.hostname or base.hostname, target.port or base.port,
                                                 context=self.stack.tls, timeout=timeout)
        try:
            connection.request(method, place, body=body, headers=sent)
            answer = connection.getresponse()
            given = Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()
        openapi.check(method, place, given)
        return given

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.request("POST", path, body, **more)

    def put(self, path, body=None, **more):
        return self.request("PUT", path, body, **more)

    # The steps of an order.

    def create(self, files=("a.jpg",), key=None, kind="anti-ai", **fields):
        """Sends a creation; files are names or whole file objects."""
        body = {"idempotencyKey": key or uuid.uuid4().hex,
                "files": [file if isinstance(file, dict) else {"fileName": file} for file in files]}
        body.update(fields)
        return self.post(f"{ORDERS}/{kind}", body)

    def upload(self, url, data, **headers):
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.request("PUT", url, data, headers=names, key=False)

    def confirm(self, order, key=None):
        return self.post(f"{ORDERS}/anti-ai/confirm",
                         {"idempotencyKey": key or uuid.uuid4().hex, "orderId": str(order)})

    def detail(self, order):
        return self.get(f"{ORDERS}/{order}")

    def list(self, **query):
        return self.get(ORDERS + ("?" + urllib.parse.urlencode(query) if query else ""))

    def wait(self, order, seconds=240, until=ENDED):
        """Returns the order's data when the status is one of until; raises after the given seconds."""
        end = time.monotonic() + seconds
        while True:
            answer = self.detail(order)
            if answer.status == 200 and answer.data["status"] in until:
                return answer.data
            if time.monotonic() > end:
                raise TimeoutError(f"order {order} after {seconds} s: {answer}")
            time.sleep(0.1)

    def download(self, order):
        """Returns the bytes of the order's result: a picture or a ZIP."""
        url = self.get(f"{ORDERS}/{order}/download").data["downloadUrl"]
        return self.request("GET", url, key=False)

    def order_whole(self, pictures, seconds=240, **fields):
        """Creates, uploads, confirms and waits; pictures is a list of (name, bytes)."""
        created = self.create([name for name, _ in pictures], **fields)
        if created.status != 201:
            raise RuntimeError(f"creation: {created}")
        for file, (_, data) in zip(created.data["files"], pictures):
            answer = self.upload(file["uploadUrl"], data)
            if answer.status != 201:
                raise RuntimeError(f"upload: {answer}")
        answer = self.confirm(created.data["orderId"])
        if answer.status != 200:
            raise RuntimeError(f"confirm: {answer}")
        return self.wait(created.data["orderId"], seconds)


def sha256(data):
    return hashlib.sha256(data).hexdigest()
