"""Nodes of a site with two of everything are stopped, killed and isolated, one at a time, under load.

Nothing that was answered may be lost. A table shows the longest gap of service of each breakage.
"""
import random
import subprocess
import threading
import time

import pytest

import site_cluster as site_module
import rounds
from workload import Order, Workload

# Seconds between the loss of a part and its return.
AWAY_S = 3


@pytest.fixture(scope="module")
def site():
    lack = site_module.missing()
    if lack:
        pytest.skip(lack)
    made = site_module.Site.__new__(site_module.Site)
    try:
        made.__init__()
        yield made
    finally:
        made.close()


class Load:
    """The mixed workload, again and again, and three clients that measure gaps: reads, creations, whole orders."""

    def __init__(self, site):
        self.site = site
        self.is_over = threading.Event()
        self.workloads = []
        self.done = {"read": [], "create": [], "order": []}
        self.pulse = Workload(site.client, site.places, site.shelf, 0, 600)
        self.threads = [threading.Thread(target=act) for act in (self.mix, self.read, self.create, self.order)]
        for thread in self.threads:
            thread.start()

    def mix(self):
        while not self.is_over.is_set():
            workload = Workload(self.site.client, self.site.places, self.site.shelf, len(self.workloads) + 1)
            self.workloads.append(workload)
            looker = workload.run()
            workload.is_over.set()
            looker.join()
            # The next orders follow when these are done, so that the queue stays short on a slow machine.
            while not self.is_over.wait(0.2) and self.waiting() > 3:
                pass

    def waiting(self):
        try:
            return int(self.site.stack.sql("SELECT COUNT(*) FROM orders WHERE status = 'inProgress'")[0][0])
        except (OSError, subprocess.SubprocessError):
            return 0

    def note(self, kind, answer, good):
        if answer is not None and answer.status in good:
            self.done[kind].append(time.monotonic())
        elif answer is not None:
            self.pulse.violate(f"{kind}: {answer}")

    def read(self):
        while not self.is_over.wait(0.05):
            self.note("read", self.pulse.ask("read", lambda: self.site.client.list(limit=2)), (200,))

    def create(self):
        while not self.is_over.wait(0.1):
            order = Order("only created")
            order.is_given_up = True
            body = {"idempotencyKey": order.key, "files": [{"fileName": "a.jpg"}]}
            self.pulse.orders.append(order)
            answer = self.pulse.ask("create", lambda: self.site.client.post("/api/v2/orders/anti-ai", body))
            if answer is not None and answer.status == 201:
                order.id = answer.data["orderId"]
                order.ids.add(order.id)
                # The next request may go to another pool, and must find the order.
                seen = self.pulse.ask("detail", lambda: self.site.client.detail(order.id))
                if seen is not None and seen.status != 200:
                    self.pulse.violate(f"an order that was answered is not found: {seen}")
            self.note("create", answer, (201,))

    def order(self):
        """One embedding order after the other, from its creation to its end."""
        while not self.is_over.is_set():
            self.pulse.embed(random.Random(len(self.done["order"])))
            order = next(order for order in reversed(self.pulse.orders) if order.kind == "embed")
            while not self.is_over.wait(0.05):
                answer = self.pulse.ask("detail", lambda: self.site.client.detail(order.id))
                if answer is not None and answer.status == 200 and answer.data["status"] not in ("pending", "inProgress"):
                    self.done["order"].append(time.monotonic())
                    break

    def gap(self, kind, begun, ended):
        """The longest time without a success that touches the interval."""
        times = [at for at in self.done[kind]]
        before = max((at for at in times if at <= begun), default=begun)
        after = min((at for at in times if at >= ended), default=ended)
        points = [before, *(at for at in times if begun < at < ended), after]
        return max(b - a for a, b in zip(points, points[1:]))

    def progress(self, seconds=60):
        """Waits until each client had a success after now."""
        begun = time.monotonic()
        for kind, times in self.done.items():
            site_module.until(lambda: times and times[-1] > begun, f"a success of {kind}", seconds)

    def close(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()
        whole = Workload(self.site.client, self.site.places, self.site.shelf, 0)
        for one in (*self.workloads, self.pulse):
            whole.orders += one.orders
            whole.violations += one.violations
            whole.requests += one.requests
            whole.transient += one.transient
        return whole


# ---------------------------------------------------------------- breakages
def changes(site, reason):
    return sum(site.log_count(name, f'"event":"database_changed"') and
               site.log_count(name, f'"reason":"{reason}"') for name in ("api1", "api2", "worker1", "worker2"))


def back_to_first(site, before):
    """Both pools and both workers use the first node again."""
    site_module.until(lambda: changes(site, "back") >= before + 4, "the first node is used again", 90)


def first_node_killed(site):
    before = changes(site, "back")
    site.node("kill", 1)
    yield
    site.node("start", 1)
    back_to_first(site, before)


def first_node_stopped(site):
    before = changes(site, "back")
    site.node("stop", 1)
    yield
    site.node("start", 1)
    back_to_first(site, before)


def first_node_isolated(site):
    """Without quorum it answers 1047."""
    before = changes(site, "back")
    site.node_sql(1, "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'")
    site_module.until(lambda: "OFF" in site.node_sql(1, "SHOW STATUS LIKE 'wsrep_ready'"), "the node is not ready")
    yield
    site.node_sql(1, "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=0'")
    back_to_first(site, before)


def second_node_killed(site):
    site.node("kill", 2)
    yield
    site.node("start", 2)


def redis_master_killed(site):
    master = site.redis_master()
    site.parts[f"redis{master}"].kill()
    site_module.until(lambda: site.redis_master() != master, "another master", 30)
    yield
    site.parts[f"redis{master}"].start()
    site_module.until(lambda: "role:slave" in site_module.run("redis-cli", "-p", str(site.redis_port(master)), "info", "replication"),
                      "the old master is a replica", 60)


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
    lines = ["| Breakage | read, s | create, s | order, s |", "|---|---|---|---|"]
    lines += [f"| {name} | {gaps['read']:.2f} | {gaps['create']:.2f} | {gaps['order']:.2f} |" for name, gaps in rows]
    return "\n".join(lines)


def test_nodes_go_and_come_back_under_load_and_nothing_is_lost(site, capsys):
    load = Load(site)
    rows = []
    try:
        load.progress()
        begun = time.monotonic()
        time.sleep(AWAY_S)
        rows.append(("none", {kind: load.gap(kind, begun, time.monotonic()) for kind in load.done}))
        for name, act in BREAKAGES:
            begun = time.monotonic()
            steps = act(site)
            next(steps)
            time.sleep(AWAY_S)
            load.progress()
            for _ in steps:
                pass
            load.progress()
            rows.append((name, {kind: load.gap(kind, begun, time.monotonic()) for kind in load.done}))
    finally:
        whole = load.close()
        with capsys.disabled():
            print(f"\n{table(rows)}\n{len(whole.orders)} orders, {whole.requests} requests, {whole.transient} tried again", flush=True)
    said = whole.violations + rounds.verify(site, whole, 0)
    assert said == []
    # A request finds the next database node and the new master of Redis within seconds, unless the machine is busy.
    assert max(gaps["read"] for _, gaps in rows) < 60, table(rows)
