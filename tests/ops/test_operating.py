"""The commands of doc/operating.md, run as written."""
import os
import re
import signal
import subprocess
import time
import uuid

import pytest

import pictures
from client import children, until_served

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def blocks():
    """Returns the blocks of the page by the name in the first line."""
    with open(os.path.join(ROOT, "doc", "operating.md"), encoding="utf-8") as file:
        found = re.findall(r"```sh\n# ([a-z-]+)\n(.*?)```", file.read(), re.S)
    return dict(found)


@pytest.fixture
def names(stack, tmp_path):
    """Returns the values of the page's placeholders in this stack."""
    if os.geteuid() != 0:
        pytest.skip("the page is for root")
    etc = os.path.dirname(stack.environment["IMGWARD_CONFIG"])
    return {"ETC": etc, "CONFIG": stack.environment["IMGWARD_CONFIG"], "STORE": stack.store, "RUN": stack.run,
            "SOCKET": stack.environment["IMGWARD_DB_SOCKET"], "DATABASE": "imgward", "BACKUP": str(tmp_path / "backup"),
            "NGINX": os.path.join(etc, "imgward"), "NGINX_PID": os.path.join(stack.run, "nginx.pid"),
            "BIN": stack.environment["IMGWARD_BUILD"], "CTL": stack.environment["IMGWARD_CTL"],
            "SQL": os.path.join(ROOT, "sql"), "AFTER_S": "5", "NGINX_LOG": stack.environment["IMGWARD_LOG"] + "/access.log",
            "JOURNAL": f"cat {stack.environment['IMGWARD_LOG']}/api.log {stack.environment['IMGWARD_LOG']}/worker.log",
            "API_PID": str(stack.pid("api")),
            "WORKER_PID": str(stack.pid("worker"))}


