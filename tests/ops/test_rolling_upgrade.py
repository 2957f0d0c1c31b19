"""doc/operating.md, "Upgrade": programs that know a migration and programs that do not, on one database.

The test has its own migration, as the next release may have.
"""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import pytest

import pictures
from client import Stack, environment_read, until_served
from test_operating import ROOT, run

LATER = """-- What a later release may do: a table of its own, and a column that the older one does not know.
CREATE TABLE later_things (id BIGINT NOT NULL PRIMARY KEY) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
ALTER TABLE orders ADD COLUMN later_note VARCHAR(100) NULL COMMENT 'only a later release writes it';
ALTER TABLE jobs ADD COLUMN later_note VARCHAR(100) NULL;
"""


def sh(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, timeout=1200, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stdout[-1500:]}{done.stderr[-1500:]}")
    return done.stdout.strip()


@pytest.fixture
def later(tmp_path):
    """The migrations of this tree and a later migration."""
    if os.geteuid() != 0:
        pytest.skip("doc/operating.md is for root")
    shutil.copytree(os.path.join(ROOT, "sql"), tmp_path / "sql")
    (tmp_path / "sql" / "9999_later.sql").write_text(LATER, encoding="utf-8")
    return str(tmp_path / "sql")


@pytest.fixture
def older(later):
    """A stack without the later migration. The folder's name is short, because the path of a socket has at most 107 bytes."""
    var = tempfile.mkdtemp(prefix="imgward-older-")
    sh(os.path.join(ROOT, "dev"), "up", env={**os.environ, "IMGWARD_VAR": var})
    try:
        yield Stack(environment_read(os.path.join(var, "dev.env")))
    finally:
        sh(os.path.join(ROOT, "dev"), "down", env={**os.environ, "IMGWARD_VAR": var})
        shutil.rmtree(var)


class Orders(threading.Thread):
    """A client that orders continuously: two files each, so that an archive is made, and sometimes a watermark."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.client, self.ended, self.problem, self.is_over = client, [], None, False

    def run(self):
        try:
            while not self.is_over:
                self.ended.append(self.one(len(self.ended)))
        except Exception as problem:  # noqa: BLE001: reported by check()
            self.problem = problem

    def one(self, number):
        kind, files = ("anti-ai", ["a.jpg", "b.jpg"]) if number % 3 else (
            "wtr-embed", [{"fileName": name, "watermarks": [{"text": "x"}]} for name in ("a.jpg", "b.jpg")])
        data = until_served(lambda: self.client.create(files, kind=kind, key=f"rolling-{number}"), 200, 201).data
        for file in data["files"]:
            until_served(lambda url=file["uploadUrl"]: self.client.upload(url, pictures.jpeg(300, 300)), 200, 201)
        until_served(lambda: self.client.confirm(data["orderId"], key=f"confirm-{number}"), 200)
        order = self.client.wait(data["orderId"], 400)
        assert order["status"] == "complete" and order["errors"] is None, order
        return order["orderId"]

    def more(self, count):
        """Waits until count more orders are finished."""
        wanted, end = len(self.ended) + count, time.monotonic() + 600
        while len(self.ended) < wanted:
            assert self.problem is None, self.problem
            assert time.monotonic() < end, "orders no longer end"
            time.sleep(0.1)


def done_by(stack):
    """Returns the number of finished jobs of each worker, by process id."""
    return {int(pid): sum(int(number) for number in re.findall(r'imgward_jobs_total\{[^}]*result="done"[^}]*\} (\d+)', metrics.replace("\\n", "\n")))
            for pid, metrics in stack.sql("SELECT pid, metrics FROM workers")}


def newer_start(stack, etc, tmp_path):
    """Starts another pool and worker next to the running ones, with the page's commands; returns their processes."""
    build = os.environ.get("IMGWARD_BUILD", os.path.join(ROOT, "build"))
    text = open(stack.environment["IMGWARD_CONFIG"], encoding="utf-8").read()
    text = re.sub(r"(?m)^image_program = .*", f"image_program = {build}/imgward-image", text)
    text = re.sub(r"(?m)^weights_file = .*", f"weights_file = {ROOT}/data/protect.weights", text)
    (tmp_path / "newer.conf").write_text(text, encoding="utf-8")
    run({"ETC": etc, "CONFIG": str(tmp_path / "newer.conf"), "RUN": stack.run, "NGINX": os.path.join(etc, "imgward"),
         "NGINX_PID": os.path.join(stack.run, "nginx.pid"), "BIN": build, "API_PID": "0", "WORKER_PID": "0"}, "scale-out")
    end = time.monotonic() + 240
    while not all(os.path.exists(os.path.join(stack.run, name)) for name in ("api2.pid", "worker2.pid")):
        assert time.monotonic() < end, "the newer pool or worker does not start"
        time.sleep(0.1)
    return stack.pid("api2"), stack.pid("worker2")


def gone(pid, seconds=240):
    end = time.monotonic() + seconds
    while os.path.exists(f"/proc/{pid}"):
        assert time.monotonic() < end, f"process {pid} does not end"
        time.sleep(0.1)


def test_orders_go_on_while_the_schema_and_then_the_programs_become_newer(later, older, tmp_path):
    etc = os.path.dirname(older.environment["IMGWARD_CONFIG"])
    ctl = os.path.join(os.environ.get("IMGWARD_BUILD", os.path.join(ROOT, "build")), "imgwardctl")
    worker, newer = older.pid("worker"), []
    orders = Orders(older.account_new())
    orders.start()
    try:
        orders.more(2)
        told = sh(ctl, "--config", os.path.join(etc, "owner.conf"), "migrate", "--directory", later)
        assert "migrate: 1 applied" in told
        orders.more(4)  # older programs with the newer schema
        newer = newer_start(older, etc, tmp_path)
        orders.more(6)  # older and newer programs
        end = time.monotonic() + 240
        while len(done_by(older)) < 2 or min(done_by(older).values()) == 0:
            assert time.monotonic() < end and orders.problem is None, (done_by(older), orders.problem)
            time.sleep(0.5)
        for name in ("api", "worker"):
            sh(os.path.join(ROOT, "dev"), "stack", "stop", name, env={**os.environ, "IMGWARD_VAR": older.environment["IMGWARD_VAR"]})
        gone(worker)
        orders.more(4)  # newer programs only
        orders.is_over = True
        orders.join(400)
        assert orders.problem is None, orders.problem
        assert older.sql("SELECT COUNT(*) FROM orders WHERE status NOT IN ('complete', 'pending')") == [["0"]]
        verified = sh(ctl, "--config", older.environment["IMGWARD_CONFIG"], "store", "verify")
        assert re.search(r"store: [1-9]\d+ files in the database, 0 with faults", verified)
    finally:
        orders.is_over = True
        orders.join(400)
        for pid in newer:
            os.kill(pid, signal.SIGTERM)
            gone(pid)
