"""The breakages of a round: each breaks one thing at a random time and repairs it at the end."""
import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.parse
import uuid

from client import ORDERS

# The breakage that must happen before a fault point is reached.
PROVOKED = {"pool.forked": "api process", "pool.reaped": "api process", "child.started": "api process",
            "pool.reloaded": "api reload", "worker.started": "worker", "worker.swept": "worker",
            "reclaim.begun": "worker", "image.started": "image process", "image.spawning": "image process"}


class Setting:
    """The parts on which breakages act."""

    def __init__(self, stack, faults, workload, random_, mounts):
        self.stack = stack
        self.faults = faults
        self.workload = workload
        self.random = random_
        self.mounts = mounts  # name -> folder that is a small file system
        self.violations = []


def end_process(pid, number=signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def supervisor_kill(stack, name, number=signal.SIGKILL):
    with contextlib.suppress(OSError, ValueError):
        end_process(stack.pid(name), number)


def children(stack, name):
    try:
        done = subprocess.run(["ps", "-o", "pid=", "--ppid", str(stack.pid(name))], capture_output=True, text=True,
                              timeout=120)
    except (OSError, ValueError):
        return []
    return [int(word) for word in done.stdout.split()]


# ---------------------------------------------------------------- processes
def api_process(setting, times=1):
    for _ in range(times):
        found = children(setting.stack, "api")
        if found:
            end_process(setting.random.choice(found))
        time.sleep(0.05)


def api_processes(setting):
    api_process(setting, setting.random.randint(2, 8))


def api_supervisor(setting):
    supervisor_kill(setting.stack, "api")


def api_reload(setting):
    supervisor_kill(setting.stack, "api", signal.SIGHUP)


def api_stopped(setting):
    """Stops the pool as an operator does: requests in progress are finished, new requests get 503."""
    setting.stack.part("stop", "api")
    setting.stack.part("start", "api")


def image_process(setting):
    for _ in range(40):
        found = children(setting.stack, "worker")
        if found:
            end_process(setting.random.choice(found))
            return
        time.sleep(0.05)


def worker(setting):
    for _ in range(setting.random.randint(1, 2)):
        supervisor_kill(setting.stack, "worker")
        time.sleep(setting.random.uniform(0.1, 1.2))


def worker_stopped(setting):
    setting.stack.part("stop", "worker")
    setting.stack.part("start", "worker")


def worker_frozen(setting):
    """Freezes a worker for longer than a lease: another worker leases the jobs, and the outcomes of the first are rejected."""
    supervisor_kill(setting.stack, "worker", signal.SIGSTOP)
    time.sleep(setting.random.uniform(0.5, 7))
    supervisor_kill(setting.stack, "worker", signal.SIGCONT)


# ---------------------------------------------------------------- Redis
def redis_killed(setting):
    setting.stack.part("kill", "redis")
    time.sleep(setting.random.uniform(0, 1.5))
    setting.stack.part("start", "redis")


def redis_flushed(setting):
    for _ in range(setting.random.randint(1, 10)):
        setting.stack.redis("FLUSHALL")
        setting.stack.redis("SCRIPT", "FLUSH")
        time.sleep(0.1)


def redis_slow(setting):
    for _ in range(5):
        setting.stack.redis("CLIENT", "PAUSE", str(setting.random.choice([100, 200, 400])))
        time.sleep(0.45)


def redis_frozen(setting):
    redis = setting.stack.pid("redis")
    end_process(redis, signal.SIGSTOP)
    time.sleep(setting.random.uniform(0.3, 2))
    end_process(redis, signal.SIGCONT)


def redis_restarted(setting):
    setting.stack.part("stop", "redis")
    setting.stack.part("start", "redis")


# ---------------------------------------------------------------- MariaDB
def database_killed(setting):
    setting.stack.part("kill", "mariadbd")
    time.sleep(setting.random.uniform(0, 1))
    setting.stack.part("start", "mariadbd")


def database_restarted(setting):
    setting.stack.part("stop", "mariadbd")
    setting.stack.part("start", "mariadbd")


def database_read_only(setting):
    setting.stack.sql("SET GLOBAL read_only = 1")
    time.sleep(setting.random.uniform(0.3, 2))
    setting.stack.sql("SET GLOBAL read_only = 0")


def database_frozen(setting):
    database = setting.stack.pid("mariadbd")
    end_process(database, signal.SIGSTOP)
    time.sleep(setting.random.uniform(0.3, 2))
    end_process(database, signal.SIGCONT)


def database_cut(setting):
    """Kills connections at any time, also during transactions."""
    end = time.monotonic() + setting.random.uniform(0.3, 1.5)
    while time.monotonic() < end:
        rows = setting.stack.sql("SELECT id FROM information_schema.processlist WHERE user LIKE 'imgward%'")
        setting.random.shuffle(rows)
        cut = "".join(f"KILL {row[0]};" for row in rows[:6])
        with contextlib.suppress(subprocess.CalledProcessError):
            setting.stack.sql(cut or "SELECT 1")
        time.sleep(0.03)


def sql_quietly(setting, statement):
    with contextlib.suppress(subprocess.CalledProcessError):
        setting.stack.sql(statement)


def database_locked(setting):
    """Locks all rows of orders, files and jobs, for shorter or longer than the lock timeout of 5 s."""
    seconds = setting.random.choice([1, 2, 6])
    table = setting.random.choice(["orders", "files", "jobs"])
    sql_quietly(setting, f"START TRANSACTION; SELECT COUNT(*) FROM (SELECT id FROM {table} WHERE id > 0 FOR UPDATE) held; "
                         f"SELECT SLEEP({seconds}); ROLLBACK")


def database_deadlocks(setting):
    """Takes locks in reverse order: jobs and files before their order."""
    end = time.monotonic() + 2
    while time.monotonic() < end:
        known = [order.id for order in setting.workload.orders if order.id]
        if not known:
            time.sleep(0.05)
            continue
        order = setting.random.choice(known)
        sql_quietly(setting, f"START TRANSACTION; UPDATE jobs SET updated_at = updated_at + INTERVAL 1 SECOND WHERE order_id = {order}; "
                             f"UPDATE files SET updated_at = updated_at + INTERVAL 1 SECOND WHERE order_id = {order}; "
                             f"SELECT SLEEP(0.1); UPDATE orders SET updated_at = updated_at + INTERVAL 1 SECOND WHERE id = {order}; COMMIT")


# ---------------------------------------------------------------- disks
def disk_full(setting, name, seconds=None, meanwhile=lambda: None):
    """Fills a small file system for some time."""
    path = os.path.join(setting.mounts[name], "ballast")
    with open(path, "wb", buffering=0) as file:
        end = time.monotonic() + (seconds or setting.random.uniform(0.5, 2.5))
        while time.monotonic() < end:
            try:
                while file.write(bytes(65536)) == 65536:
                    pass
            except OSError:
                pass
            meanwhile()
            time.sleep(0.02)  # also fills space that is freed meanwhile
    os.unlink(path)


def store_full(setting):
    disk_full(setting, "store")


def store_full_long(setting):
    """Fills the store for longer than the retries of a file last, because a full disk must not fail a file."""
    disk_full(setting, "store", 8)


def uploads_full(setting):
    disk_full(setting, "nginx")


def database_full(setting):
    """Orders that need much space, with a hundred watermark texts each, fill the database."""
    def texts():
        files = [{"fileName": f"{file}.jpg", "watermarks": [{"text": f"{uuid.uuid4().hex * 30}"} for _ in range(10)]}
                 for file in range(10)]
        setting.workload.ask("create with a full database", lambda: setting.workload.client.create(files, kind="wtr-embed"))
    disk_full(setting, "database", setting.random.uniform(1, 3), texts)


# ---------------------------------------------------------------- nginx and clients
def nginx_reloaded(setting):
    for _ in range(3):
        supervisor_kill(setting.stack, "nginx", signal.SIGHUP)
        time.sleep(0.2)


def nginx_killed(setting):
    setting.stack.part("kill", "nginx")
    setting.stack.part("start", "nginx")


def connected(setting):
    place = urllib.parse.urlsplit(setting.stack.url)
    plain = socket.create_connection((place.hostname, place.port), timeout=60)
    return setting.stack.tls.wrap_socket(plain, server_hostname=place.hostname)


def clients_cut(setting):
    """Clients disconnect before the response to a creation, or break off an upload."""
    client = setting.workload.client
    for number in range(8):
        body = f'{{"idempotencyKey": "{uuid.uuid4().hex}", "files": [{{"fileName": "cut.jpg"}}]}}'
        with contextlib.suppress(OSError), connected(setting) as wire:
            wire.sendall((f"POST {ORDERS}/anti-ai HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.key}\r\n"
                          f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode())
            time.sleep(setting.random.choice([0, 0.002, 0.01]))
        upload_cut(setting, client, is_slow=False)


def upload_cut(setting, client, is_slow):
    created = setting.workload.ask("create for a cut upload", lambda: client.create(["cut.jpg"]))
    if created is None or created.status != 201:
        return
    path = urllib.parse.urlsplit(created.data["files"][0]["uploadUrl"])
    picture = setting.workload.picture_set.pictures[0][3]
    with contextlib.suppress(OSError), connected(setting) as wire:
        wire.sendall((f"PUT {path.path}?{path.query} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(picture)}\r\n\r\n").encode())
        part = picture[: len(picture) * setting.random.randint(1, 9) // 10]
        for at in range(0, len(part), 1000 if is_slow else len(part)):
            wire.sendall(part[at:at + (1000 if is_slow else len(part))])
            time.sleep(0.05 if is_slow else 0)
    order = created.data["orderId"]
    answer = setting.workload.ask("detail of a cut upload", lambda: client.detail(order))
    if answer is not None and answer.data["files"][0]["status"] != "pending":
        setting.violations.append(f"a cut upload counts: {answer.data['files']}")


def clients_slow(setting):
    threads = [threading.Thread(target=upload_cut, args=(setting, setting.workload.client, True)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# ---------------------------------------------------------------- clocks
def clock_stepped(setting):
    """Steps the service's clock by half an hour; the database's clock does not change."""
    step = setting.random.choice([1800, -1800, 60, -60])
    with setting.stack.configured("test", "clock_offset_s", str(step)):
        time.sleep(1)


def database_clock(setting, hours):
    """Simulates a step of the database's clock by moving all timestamps the other way."""
    time.sleep(0.3)
    for _ in range(2):
        sql_quietly(setting, f"UPDATE jobs SET available_at = available_at - INTERVAL {hours} HOUR, lease_until = lease_until - INTERVAL "
                             f"{hours} HOUR WHERE status IN ('queued', 'leased'); "
                             f"UPDATE webhook_deliveries SET available_at = available_at - INTERVAL {hours} HOUR, lease_until = "
                             f"lease_until - INTERVAL {hours} HOUR WHERE status IN ('PENDING', 'SENDING')")
        time.sleep(0.5)


def clock_forward(setting):
    database_clock(setting, 2)


def clock_back(setting):
    database_clock(setting, -2)


EXTERNAL = {name: act for name, act in list(globals().items()) if name in (
    "api_process", "api_processes", "api_supervisor", "api_reload", "api_stopped", "image_process", "worker",
    "worker_stopped", "worker_frozen", "redis_killed", "redis_flushed", "redis_slow", "redis_frozen", "redis_restarted",
    "database_killed", "database_restarted", "database_read_only", "database_frozen", "database_cut",
    "database_locked", "database_deadlocks", "store_full", "store_full_long", "uploads_full", "database_full", "nginx_reloaded",
    "nginx_killed", "clients_cut", "clients_slow", "clock_stepped", "clock_forward", "clock_back")}
MOUNTED = {"store_full": "store", "store_full_long": "store", "uploads_full": "nginx", "database_full": "database"}


class Breakage:
    """A breakage: the name in the output of the round, and the function."""

    def __init__(self, name, act, point=None, **arming):
        self.name = name
        self.act = act
        self.point = point
        self.arming = arming

    def run(self, setting):
        if self.point is not None:
            setting.faults.arm(self.point.name, **self.arming)
            provoke = PROVOKED.get(self.point.name)
            if provoke is None:
                return
            time.sleep(setting.random.uniform(0.2, 0.8))
            {"api process": api_process, "api reload": api_reload, "worker": worker,
             "image process": image_process}[provoke](setting)
        else:
            time.sleep(setting.random.choice([0, setting.random.uniform(0, 0.6), setting.random.uniform(0, 2)]))
            self.act(setting)


def of_point(point, random_, action=None):
    """Returns a breakage at a fault point: kill, fail or delay, one of the first times that it is reached."""
    action = action or random_.choice(["kill"] * 3 + ["delay"] + ["fail"] * (2 if point.can_fail else 0))
    often = point.name.startswith(("db.", "redis.", "store.add", "request.", "limit."))
    nth = 1 if point.name in (*PROVOKED, "worker.leased") else random_.randint(1, 40 if often else 4)
    if point.name.startswith(("age.", "reclaim.", "archive.", "thumbnail.")):
        nth = 1
    program = random_.choice(point.programs)
    width = random_.choice([1, 1, 3]) if action == "fail" else 1
    delay_ms = random_.choice([50, 400, 1500])
    words = f"{action} {point.name}@{nth}" + (f"+{width - 1}" if width > 1 else "") + (f" in {program}" if program else "")
    return Breakage(words, None, point, action=action, nth=nth, width=width, delay_ms=delay_ms, program=program)


def of_name(name):
    return Breakage(name.replace("_", " "), EXTERNAL[name])
