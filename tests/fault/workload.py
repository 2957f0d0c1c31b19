"""A mixed workload of clients that retry, and their records of the responses."""
import datetime
import hashlib
import http.client
import random
import threading
import time
import uuid

import pictures
from client import ORDERS

# Statuses that clients may get during a breakage; others are violations.
AWAY = (502, 503, 504)


class Violation(Exception):
    pass


class PictureSet:
    """Pictures made once and used by every round: name, bytes, size."""

    def __init__(self):
        make = {"jpg": pictures.jpeg, "png": pictures.png, "webp": pictures.webp}
        self.pictures = [(form, *shape, make[form](*shape, seed=number))
                         for number, (form, shape) in enumerate([("jpg", (300, 280)), ("png", (256, 260)),
                                                                 ("webp", (288, 256)), ("jpg", (320, 256))])]
        self.marked = None  # (text, bytes)

    def draw(self, random_):
        form, width, height, data = random_.choice(self.pictures)
        return form, (width, height), data


class Expected:
    """One file of an order and its expected outcome."""

    def __init__(self, name, size, copies=1, target=None):
        self.name, self.size, self.copies, self.target = name, size, copies, target


class Order:
    """A client's view of an order."""

    def __init__(self, kind):
        self.kind = kind
        self.key = uuid.uuid4().hex
        self.ids = set()
        self.id = None
        self.acknowledged = None  # time.monotonic()
        self.files = []
        self.is_started = False   # a confirmation or the last upload was acknowledged
        self.is_given_up = False  # the client never starts it
        self.wanted = "complete"
        self.text = None          # the text that an extraction must find


