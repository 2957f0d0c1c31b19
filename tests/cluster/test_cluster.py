"""Nodes of a site with two of everything are stopped, killed and isolated, one at a time, under load.

No acknowledged change may be lost. A table shows the longest gap of service of each breakage.
"""
import re
import signal
import subprocess
import threading
import time

import pytest

import rounds
import site_cluster as site_module
from load import Load

# Seconds between the loss of a part and its return.
AWAY_S = 1


@pytest.fixture(scope="module")
def site():
    yield from site_module.opened(site_module.Site)


# ---------------------------------------------------------------- breakages
def back_to_first(site, before):
    """Waits until both pools and both workers use the first node again."""
    site_module.until(lambda: site.changes("back") >= before + 4 and site.all_changed("back"), "the first node is used again", 180)


def first_node_killed(site):
    before = site.changes("back")
    site.node("kill", 1)
    yield
    site.node("start", 1)
    back_to_first(site, before)


def first_node_stopped(site):
    before = site.changes("back")
    site.node("stop", 1)
    yield
    site.node("start", 1)
    back_to_first(site, before)


def first_node_isolated(site):
    """Without quorum the node returns error 1047."""
    before = site.changes("back")
    site.node_sql(1, "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'")
    site_module.until(lambda: "OFF" in site.node_sql(1, "SHOW STATUS LIKE 'wsrep_ready'"), "the node is not ready")
    yield
    site.node_sql(1, "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=0'")
    back_to_first(site, before)


def first_node_frozen(site):
    """The node accepts connections but sends no response. A worker that has just restarted may already use another node."""
    before = site.changes("back")
    site.node_signal(1, signal.SIGSTOP)
    site_module.until(lambda: site.all_changed("away"), "all programs leave the node", 180)
    yield
    site.node_signal(1, signal.SIGCONT)
    back_to_first(site, before)


def second_node_killed(site):
    site.node("kill", 2)
    yield
    site.node("start", 2)


def redis_master_killed(site):
    master = site.redis_master()
    site.parts[f"redis{master}"].kill()
    site_module.until(lambda: site.redis_master() != master, "another master", 120)
    yield
    site.parts[f"redis{master}"].start()
    site_module.until(lambda: "role:slave" in site_module.run("redis-cli", "-p", str(site.redis_port(master)), "info", "replication"),
                      "the old master is a replica", 120)


def part_killed(name):
    def act(site):
        site.parts[name].kill()
        yield
        site.parts[name].start()
    return act


def part_stopped(name):
    def act(site):
        site.parts[name].stop()
        yield
        site.parts[name].start()
    return act


BREAKAGES = [
    ("first database node killed", first_node_killed),
    ("worker killed", part_killed("worker1")),
    ("first database node frozen", first_node_frozen),
    ("Redis master killed", redis_master_killed),
    ("pool killed", part_killed("api1")),
    ("first database node isolated", first_node_isolated),
    ("nginx killed", part_killed("nginx1")),
    ("second database node killed", second_node_killed),
    ("pool stopped", part_stopped("api2")),
    ("worker stopped", part_stopped("worker2")),
    ("first database node stopped", first_node_stopped),
]


def table(rows):
    lines = ["| Breakage | List | Create | Order | whole, s |", "|---|---|---|---|---|"]
    lines += [f"| {name} | {gaps['read']:.2f} | {gaps['create']:.2f} | {gaps['order']:.2f} | {gaps['whole']:.0f} |"
              for name, gaps in rows]
    return "\n".join(lines)


def test_a_read_waits_for_the_commits_of_other_nodes(site):
    """A pool that cannot reach the first node writes to the second one. Other pools see its commits."""
    order = site.client.create().data["orderId"]
    lock = subprocess.Popen(["mariadb", "--no-defaults", "-uroot", "-NB", "--unbuffered", "-S", site.sockets[0]],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    lock.stdin.write(b"FLUSH TABLES WITH READ LOCK; SELECT 'locked';\n")
    lock.stdin.flush()
    assert lock.stdout.readline() == b"locked\n"
    # The first node applies this after the lock.
    site.node_sql(2, f"UPDATE imgward.orders SET name = 'Of the second node' WHERE id = {order}")
    assert "Of the second node" not in site.node_sql(1, f"SET wsrep_sync_wait = 0; SELECT name FROM imgward.orders WHERE id = {order}")
    unlock = threading.Timer(0.5, lock.communicate)
    unlock.start()
    seen = site.client.detail(order)
    while seen.status == 503:  # a read that waited for database.statement_max_s
        seen = site.client.detail(order)
    unlock.join()
    assert seen.data["orderName"] == "Of the second node", seen


def test_nodes_go_and_come_back_under_load_and_nothing_is_lost(site, capsys):
    load = Load(site)
    rows = []
    try:
        load.progress()
        doctor = site.stack.ctl("doctor", "--directory", f"{site_module.ROOT}/sql", check=False)
        assert re.search(r"^servers +ok +3 of 3 are writable, .*/n1/sock is used, its node is Synced$", doctor, re.M), doctor
        assert re.search(r"^sentinels +ok +all 3 name 127\.0\.0\.1:\d+$", doctor, re.M), doctor
        begun = time.monotonic()
        time.sleep(AWAY_S)
        rows.append(("none", load.gaps(begun)))
        for name, act in BREAKAGES:
            begun = time.monotonic()
            steps = act(site)
            next(steps)
            time.sleep(AWAY_S)
            load.progress()
            for _ in steps:
                pass
            load.progress()
            rows.append((name, load.gaps(begun)))
    finally:
        whole = load.close()
        with capsys.disabled():
            print(f"\n{table(rows)}\n{len(whole.orders)} orders, {whole.requests} requests, {whole.transient} tried again", flush=True)
    metrics = site.client.get("/metrics").body.decode()
    assert "\nimgward_database_server 1\n" in metrics and "\nimgward_database_cluster_size 3\n" in metrics
    assert float(re.search(r"^imgward_database_changes_total (\d+)$", metrics, re.M)[1]) >= 2
    violations = whole.violations + rounds.verify(site, whole, 0)
    assert violations == []
    # A request finds the next database node and the new master of Redis within seconds, unless the machine is busy.
    assert max(gaps["read"] for _, gaps in rows) < 60, table(rows)
