"""Keys belong to a database: programs refuse other keys, and init makes no keys for a database that was used."""
import os
import re
import socket
import struct
import subprocess
import time
import uuid

import pytest

import pictures
from test_init import SQL, words

OTHER = re.compile(r"the watermark key \([0-9a-f]{16}\) is not the key of this database \([0-9a-f]{16}\)")


class Host:
    """A second host of a service: separate configuration, keys and sockets, on the database of the stack."""

    def __init__(self, stack, folder):
        self.stack, self.folder, self.config = stack, folder, str(folder / "imgward.conf")
        self.etc = os.path.dirname(stack.environment["IMGWARD_CONFIG"])
        with open(stack.environment["IMGWARD_CONFIG"], encoding="utf-8") as file:
            text = file.read()
        text = re.sub(r"(?m)^(\w*key\w* = )" + re.escape(self.etc), rf"\g<1>{folder}", text)
        text = re.sub(r"(?m)^(socket = |pid_file = ).*/((?:api|worker)\.)", rf"\g<1>{folder}/\2", text)
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(text)
        for name in ("watermark.key", "sealing.key", "signing.keys"):
            self.key_write(name, self.key(name))

    def key(self, name):
        with open(os.path.join(self.etc, name), "rb") as file:
            return file.read()

    def key_write(self, name, key):
        (self.folder / name).write_bytes(key)
        (self.folder / name).chmod(0o600)

    def ctl(self, *more):
        return subprocess.run([self.stack.environment["IMGWARD_CTL"], "--config", self.config, *more],
                              capture_output=True, text=True, timeout=600)

    def start(self, name):
        return subprocess.Popen([os.path.join(self.stack.environment["IMGWARD_BUILD"], "imgward-" + name), "-c", self.config],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def ended(self, name):
        """Returns exit status and messages of a program that ends by itself."""
        process = self.start(name)
        try:
            return process.communicate(timeout=120)[1], process.returncode
        finally:
            process.kill()

    def served(self, name):
        """Starts a program, waits until it serves, and ends it."""
        process = self.start(name)
        try:
            for line in process.stderr:
                if '"event":"started"' in line:
                    return True
            return False
        finally:
            process.terminate()
            process.communicate(timeout=120)


@pytest.fixture
def host(stack, tmp_path):
    return Host(stack, tmp_path)


def test_the_programs_refuse_another_watermark_key_until_it_is_accepted(stack, host):
    assert host.ctl("secret", "check").returncode == 0
    known = stack.sql("SELECT purpose, ids FROM key_ids")
    assert sorted(row[0] for row in known) == ["sealing", "signing", "watermark"]
    host.key_write("watermark.key", os.urandom(32))
    message, code = host.ended("worker")
    assert code == 1 and OTHER.search(message) and "imgwardctl secret accept watermark" in message, message
    checked = host.ctl("secret", "check")
    assert checked.returncode == 1 and re.search(r"watermark +[0-9a-f]{16} .*OTHER KEY", checked.stdout), checked.stdout
    doctor = host.ctl("doctor", "--directory", SQL)
    assert re.search(r"(?m)^keys +WRONG +.*" + OTHER.pattern, doctor.stdout), doctor.stdout
    init = host.ctl("init", "--directory", SQL)
    assert words(init)["watermark key"] == "TO DO" and OTHER.search(init.stdout), init.stdout
    assert stack.sql("SELECT purpose, ids FROM key_ids") == known
    try:
        accepted = host.ctl("secret", "accept", "watermark")
        assert accepted.returncode == 0 and dict(known)["watermark"] in accepted.stdout, accepted.stdout + accepted.stderr
        assert host.served("worker")
    finally:
        stack.ctl("secret", "accept", "watermark")
    assert stack.sql("SELECT purpose, ids FROM key_ids") == known


@pytest.mark.parametrize("name, words", [("sealing.key", ["secret", "sealing"]), ("signing.keys", ["secret", "signing"])])
def test_pool_and_worker_refuse_other_keys_of_webhooks_and_urls(host, name, words):
    os.remove(host.folder / name)
    assert host.ctl(*words, str(host.folder / name)).returncode == 0
    for program in ("api", "worker"):
        message, code = host.ended(program)
        assert code == 1 and f"the {words[1]} key" in message, message


def test_the_pool_serves_with_the_keys_of_the_database_or_with_a_rotated_signing_key(stack, host):
    assert host.served("api")
    known = stack.sql("SELECT ids FROM key_ids WHERE purpose = 'signing'")
    try:
        assert host.ctl("secret", "signing", "--rotate", str(host.folder / "signing.keys")).returncode == 0
        assert host.served("api")
        [[ids]] = stack.sql("SELECT ids FROM key_ids WHERE purpose = 'signing'")
        assert len(ids.split()) == 2 and ids.split()[1] == known[0][0].split()[0]
        # The other host has not loaded the new file yet.
        host.key_write("signing.keys", host.key("signing.keys"))
        assert host.served("api")
        assert stack.sql("SELECT ids FROM key_ids WHERE purpose = 'signing'") == [[ids]]
    finally:
        stack.ctl("secret", "accept", "signing")


def test_a_database_without_ids_records_those_of_the_first_program(stack, host):
    known = stack.sql("SELECT purpose, ids FROM key_ids")
    stack.sql("DELETE FROM key_ids")
    racers = [host.start("worker") for _ in range(2)]
    try:
        end = time.monotonic() + 120
        while stack.sql("SELECT purpose, ids FROM key_ids") != known:
            assert time.monotonic() < end
            time.sleep(0.1)
    finally:
        for racer in racers:
            racer.terminate()
            racer.communicate(timeout=120)
    stack.sql("DELETE FROM key_ids")
    with open(os.path.join(host.etc, "owner.conf"), encoding="utf-8") as file:
        host.folder.joinpath("owner.conf").write_text(file.read(), encoding="utf-8")
    migrated = subprocess.run([stack.environment["IMGWARD_CTL"], "--config", str(host.folder / "owner.conf"), "migrate",
                               "--directory", SQL], capture_output=True, text=True, timeout=600)
    assert migrated.returncode == 0 and stack.sql("SELECT purpose, ids FROM key_ids") == known, migrated.stderr


def test_init_makes_no_key_for_a_database_that_was_used(host):
    for name in ("watermark.key", "sealing.key", "signing.keys"):
        os.remove(host.folder / name)
    init = host.ctl("init", "--directory", SQL)
    assert init.returncode == 1
    for step, command in (("watermark key", "image key"), ("sealing key", "secret sealing"), ("signing keys", "secret signing")):
        assert words(init)[step] == "TO DO", init.stdout
        assert re.search(rf"(?m)^{step} .*restore the file from the backup.*imgwardctl {command} ", init.stdout), init.stdout
    assert not [name for name in os.listdir(host.folder) if "key" in name]
    assert host.ctl("secret", "check").returncode == 1


def test_a_worker_that_starts_without_the_database_ends_when_the_keys_are_other_ones(stack, host):
    assert b"Status: " in asked(os.path.join(stack.run, "api.sock"), "/healthz")
    host.key_write("watermark.key", os.urandom(32))
    host.key_write("sealing.key", uuid.uuid4().hex.encode() * 2 + b"\n")
    stack.part("stop", "mariadbd")
    processes = []
    try:
        processes = [host.start("worker"), host.start("api")]
        for process in processes:
            for line in process.stderr:
                if '"event":"started"' in line:
                    break
    finally:
        stack.part("start", "mariadbd")
    try:
        worker, api = processes
        message = worker.communicate(timeout=120)[1]
        assert worker.returncode == 1 and "do not belong to the database" in message, message
        # A process of the pool ends at the first request, without a response.
        assert asked(str(host.folder / "api.sock"), "/healthz") == b""
        api.terminate()
        assert '"reason":"keys_refused"' in api.communicate(timeout=120)[1]
    finally:
        for process in processes:
            process.kill()
            process.communicate(timeout=120)


def asked(path, uri):
    """Returns the response of a pool to a GET by FastCGI 1.0."""
    pairs = {"REQUEST_METHOD": "GET", "REQUEST_URI": uri, "SERVER_PROTOCOL": "HTTP/1.1"}
    text = b"".join(bytes([len(name), len(value)]) + name.encode() + value.encode() for name, value in pairs.items())
    records = [(1, struct.pack("!HB5x", 1, 0)), (4, text), (4, b""), (5, b"")]
    with socket.socket(socket.AF_UNIX) as pool:
        pool.settimeout(60)
        pool.connect(path)
        pool.sendall(b"".join(struct.pack("!BBHHBx", 1, kind, 1, len(body), 0) + body for kind, body in records))
        return b"".join(iter(lambda: pool.recv(65536), b""))


def test_image_processes_with_a_changed_watermark_key_take_no_picture(stack, client):
    """The file is replaced while the worker runs; its image processes then end."""
    path = os.path.join(os.path.dirname(stack.environment["IMGWARD_CONFIG"]), "watermark.key")
    with open(path, "rb") as file:
        key = file.read()
    log = os.path.join(stack.environment["IMGWARD_LOG"], "worker.log")
    size = os.path.getsize(log)
    with stack.configured("worker", "images_per_process", "1"):
        stack.part("stop", "worker")
        stack.part("start", "worker")
        client.order_whole([("a.jpg", pictures.jpeg(80, 80))])
        try:
            with open(path, "wb") as file:
                file.write(os.urandom(32))
            # These orders end the processes that started before.
            created = [client.create(["a.jpg"]).data for _ in range(stack.worker_places() + 1)]
            for order in created:
                client.upload(order["files"][0]["uploadUrl"], pictures.jpeg(80, 80))
                client.confirm(order["orderId"])
            end = time.monotonic() + 120
            while '"watermark_key_changed"' not in read_from(log, size):
                assert time.monotonic() < end
                time.sleep(0.1)
        finally:
            with open(path, "wb") as file:
                file.write(key)
        assert {client.wait(order["orderId"])["status"] for order in created} == {"complete"}
    stack.part("stop", "worker")
    stack.part("start", "worker")


def read_from(path, offset):
    with open(path, encoding="utf-8", errors="replace") as file:
        file.seek(offset)
        return file.read()
