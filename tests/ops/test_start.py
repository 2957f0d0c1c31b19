"""Reports of the programs to systemd: READY as soon as they can work, and STATUS with the reason if they cannot."""
import configparser
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import pytest

import pictures
from test_watching import ROOT, eventually, samples, value

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import seccomp_container  # noqa: E402

# A worker waits this long for the first image process (imgward-worker(8)); twice as long for a busy machine.
START_LIMIT_S = 20


class Program:
    """A program under a service manager: its datagrams to NOTIFY_SOCKET, which a thread reads, and its log."""

    def __init__(self, stack, name, config, rules=None, is_read=True):
        self.folder = tempfile.mkdtemp(prefix="imgward-notify.")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(os.path.join(self.folder, "notify"))
        self.log = os.path.join(self.folder, "log")
        self.lines = []
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([os.path.join(stack.environment["IMGWARD_BUILD"], name), "--config", str(config)],
                                            stderr=log, preexec_fn=rules, env={**os.environ, "NOTIFY_SOCKET": os.path.join(self.folder, "notify")})
        self.reader = threading.Thread(target=self.read, daemon=True)
        if is_read:
            self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(180)
        self.end()
        self.socket.close()
        shutil.rmtree(self.folder)

    def read(self):
        while (data := self.socket.recv(4096)) != b"end":
            self.lines += data.decode().split("\n")

    def end(self):
        """Waits until the reader has all datagrams, and ends it."""
        if self.reader.is_alive():
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.sendto(b"end", os.path.join(self.folder, "notify"))
            self.reader.join(60)

    def waits_for(self, pattern, seconds=120):
        """Returns the first line that matches, among those already read, too."""
        end = time.monotonic() + seconds
        while True:
            for line in list(self.lines):
                if re.search(pattern, line):
                    return line
            assert time.monotonic() < end, (pattern, self.lines, self.text())
            time.sleep(0.05)

    def fails(self, seconds=120):
        """Waits for the end; returns the last STATUS."""
        assert self.process.wait(seconds) == 1, self.text()
        self.end()
        assert not [line for line in self.lines if line == "READY=1"], self.lines
        return [line for line in self.lines if line.startswith("STATUS=")][-1]

    def text(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()


@pytest.fixture
def changed(stack, tmp_path):
    """Returns a function that writes the stack's configuration with other values to a new file. The stack's worker is stopped."""
    def change(**sections):
        parser = configparser.RawConfigParser()
        parser.read(stack.environment["IMGWARD_CONFIG"], encoding="utf-8")
        parser.read_dict(sections)
        with open(tmp_path / "changed.conf", "w", encoding="utf-8") as file:
            parser.write(file)
        return tmp_path / "changed.conf"
    stack.part("stop", "worker")
    yield change
    stack.part("start", "worker")


def doctor(stack):
    """Returns the output of doctor, by check."""
    lines = stack.ctl("doctor", "--directory", os.path.join(ROOT, "sql"), check=False).splitlines()
    return {line[:14].strip(): line[15:] for line in lines}


def script(tmp_path, text):
    path = tmp_path / "image-program"
    path.write_text("#!/bin/sh\n" + text, encoding="ascii")
    path.chmod(0o755)
    return path


def test_a_worker_without_weights_does_not_start_and_says_why(stack, changed, tmp_path):
    missing = tmp_path / "missing.weights"
    with Program(stack, "imgward-worker", changed(image={"weights_file": missing})) as worker:
        status = worker.fails()
        assert status == f"STATUS=image.weights_file: {missing} cannot be read: No such file or directory."
        assert worker.text() == f"imgward-worker: {status[7:]}\n", "one line"


def test_a_worker_with_damaged_weights_names_the_file(stack, changed, tmp_path):
    damaged = tmp_path / "damaged.weights"
    damaged.write_bytes(b"no weights")
    with Program(stack, "imgward-worker", changed(image={"weights_file": damaged})) as worker:
        assert worker.fails().startswith(f"STATUS=The weights file {damaged} is refused: ")
        assert worker.text().count("\n") == 1


@pytest.mark.parametrize("text, reason", [
    ("exit 7", "ended at its start with exit status 7."),
    ("kill -11 $$", "was killed at its start by signal 11 (Segmentation fault)."),
    ("exec 3<&-; exec sleep 60", "was killed at its start by signal 9 (Killed)."),
])
def test_a_worker_whose_image_program_dies_at_its_start_says_how(stack, changed, tmp_path, text, reason):
    program = script(tmp_path, text)
    with Program(stack, "imgward-worker", changed(worker={"image_program": program})) as worker:
        assert worker.fails() == f"STATUS={program} {reason}"


def test_a_worker_waits_a_bounded_time_for_its_image_process(stack, changed, tmp_path):
    program = script(tmp_path, "exec sleep 600")
    begin = time.monotonic()
    with Program(stack, "imgward-worker", changed(worker={"image_program": program})) as worker:
        assert worker.fails() == f"STATUS={program} did not start within {START_LIMIT_S} s."
        assert START_LIMIT_S <= time.monotonic() - begin < 2 * START_LIMIT_S


def test_a_worker_that_waits_for_its_image_process_can_be_stopped(stack, changed, tmp_path):
    marker = tmp_path / "started"
    program = script(tmp_path, f"touch {marker}; exec sleep 600")
    with Program(stack, "imgward-worker", changed(worker={"image_program": program})) as worker:
        while not marker.exists():
            assert worker.process.poll() is None, worker.text()
            time.sleep(0.05)
        worker.process.terminate()
        assert worker.process.wait(START_LIMIT_S / 2) == 0


@pytest.mark.skipif(not seccomp_container.is_possible(), reason="this machine has no seccomp filters")
def test_a_unit_that_forbids_seccomp_is_named(stack, changed):
    """A wrong SystemCallFilter= killed each image process on all installed hosts, but the worker stayed "active"."""
    with Program(stack, "imgward-worker", changed(), seccomp_container.without_landlock_and_seccomp) as worker:
        assert worker.fails().startswith("STATUS=The kernel refused seccomp (EPERM). SystemCallFilter= of the unit")


def test_a_worker_is_ready_when_an_image_process_is(stack, changed, client):
    with Program(stack, "imgward-worker", changed(worker={"processes": 2})) as worker:
        worker.waits_for("^READY=1$")
        worker.waits_for(r"^STATUS=2 of 2 image processes ready$")
        assert client.order_whole([("a.jpg", pictures.jpeg(96, 80))], 120)["status"] == "complete"


def test_a_service_manager_that_does_not_read_stops_no_worker(stack, changed):
    """The queue of notifications is full; each notification waits for a second at most."""
    with Program(stack, "imgward-worker", changed(worker={"heartbeat_s": 1}), is_read=False) as worker:
        end = time.monotonic() + 240
        while not stack.sql(f"SELECT 1 FROM workers WHERE pid = {worker.process.pid} AND seen_at > started_at + INTERVAL 20 SECOND"):
            assert time.monotonic() < end, "it sends no heartbeats"
            time.sleep(0.5)
        worker.process.terminate()
        assert worker.process.wait(60) == 0


def test_a_worker_reports_when_its_image_processes_die_later_and_are_back(stack, changed, tmp_path):
    """The program is a script, so it is started by its path. If the file "broken" exists, starts fail."""
    broken = tmp_path / "broken"
    real = os.path.join(stack.environment["IMGWARD_BUILD"], "imgward-image")
    program = script(tmp_path, f'[ ! -e {broken} ] || exit 9\nexec {real} "$@"\n')
    with Program(stack, "imgward-worker", changed(worker={"image_program": program, "processes": 1})) as worker:
        worker.waits_for("^STATUS=1 of 1 image processes ready$")
        with open(f"/proc/{worker.process.pid}/task/{worker.process.pid}/children", encoding="ascii") as file:
            [image] = [int(pid) for pid in file.read().split()]
        broken.touch()
        os.kill(image, signal.SIGKILL)
        reason = f"{program} ended at its start with exit status 9."
        worker.waits_for(f"^STATUS=0 of 1 image processes ready; {reason}$")
        eventually(lambda: "0 of 1 image processes ready, starts fail since 20" in doctor(stack)["workers"])
        assert doctor(stack)["workers"].startswith("WRONG") and doctor(stack)["workers"].endswith(": " + reason)
        assert "started by doctor, outside the unit" in doctor(stack)["image process"]
        text = samples(stack)
        assert value(text, "imgward_worker_image_failing_seconds") > 0 and value(text, "imgward_worker_image_ready") == 0
        broken.unlink()
        worker.lines.clear()
        worker.waits_for("^STATUS=1 of 1 image processes ready$")
        eventually(lambda: re.match("ok .*started by the worker: 1 of 1 image processes ready$", doctor(stack)["workers"]))
        text = samples(stack)
        assert value(text, "imgward_worker_image_failing_seconds") == 0 and value(text, "imgward_worker_image_ready") == 1


def shard(order):
    """Returns the folder of an order: shard_of in src/service/files/store_local.c."""
    return f"{(int(order) * 11400714819323198485 % 2**64) >> 52:03x}"


def test_a_worker_reports_that_its_file_store_fails(stack, changed, client):
    """A file stands in place of the folder, because root could write to any folder."""
    with Program(stack, "imgward-worker", changed()) as worker:
        worker.waits_for("^READY=1$")
        created = client.create(["a.jpg"]).data
        assert client.upload(created["files"][0]["uploadUrl"], pictures.jpeg(96, 80)).status == 201
        folder = os.path.join(stack.store, "out", shard(created["orderId"]))
        if os.path.exists(folder):
            os.rename(folder, folder + ".away")
        open(folder, "wb").close()
        try:
            assert client.confirm(created["orderId"]).status == 200
            eventually(lambda: "its file store failed at 20" in doctor(stack)["workers"])
            assert value(samples(stack), "imgward_worker_store_up") == 0
            worker.waits_for("^STATUS=.* image processes ready; the file store failed: ")
        finally:
            os.unlink(folder)
            if os.path.exists(folder + ".away"):
                os.rename(folder + ".away", folder)
        assert client.wait(created["orderId"], 120)["status"] == "complete"


@pytest.mark.parametrize("name, section", [("imgward-api", "api"), ("imgward-console", "console")])
def test_a_pool_is_ready_without_its_servers_and_says_which_are_away(stack, changed, tmp_path, name, section):
    nowhere = tmp_path / "nowhere.sock"
    config = changed(database={"socket": nowhere}, redis={"socket": nowhere}, store={"path": tmp_path / "no-store"},
                     **{section: {"socket": tmp_path / "pool.sock", "pid_file": tmp_path / "pool.pid"}})
    with Program(stack, name, config) as pool:
        pool.waits_for("^READY=1$")
        status = pool.waits_for("^STATUS=")
        assert re.search(r"No database \(2002 .*\): requests are answered with 503; ", status), status
        assert re.search(r"No Redis \(No such file or directory\): requests are not limited; ", status), status
        assert f"No file store ({tmp_path}/no-store: No such file or directory): uploads are answered with 503" in status
        assert "redis_away" not in pool.text(), "not in the log every ten seconds"
    config = changed(**{section: {"socket": tmp_path / "pool.sock", "pid_file": tmp_path / "pool.pid"}})
    with Program(stack, name, config) as pool:
        assert pool.waits_for("^STATUS=") == "STATUS=Database, Redis and file store answer"


def test_a_pool_that_cannot_start_says_why(stack, changed, tmp_path):
    config = changed(store={"signing_keys_file": tmp_path / "no.keys"})
    with Program(stack, "imgward-api", config) as pool:
        status = pool.fails()
        assert str(tmp_path / "no.keys") in status and pool.text() == f"imgward-api: {status[7:]}\n"


def test_doctor_and_metrics_notice_a_console_that_does_not_run(stack):
    assert doctor(stack)["console"].startswith("ok") and value(samples(stack), "imgward_console_up") == 1
    stack.part("kill", "console")  # its socket stays
    try:
        assert doctor(stack)["console"].startswith("WRONG") and "systemctl status imgward-console" in doctor(stack)["console"]
        assert value(samples(stack), "imgward_console_up") == 0
    finally:
        stack.part("start", "console")
    assert doctor(stack)["console"].startswith("ok") and value(samples(stack), "imgward_console_up") == 1