def run(names, block):
    page = blocks()
    done = subprocess.run(["bash", "-euc", page["names"] + page[block]], env={**os.environ, **names},
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pid_of(stack, name):
    with open(os.path.join(stack.run, name + ".pid"), encoding="ascii") as file:
        return int(file.read())


def begun(client):
    """Returns an order in progress. Requests that a dying pool accepted are repeated; the idempotency key prevents
    duplicates."""
    key = uuid.uuid4().hex
    created = until_served(lambda: client.create(["a.jpg"], key=key), 200, 201).data
    until_served(lambda: client.upload(created["files"][0]["uploadUrl"], pictures.jpeg(80, 80)), 200, 201)
    until_served(lambda: client.confirm(created["orderId"], key), 200)
    return created["orderId"]


@pytest.fixture
def second(stack, names, tmp_path):
    """A second root on the same servers, with separate folders, configuration and database; starts empty."""
    root, database = tmp_path / "second", "restored" + uuid.uuid4().hex[:8]
    etc = root / "etc"
    root.mkdir()
    with open(names["CONFIG"], encoding="utf-8") as file:
        text = file.read().replace("name = imgward\n", f"name = {database}\n").replace(stack.store, str(root / "store"))
    text = re.sub(r"(?m)^(\w+_file = )" + re.escape(names["ETC"]), rf"\g<1>{etc}", text)
    text = re.sub(r"(?m)^(socket = |pid_file = ).*/((?:api|worker)\.)", rf"\g<1>{root}/\2", text)
    config = root / "imgward.conf"
    config.write_text(text, encoding="utf-8")
    yield {**names, "DATABASE": database, "STORE": str(root / "store"), "ETC": str(etc), "CONFIG": str(config)}
    stack.sql(f"DROP DATABASE IF EXISTS {database}; REVOKE ALL ON {database}.* FROM imgward@localhost")


def ctl(place, *words):
    return subprocess.run([place["CTL"], "--config", place["CONFIG"], *words], capture_output=True, text=True, timeout=600)


def started(place, name):
    """True if a program on the second root serves; otherwise its messages."""
    process = subprocess.Popen([os.path.join(place["BIN"], "imgward-" + name), "-c", place["CONFIG"]],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    lines = []
    try:
        for line in process.stderr:
            lines.append(line)
            if '"event":"started"' in line:
                return True
        return "".join(lines)
    finally:
        process.terminate()
        process.communicate(timeout=120)


def marked(client, tmp_path):
    """Returns the file of a delivered picture with a watermark, and the text of the watermark."""
    text, path = "mark of " + uuid.uuid4().hex, tmp_path / "marked.jpg"
    files = [{"fileName": "a.jpg", "watermarks": [{"text": text}]}]
    order = client.order_whole([(files[0], pictures.jpeg(400, 300, seed=7))], kind="wtr-embed")
    assert order["status"] == "complete", order
    url = client.get(f"/api/v2/orders/{order['orderId']}/download").data["downloadUrl"]
    path.write_bytes(client.request("GET", url, key=False).body)
    return str(path), text


def test_a_backup_is_restored_on_a_second_root(stack, client, names, second, tmp_path):
    client.order_whole([("a.jpg", pictures.jpeg(80, 80))])
    picture, text = marked(client, tmp_path)
    run(names, "backup")
    assert {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "backup").iterdir()} == dict.fromkeys(
        ("database.sql", "store.tar", "secrets.tar"), 0o600)
    told = run(second, "restore")
    assert re.search(r"store: [1-9][0-9]* files in the database, 0 with faults", told), told
    assert told.count("fits the database") == 3, told
    assert int(stack.sql(f"SELECT COUNT(*) FROM {second['DATABASE']}.orders")[0][0]) >= 1
    for name in ("watermark.key", "sealing.key", "signing.keys"):
        ours, theirs = [open(os.path.join(place["ETC"], name), "rb") for place in (names, second)]
        with ours, theirs:
            assert ours.read() == theirs.read() and os.fstat(theirs.fileno()).st_mode & 0o007 == 0
    read = ctl(second, "image", "extract", "--verbose", picture)
    assert read.returncode == 0 and f"text: {text}" in read.stderr, read.stderr
    doctor = ctl(second, "doctor", "--directory", second["SQL"])
    assert re.search(r"(?m)^keys +ok ", doctor.stdout), doctor.stdout
    assert started(second, "worker") is True and started(second, "api") is True


def test_a_restore_without_the_keys_is_refused_at_every_step(client, names, second, tmp_path):
    client.order_whole([("a.jpg", pictures.jpeg(80, 80))])
    run(names, "backup")
    # The keys were left out of the backup.
    subprocess.run(["tar", "-C", names["ETC"], "-cf", str(tmp_path / "backup" / "secrets.tar"), "--exclude=*.key",
                    "--exclude=*.keys", "."], check=True, timeout=60)
    page = blocks()
    done = subprocess.run(["bash", "-euc", page["names"] + page["restore"]], env={**os.environ, **second},
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 1 and done.stdout.count("MISSING: restore the file") == 3, done.stdout
    assert done.stdout.count("is missing, but the database was used with it; restore the file") == 3, done.stdout
    assert "files in the database" not in done.stdout
    made = (("image", "key", "watermark.key"), ("secret", "sealing", "sealing.key"), ("secret", "signing", "signing.keys"))
    for *words, name in made:
        assert ctl(second, *words, os.path.join(second["ETC"], name)).returncode == 0
    checked = ctl(second, "secret", "check")
    assert checked.returncode == 1 and checked.stdout.count("OTHER KEY") == 3, checked.stdout
    assert ctl(second, "init", "--directory", second["SQL"]).stdout.count("is not the key of this database") == 3
    assert re.search(r"(?m)^keys +WRONG .*restore the file from the backup", ctl(second, "doctor").stdout)
    for name in ("worker", "api"):
        assert "Restore the file from the backup" in started(second, name)
    for purpose in ("watermark", "sealing", "signing"):
        assert ctl(second, "secret", "accept", purpose).returncode == 0
    assert ctl(second, "secret", "check").returncode == 0
    assert started(second, "worker") is True and started(second, "api") is True


def test_a_url_signed_before_a_rotation_is_still_good_after_it(stack, client, names):
    order = client.order_whole([("a.jpg", pictures.jpeg(80, 80))])["orderId"]
    old = client.get(f"/api/v2/orders/{order}/download").data["downloadUrl"]
    run(names, "rotate-signing")
    key, end = re.compile(r"[?&]k=([0-9a-z]+)"), time.monotonic() + 120
    while True:
        new = client.get(f"/api/v2/orders/{order}/download").data["downloadUrl"]
        assert client.request("GET", new, key=False).status == 200, "every process accepts what any of them signs"
        if key.search(old)[1] != key.search(new)[1]:
            break
        assert time.monotonic() < end, "the pool does not sign with the new key"
        time.sleep(0.2)
    assert client.request("GET", old, key=False).status == 200


def test_a_schema_is_brought_up_to_date_under_running_programs(client, names):
    order = begun(client)
    assert "0 applied" in run(names, "upgrade")
    assert client.wait(order)["status"] == "complete"


def test_the_queue_is_drained_and_opened_again(client, names):
    assert "0 jobs running" in run(names, "drain")
    assert client.order_whole([("a.jpg", pictures.jpeg(80, 80))])["status"] == "complete"


def test_orders_go_on_when_one_of_two_pools_and_one_of_two_workers_are_killed(stack, client, names):
    kept = {name: open(os.path.join(names["NGINX"], name), encoding="utf-8").read()
            for name in ("http.conf", "fastcgi.conf")}
    sessions = []
    try:
        run(names, "scale-out")
        end = time.time() + 120
        while not (all(os.path.exists(os.path.join(stack.run, name + ".pid")) for name in ("api2", "worker2"))
                   and stack.sql(f"SELECT 1 FROM workers WHERE pid = {pid_of(stack, 'worker2')}")):
            assert time.time() < end, "the second worker does not tell of itself"
            time.sleep(0.3)
        sessions = [pid_of(stack, "api2"), pid_of(stack, "worker2")]
        time.sleep(1)
        before = [begun(client) for _ in range(4)]
        for session in sessions:
            os.killpg(session, signal.SIGKILL)
        after = [begun(client) for _ in range(6)]
        assert [client.wait(order)["status"] for order in before + after] == ["complete"] * 10
    finally:
        for session in sessions:
            try:
                os.killpg(session, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for name, text in kept.items():
            with open(os.path.join(names["NGINX"], name), "w", encoding="utf-8") as file:
                file.write(text)
        nginx = pid_of(stack, "nginx")
        before, end = children(nginx), time.monotonic() + 60
        os.kill(nginx, signal.SIGHUP)
        while before & children(nginx) and time.monotonic() < end:
            time.sleep(0.1)


def test_an_order_is_followed_by_its_trace(client, names):
    order = begun(client)
    client.wait(order)
    end = time.monotonic() + 60
    while '"event":"order_ended"' not in (shown := run({**names, "ORDER": order}, "trace")):
        assert time.monotonic() < end, shown
        time.sleep(0.2)
    assert '"request":"POST /api/v2/orders/anti-ai"' in shown and '"event":"job_done"' in shown, shown
    assert shown.count('"event":"request"') >= 3 and len({line.split('"trace_id":"')[1][:32] for line in shown.splitlines()}) == 1


def test_every_block_of_the_page_has_its_test():
    with open(__file__, encoding="utf-8") as file:
        own = file.read()
    for name in blocks():
        assert f'"{name}"' in own, name
