"""What the programs report to systemd: READY only when they can work, and STATUS with the reason when they cannot."""
import configparser
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import pytest

import pictures

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import contained  # noqa: E402

# A worker waits this long for its first image process (imgward-worker(8)); twice for a busy machine.
START_LIMIT_S = 20


class Program:
    """A program under a service manager: its datagrams to NOTIFY_SOCKET, and its log."""

    def __init__(self, stack, name, config, rules=None):
        self.folder = tempfile.mkdtemp(prefix="imgward-notify.")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(os.path.join(self.folder, "notify"))
        self.log = os.path.join(self.folder, "log")
        self.lines = []
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([os.path.join(stack.environment["IMGWARD_BUILD"], name), "--config", str(config)],
                                            stderr=log, preexec_fn=rules, env={**os.environ, "NOTIFY_SOCKET": os.path.join(self.folder, "notify")})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(180)
        self.socket.close()
        shutil.rmtree(self.folder)

    def read(self, wait_s=0.0):
        self.socket.settimeout(wait_s or 0.001)
        try:
            self.lines += self.socket.recv(4096).decode().split("\n")
            return True
        except TimeoutError:
            return False

    def waits_for(self, pattern, seconds=120):
        """The first line that matches, among those already read too."""
        end = time.monotonic() + seconds
        while True:
            for line in self.lines:
                if re.search(pattern, line):
                    return line
            assert time.monotonic() < end, (pattern, self.lines, self.text())
            self.read(0.2)

    def fails(self, seconds=120):
        """Waits for the end; its last STATUS."""
        assert self.process.wait(seconds) == 1, self.text()
        while self.read():
            pass
        assert not [line for line in self.lines if line == "READY=1"], self.lines
        return [line for line in self.lines if line.startswith("STATUS=")][-1]

    def text(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()


@pytest.fixture
def changed(stack, tmp_path):
    """A function: the stack's configuration with other values, in a new file.  The stack's worker is stopped."""
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


@pytest.mark.skipif(not contained.is_possible(), reason="this machine has no seccomp filters")
def test_a_unit_that_forbids_seccomp_is_named(stack, changed):
    """A wrong SystemCallFilter= killed each image process of all installed hosts, while the worker was "active"."""
    with Program(stack, "imgward-worker", changed(), contained.without_landlock_and_seccomp) as worker:
        assert worker.fails().startswith("STATUS=The kernel refused seccomp (EPERM). SystemCallFilter= of the unit")


def test_a_worker_is_ready_when_an_image_process_is(stack, changed, client):
    with Program(stack, "imgward-worker", changed(worker={"processes": 2})) as worker:
        worker.waits_for("^READY=1$")
        worker.waits_for(r"^STATUS=2 of 2 image processes ready$")
        assert client.order_whole([("a.jpg", pictures.jpeg(96, 80))], 120)["status"] == "complete"


def test_a_worker_reports_when_its_image_processes_die_later_and_are_back(stack, changed, tmp_path):
    """The program is started by its path, as it is a script; the file "broken" makes later starts fail."""
    broken = tmp_path / "broken"
    real = os.path.join(stack.environment["IMGWARD_BUILD"], "imgward-image")
    program = script(tmp_path, f'[ ! -e {broken} ] || exit 9\nexec {real} "$@"\n')
    with Program(stack, "imgward-worker", changed(worker={"image_program": program, "processes": 1})) as worker:
        worker.waits_for("^STATUS=1 of 1 image processes ready$")
        with open(f"/proc/{worker.process.pid}/task/{worker.process.pid}/children", encoding="ascii") as file:
            [image] = [int(pid) for pid in file.read().split()]
        broken.touch()
        os.kill(image, signal.SIGKILL)
        worker.waits_for(f"^STATUS=0 of 1 image processes ready; {program} ended at its start with exit status 9.$")
        broken.unlink()
        worker.lines.clear()
        worker.waits_for("^STATUS=1 of 1 image processes ready$")