class Workload:
    def __init__(self, client, remotes, picture_set, seed, seconds=300):
        self.client = client
        self.remotes = remotes
        self.picture_set = picture_set
        self.random = random.Random(seed)
        self.seed = seed
        self.end = time.monotonic() + seconds
        self.late_s = 0  # seconds for which an acknowledged order may be missing
        self.orders = []
        self.violations = []
        self.transient = 0
        self.requests = 0
        self.lock = threading.Lock()
        self.is_over = threading.Event()

    # ---- requests with retries

    def violate(self, text):
        with self.lock:
            self.violations.append(text)

    def ask(self, what, act):
        """Makes one attempt; returns the response, or None if the client should retry."""
        with self.lock:
            self.requests += 1
        try:
            answer = act()
        except (OSError, http.client.HTTPException):
            answer = None
        if answer is not None and answer.status == 500:
            self.violate(f"{what}: status 500: {answer}")
        if answer is None or answer.status in AWAY:
            with self.lock:
                self.transient += 1
            if answer is not None and answer.headers["Retry-After"] is None:
                self.violate(f"{what}: {answer.status} without Retry-After")
            return None
        return answer

    def insist(self, what, act, wanted):
        """Repeats until the response has a wanted status. The second value is True if every earlier attempt got a
        response."""
        is_clean = True
        late_end = time.monotonic() + self.late_s
        while time.monotonic() < self.end:
            answer = self.ask(what, act)
            if answer is None or (answer.status == 404 and time.monotonic() < late_end):
                is_clean = False
                time.sleep(0.15)
                continue
            if answer.status in wanted:
                return answer, is_clean
            if answer.status == 409 and not is_clean and answer.code == "ORDER_ALREADY_STARTED":
                return answer, False  # an earlier attempt succeeded without a response
            raise Violation(f"{what}: {answer}")
        raise Violation(f"{what}: no answer within the time of a round")

    # ---- the steps of an order

    def create(self, order, path, body, twin=False):
        body = {"idempotencyKey": order.key, **body}
        with self.lock:
            self.orders.append(order)

        def post():
            answer = self.ask(f"create {order.kind}", lambda: self.client.post(f"{ORDERS}/{path}", body))
            if answer is not None and answer.status in (200, 201):
                order.ids.add(answer.data["orderId"])
            return answer
        twins = [threading.Thread(target=post)] if twin else []
        for thread in twins:
            thread.start()
        answer, _ = self.insist(f"create {order.kind}", lambda: self.client.post(f"{ORDERS}/{path}", body), (200, 201))
        order.ids.add(answer.data["orderId"])
        order.acknowledged, order.id = time.monotonic(), answer.data["orderId"]
        for thread in twins:
            thread.join()
        return answer.data

    def upload(self, order, url, data, is_first=True):
        answer, is_clean = self.insist(f"upload for {order.kind}", lambda: self.client.upload(url, data), (200, 201))
        if answer.status in (200, 201) and answer.headers["ETag"].strip('"') != hashlib.sha256(data).hexdigest():
            self.violate(f"upload for {order.kind}: ETag {answer.headers['ETag']}")
        if is_clean and is_first and answer.status != 201:
            self.violate(f"upload for {order.kind}: {answer.status} for a first upload")

    def confirm(self, order):
        self.insist(f"confirm {order.kind}", lambda: self.client.confirm(order.id), (200,))
        order.is_started = True

    # ---- clients

    def protect(self, random_, kind="protect", count=2, confirm=True, twin=True):
        order = Order(kind)
        chosen = [self.picture_set.draw(random_) for _ in range(count)]
        names = [f"{number}.{form}" for number, (form, _, _) in enumerate(chosen)]
        created = self.create(order, "anti-ai", {"files": [{"fileName": name} for name in names]}, twin=twin)
        order.files = [Expected(name, size) for name, (_, size, _) in zip(names, chosen)]
        for file, (_, _, data) in zip(created["files"], chosen):
            self.upload(order, file["uploadUrl"], data)
        if confirm:
            self.confirm(order)
        else:
            order.is_given_up = True

    def replace(self, random_):
        """Uploads a file a second time, which replaces the first upload."""
        order = Order("replace")
        first, second = self.picture_set.pictures[0], self.picture_set.pictures[3]
        created = self.create(order, "anti-ai", {"files": [{"fileName": "a.jpg"}]})
        order.files = [Expected("a.jpg", second[1:3])]
        self.upload(order, created["files"][0]["uploadUrl"], first[3])
        self.upload(order, created["files"][0]["uploadUrl"], second[3], is_first=False)
        self.confirm(order)

    def wait_left(self, random_):
        self.protect(random_, "never confirmed", 1, confirm=False, twin=False)

    def embed(self, random_):
        order = Order("embed")
        form, size, data = self.picture_set.draw(random_)
        texts = [f"copy {number} of round {self.seed}" for number in range(2)]
        created = self.create(order, "wtr-embed", {"files": [
            {"fileName": f"a.{form}", "watermarks": [{"text": text} for text in texts]}]}, twin=True)
        order.files = [Expected(f"a.{form}", size, copies=2)]
        self.upload(order, created["files"][0]["uploadUrl"], data)
        order.is_started = True

    def extract(self, random_):
        order = Order("extract")
        order.text, data = self.picture_set.marked
        order.wanted = "detected"
        created = self.create(order, "wtr-extract", {"file": {"fileName": "suspect.jpg"}})
        order.files = [Expected("suspect.jpg", None, copies=0)]
        self.upload(order, created["file"]["uploadUrl"], data)
        order.is_started = True

    def sources(self, random_, count):
        names = []
        for _ in range(count):
            form, size, data = self.picture_set.draw(random_)
            path = f"/source/{uuid.uuid4().hex}.{form}"
            self.remotes.gives[path] = data
            names.append((f"{len(names)}.{form}", size, path))
        return names

    def by_url(self, random_):
        order = Order("by URL")
        names = self.sources(random_, 2)
        self.create(order, "anti-ai/with-urls", {"files": [{"fileName": name, "imageUrl": self.remotes.url(path)}
                                                           for name, _, path in names]}, twin=True)
        order.files = [Expected(name, size) for name, size, _ in names]
        order.is_started = True

    def targets(self, count):
        paths = [f"/target/{uuid.uuid4().hex}" for _ in range(count)]
        until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=30)
        return paths, [{"fileKey": "k", "url": self.remotes.url(path), "presignedUrlExpiresAt": until.strftime("%Y-%m-%dT%H:%M:%SZ")}
                       for path in paths]

    def zero_copy(self, random_):
        order = Order("zero copy")
        names = self.sources(random_, 2)
        paths, targets = self.targets(2)
        self.create(order, "anti-ai/with-urls", {"files": [{"fileName": name, "imageUrl": self.remotes.url(path)}
                                                           for name, _, path in names],
                                                 "mode": {"zeroCopy": True}, "outputTargets": targets})
        order.files = [Expected(name, size, target=path) for (name, size, _), path in zip(names, paths)]
        order.is_started = True

    def zero_copy_upload(self, random_):
        order = Order("zero copy by upload")
        form, size, data = self.picture_set.draw(random_)
        paths, targets = self.targets(1)
        created = self.create(order, "anti-ai", {"files": [{"fileName": f"a.{form}"}], "mode": {"zeroCopy": True},
                                                 "outputTargets": targets})
        order.files = [Expected(f"a.{form}", size, target=paths[0])]
        self.upload(order, created["files"][0]["uploadUrl"], data)
        self.confirm(order)

    def broken(self, random_):
        order = Order("broken picture")
        order.wanted = "failed"
        created = self.create(order, "anti-ai", {"files": [{"fileName": "broken.jpg"}]})
        order.files = [Expected("broken.jpg", None, copies=0)]
        self.upload(order, created["files"][0]["uploadUrl"], self.picture_set.pictures[0][3][:3000])
        self.confirm(order)

    def looker(self, random_):
        """A client that reads continuously; data may be late, but never wrong."""
        while not self.is_over.wait(0.05):
            with self.lock:
                known = [order for order in self.orders if order.id]
            acts = [("list", lambda: self.client.list(limit=5)),
                    ("statistics", lambda: self.client.get(f"{ORDERS}/stats/recent"))]
            if known:
                chosen = random_.choice(known)
                acts.append(("detail", lambda: self.client.detail(chosen.id)))
            what, act = random_.choice(acts)
            asked = time.monotonic()
            answer = self.ask(what, act)
            is_late = what == "detail" and asked < chosen.acknowledged + self.late_s
            if answer is not None and answer.status != 200 and not (answer.status == 404 and is_late):
                self.violate(f"{what}: {answer}")

    # ---- all clients

    def run(self):
        """Runs every client once, in parallel; each starts a little later than the client before."""
        customers = [self.protect, self.embed, self.by_url, self.zero_copy, self.extract, self.replace,
                     self.zero_copy_upload, self.broken, self.wait_left]
        self.random.shuffle(customers)
        seeds = [self.random.random() for _ in customers]

        def serve(customer, seed):
            try:
                customer(random.Random(seed))
            except Violation as violation:
                self.violate(str(violation))
            except Exception as error:  # an exception in the test is a violation too
                self.violate(f"{customer.__name__}: {error!r}")
        looker = threading.Thread(target=self.looker, args=(random.Random(self.seed),))
        looker.start()
        threads = []
        for customer, seed in zip(customers, seeds):
            threads.append(threading.Thread(target=serve, args=(customer, seed)))
            threads[-1].start()
            time.sleep(0.04)
        for thread in threads:
            thread.join()
        return looker
