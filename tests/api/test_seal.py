"""Worker and doctor in a container that lacks parts of the seal: the lack is logged once, and processing continues or
is refused."""
import contextlib
import json
import os
import subprocess
import time

import pytest

import seccomp_container
import pictures

pytestmark = pytest.mark.skipif(not seccomp_container.is_possible(), reason="this machine has no seccomp filters")


def doctor(stack, rules=None, **config):
    done = subprocess.run([stack.environment["IMGWARD_CTL"], "--config", stack.environment["IMGWARD_CONFIG"], "doctor"],
                          capture_output=True, text=True, timeout=180, preexec_fn=rules)
    return next(line.split(None, 3) for line in done.stdout.splitlines() if line.startswith("image process"))


def test_doctor_names_the_missing_parts_of_the_seal(stack):
    assert doctor(stack)[2] == "ok"
    words = doctor(stack, seccomp_container.without_landlock)
    assert words[2] == "ok" and "only by seccomp: this kernel has no Landlock" in words[3]
    words = doctor(stack, seccomp_container.without_landlock_and_seccomp)
    assert words[2] == "WRONG" and "refused seccomp" in words[3] and "Missing: seccomp, landlock" in words[3]


class Worker:
    """The stack's worker under the rules of a container; the normal worker is restored at the end."""

    def __init__(self, stack, rules, code=0, **worker_keys):
        self.stack, self.rules, self.code, self.keys = stack, rules, code, worker_keys
        self.log = os.path.join(stack.environment["IMGWARD_LOG"], "worker-container.log")

    def __enter__(self):
        self.stack.part("stop", "worker")
        # Set while no worker runs, and reset before the normal worker starts, because some keys need a restart.
        self.configured = contextlib.ExitStack()
        for key, value in self.keys.items():
            self.configured.enter_context(self.stack.configured("worker", key, value))
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([os.path.join(self.stack.environment["IMGWARD_BUILD"], "imgward-worker"),
                                             "--config", self.stack.environment["IMGWARD_CONFIG"]], stderr=log, preexec_fn=self.rules)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            assert self.process.wait(180) == self.code
        finally:
            self.configured.close()
            self.stack.part("start", "worker")

    def events(self, name):
        with open(self.log, encoding="utf-8") as file:
            return [line for line in map(json.loads, file) if line["event"] == name]

    def waits_for(self, name, seconds=180):
        end = time.monotonic() + seconds
        while not self.events(name) and time.monotonic() < end:
            time.sleep(0.1)
        return self.events(name)


def test_a_container_without_landlock_is_logged_once_and_works(stack, client):
    with Worker(stack, seccomp_container.without_landlock, images_per_process="2") as worker:
        order = client.order_whole([(f"{number}.jpg", pictures.jpeg(96, 80, seed=number)) for number in range(8)], 120)
        assert order["status"] == "complete" and order["completedFileCount"] == 8
        told = worker.events("seal_incomplete")
    assert [(line["level"], line["missing"]) for line in told] == [("warn", "landlock")]


def test_a_container_without_seccomp_does_no_work_unless_the_operator_allows_it(stack, client):
    with Worker(stack, seccomp_container.without_landlock_and_seccomp, code=1) as worker:
        created = client.create(["a.jpg"]).data
        assert client.upload(created["files"][0]["uploadUrl"], pictures.jpeg(96, 80)).status == 201
        assert client.confirm(created["orderId"]).status == 200
        assert worker.process.wait(180) == 1
        with open(worker.log, encoding="utf-8") as log:
            assert log.read().startswith("imgward-worker: The kernel refused seccomp (EPERM).")
        assert client.detail(created["orderId"]).data["status"] == "inProgress"
    with Worker(stack, seccomp_container.without_landlock_and_seccomp, allow_unsealed="yes") as worker:
        assert client.order_whole([("b.jpg", pictures.jpeg(96, 80))], 120)["status"] == "complete"
        told = worker.events("seal_incomplete")
    assert [(line["level"], line["missing"]) for line in told] == [("error", "seccomp landlock")]
    assert "refused seccomp" in told[0]["cause"]


def test_the_usual_worker_is_back_and_seals(stack):
    with open(f"/proc/{stack.pid('worker')}/task/{stack.pid('worker')}/children", encoding="ascii") as file:
        children = [f"/proc/{pid}/cmdline" for pid in file.read().split()]
    lines = [open(path, "rb").read().split(b"\0") for path in children if os.path.exists(path)]
    assert not [line for line in lines if b"--allow-unsealed" in line]
