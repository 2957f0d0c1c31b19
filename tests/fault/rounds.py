"""Rounds with a random seed: a mixed workload with one breakage, then a check of every invariant.

    rounds.py --rounds 200 --seed 1     random order; every fault point and every breakage in turn
    rounds.py --only "kill result"      rounds whose name contains the words
    rounds.py --seconds 60              as many rounds as fit

Prints a line per round and a summary; the exit code is 1 if an invariant is violated. The seed selects the breakage,
its time and the clients' orders, but the timing on the machine is not reproducible.
"""
import argparse
import collections
import configparser
import fcntl
import json
import os
import random
import signal
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "api")]

import breakages  # noqa: E402
import invariants  # noqa: E402
import points  # noqa: E402
from client import Stack, environment_read  # noqa: E402
from marks import embedded, results  # noqa: E402
from remotes import Remotes  # noqa: E402
from receiver import Receiver  # noqa: E402
from workload import PictureSet, Workload  # noqa: E402

DAY_S = 86400
# Short times make rounds short: leases expire soon, and retries follow immediately.
SETTINGS = {"worker": {"processes": "2", "lease_s": "5", "heartbeat_s": "1", "sweep_ms": "500", "retry_first_ms": "200",
                       "images_per_process": "15"},
            "api": {"processes": "8", "key_cache_s": "1"}, "redis": {"retry_ms": "200"}, "webhooks": {"timeout_s": "4"}}
# Signals that mean a program crashed.
CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSYS)


def build():
    """Builds the programs with fault points in a separate folder."""
    tree = os.environ.get("IMGWARD_FAULTS_BUILD") or os.path.join(ROOT, "build-faults")
    flags = "--enable-faults" + (" --enable-werror" if os.environ.get("CI") == "true" else "")
    with open(tree + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several sessions may build the tree
        done = subprocess.run([os.path.join(ROOT, "dev"), "build"], capture_output=True, text=True, timeout=1200,
                              env={**os.environ, "IMGWARD_BUILD": tree, "IMGWARD_CONFIGURE": flags, "CI": ""})
    if done.returncode != 0:
        sys.exit(f"rounds: the programs do not compile: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return tree


class Site:
    """A private stack for all rounds, with receiver, sources, targets and small file systems."""

    def __init__(self, tree):
        self.var = tempfile.mkdtemp(prefix="imgward-rounds.")
        self.faults = points.Faults(os.path.join(self.var, "faults"))
        self.environment = {**os.environ, "IMGWARD_VAR": self.var, "IMGWARD_BUILD": tree,
                            "IMGWARD_FAULTS": self.faults.path}
        os.environ["IMGWARD_FAULTS"] = self.faults.path  # parts that are restarted later map it too
        self.mounts = {}
        self.dev("up")
        self.stack = Stack(environment_read(os.path.join(self.var, "dev.env")))
        self.mount("store", self.stack.store, "64m", ["worker", "api"])
        self.mount("nginx", os.path.join(self.var, "tmp", "nginx"), "16m", ["nginx"])
        self.mount("database", os.path.join(self.var, "data"), "420m", ["worker", "api", "mariadbd"])
        self.configure()
        self.stack.sql(invariants.WATCH_SQL)
        self.receiver, self.remotes = Receiver(), Remotes()
        self.client = self.stack.account_new()
        hook = self.client.post("/api/v2/orders/webhooks", {"url": self.receiver.url("/hook")})
        self.secret = hook.data["secret"]
        self.picture_set = PictureSet()
        self.picture_set.marked = self.mark()
        self.logs = {name: 0 for name in ("api", "worker")}
        self.troubles = 0  # number of log lines of level warn and error
        self.crashes()

    def dev(self, verb):
        done = subprocess.run([os.path.join(ROOT, "dev"), verb], env=self.environment, capture_output=True, text=True,
                              timeout=600)
        if done.returncode != 0:
            sys.exit(f"rounds: ./dev {verb}: {done.stdout}{done.stderr}")

    def mount(self, name, folder, size, parts):
        """Mounts a small file system on the folder if the machine permits it."""
        for part in parts:
            self.stack.part("stop", part)
        aside = folder + ".aside"
        os.rename(folder, aside)
        os.mkdir(folder, 0o755)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0755", "imgward-rounds", folder],
                              capture_output=True, text=True)
        if done.returncode == 0:
            self.mounts[name] = folder
        for entry in os.listdir(aside):
            shutil.move(os.path.join(aside, entry), os.path.join(folder, entry))
        os.rmdir(aside)
        for part in reversed(parts):
            self.stack.part("start", part)

    def configure(self):
        path = self.stack.environment["IMGWARD_CONFIG"]
        parser = configparser.RawConfigParser()
        parser.read(path)
        for section, values in SETTINGS.items():
            for key, value in values.items():
                if not parser.has_section(section):
                    parser.add_section(section)
                parser.set(section, key, value)
        with open(path, "w", encoding="utf-8") as file:
            parser.write(file)
        for part in ("worker", "api"):
            self.stack.part("stop", part)
            self.stack.part("start", part)

    def mark(self):
        """Makes a watermarked picture; extractions of this account must find the mark."""
        form, _, _, data = self.picture_set.pictures[0]
        order = embedded(self.client, [(f"marked.{form}", data, ["found in every round"])])
        return "found in every round", results(self.client, order["orderId"])[0][1]

    def crashes(self):
        """Returns reports of crashes, and of log lines that must not occur, since the last call."""
        violations = []
        for name in self.logs:
            with open(os.path.join(self.var, "log", name + ".log"), encoding="utf-8", errors="replace") as file:
                file.seek(self.logs[name])
                lines = file.read()
                self.logs[name] = file.tell()
            self.troubles += lines.count('"level":"warn"') + lines.count('"level":"error"')
            for line in lines.splitlines():
                try:
                    entry = json.loads(line)
                except ValueError:
                    if "keep.sh: line" not in line:  # the shell reports that the child was killed
                        violations.append(f"{name} wrote {line[:300]}")
                    continue
                is_crash = entry.get("event") in ("child_died", "image_process_died") and entry.get("signal") in CRASHES
                if is_crash or entry.get("code") == "SERVER_INTERNAL_ERROR" or entry.get("code") in (128 + number for number in CRASHES):
                    violations.append(f"{name} wrote {line[:500]}")
        return violations

    def close(self):
        self.receiver.close()
        self.remotes.close()
        self.dev("down")
        for folder in self.mounts.values():
            subprocess.run(["umount", folder], check=False)
        if not os.environ.get("IMGWARD_ROUNDS_KEEP"):
            shutil.rmtree(self.var, ignore_errors=True)


# ---------------------------------------------------------------- one round
def settle(site, orders, seconds=240):
    """Waits until all started orders are finished, cleared and notified; makes later retries due."""
    end, begun = time.monotonic() + seconds, time.monotonic()
    ids = ",".join(order.id for order in orders if order.is_started) or "0"
    while time.monotonic() < end:
        try:
            [[waiting]] = site.stack.sql(
                f"SELECT (SELECT COUNT(*) FROM orders WHERE id IN ({ids}) AND status IN ('pending', 'inProgress')) + "
                "(SELECT COUNT(*) FROM webhook_deliveries WHERE status IN ('PENDING', 'SENDING')) + (SELECT COUNT(*) "
                "FROM files f JOIN orders o ON o.id = f.order_id WHERE f.store_key IS NOT NULL AND o.status NOT IN "
                "('pending', 'inProgress'))")
            if waiting == "0":
                return []
            if time.monotonic() - begun > 15:
                site.stack.sql("UPDATE webhook_deliveries SET available_at = UTC_TIMESTAMP(3) - INTERVAL 1 HOUR WHERE "
                               "status = 'PENDING' AND failure_count > 0")
        except subprocess.CalledProcessError:
            pass
        time.sleep(0.15)
    violations = [f"after {seconds} s: order {row[0]} is {row[1]}" for row in site.stack.sql(
        f"SELECT id, status FROM orders WHERE id IN ({ids}) AND status IN ('pending', 'inProgress')")]
    violations += [f"after {seconds} s: job {row}" for row in site.stack.sql(
        f"SELECT id, kind, status, attempt, failure_count, reason, available_at, UTC_TIMESTAMP(3) FROM jobs WHERE order_id IN ({ids}) AND status IN ('queued', 'leased')")]
    violations += [f"after {seconds} s: delivery {row}" for row in site.stack.sql(
        "SELECT id, status, attempt, reason FROM webhook_deliveries WHERE status IN ('PENDING', 'SENDING')")]
    return violations + invariants.uncleared(site.stack)


def until_agreed(check, seconds=60):
    """Repeats a check until it reports nothing or the time is over."""
    end = time.monotonic() + seconds
    while True:
        violations = check()
        if not violations or time.monotonic() > end:
            return violations
        time.sleep(0.2)


def age(site):
    """Advances time by a day, so that unconfirmed orders fail, then by a week, so that the files of other orders are
    deleted."""
    violations = []
    with site.stack.configured("test", "clock_offset_s", str(DAY_S + 3600)):
        violations += until_agreed(lambda: [f"{row[0]} is still pending" for row in site.stack.sql(
            "SELECT id FROM orders WHERE status = 'pending'")], 180)
    with site.stack.configured("test", "clock_offset_s", str(7 * DAY_S + 3660)):
        violations += until_agreed(lambda: [f"{row[0]} has not expired" for row in site.stack.sql(
            "SELECT id FROM orders WHERE status = 'complete'")], 240)
    violations += settle(site, [])
    violations += until_agreed(lambda: invariants.store(site.stack, is_last=True))
    return violations


def verify(site, workload, since):
    """Checks every invariant; the database must be running."""
    stack, orders, client = site.stack, workload.orders, site.client
    violations = settle(site, orders)
    violations += invariants.changes(stack, since)
    violations += invariants.created_once(stack, orders)
    violations += invariants.ended(stack, orders)
    violations += until_agreed(lambda: invariants.downloads(client, stack, orders))
    violations += invariants.pushed(site.remotes, orders)
    violations += until_agreed(lambda: invariants.store(stack))
    violations += invariants.deliveries(stack, site.receiver, site.secret, orders)
    violations += invariants.deliveries_known(stack, site.receiver)
    violations += until_agreed(lambda: invariants.statistics(client, stack, client.account))
    return violations + site.crashes()


def calm(site, seconds=240):
    """Waits until every part serves again after the breakage."""
    end = time.monotonic() + seconds
    good = 0
    while good < 5 and time.monotonic() < end:
        try:
            good = good + 1 if site.client.list(limit=1).status == 200 and site.stack.pid("worker") else 0
        except (OSError, ValueError):
            good = 0
        time.sleep(0.05)
    return [] if good >= 5 else [f"the stack does not serve again within {seconds} s"]


def round_run(site, number, seed, breakage, second=None):
    begun = time.monotonic()
    random_ = random.Random(seed)
    workload = Workload(site.client, site.remotes, site.picture_set, seed)
    setting = breakages.Setting(site.stack, site.faults, workload, random_, site.mounts)
    [[since]] = site.stack.sql("SELECT COALESCE(MAX(id), 0) FROM watch.changes")
    taken, troubles = site.faults.taken(breakage.point.name) if breakage.point else 0, site.troubles

    def break_(one):
        try:
            one.run(setting)
        except Exception as error:
            setting.violations.append(f"the breakage itself: {error!r}")
    breakers = [threading.Thread(target=break_, args=(one,)) for one in (breakage, second) if one]
    for breaker in breakers:
        breaker.start()
    looker = workload.run()
    for breaker in breakers:
        breaker.join()
    settle(site, workload.orders, 20)  # a fault point may still wait for the end of these orders
    if breakage.point and breakage.point.name.startswith("age."):
        setting.violations += age(site)
    site.faults.disarm()
    workload.is_over.set()
    looker.join()
    violations = workload.violations + setting.violations + calm(site)
    if breakage.point and breakage.point.name.startswith("age."):
        violations += invariants.changes(site.stack, since) + site.crashes()
    else:
        violations += verify(site, workload, since)
    hit = "" if breakage.point is None else f", taken {site.faults.taken(breakage.point.name) - taken}"
    both = f" and {second.name}" if second else ""
    print(f"round {number:3d} seed {seed} {breakage.name}{hit}{both}: {len(workload.orders)} orders, {workload.requests} requests, "
          f"{workload.transient} tried again, {site.troubles - troubles} troubles logged, {time.monotonic() - begun:.1f} s: {'ok' if not violations else 'BROKEN'}", flush=True)
    for sentence in violations[:12]:
        print(f"    {sentence}", flush=True)
    site.receiver.deliveries.clear() if not violations else None
    return violations


# ---------------------------------------------------------------- all rounds
def plan(random_, mounts, only, is_every_point):
    """Yields each fault point once with kill, once with fail if possible, and once as drawn, and each breakage three times,
    in random order."""
    named = {point.name: point for point in points.table()}
    if is_every_point:
        # If a worker dies with leased jobs, there are expired leases to sweep; otherwise there are none.
        yield breakages.of_point(named["worker.leased"], random_, "kill")
        # This failure does not happen with the servers of the stack.
        yield breakages.of_point(named["order.ids_lost"], random_, "fail")
    while True:
        wanted = [breakages.of_point(point, random_, "kill") for point in points.table()]
        wanted += [breakages.of_point(point, random_, "fail") for point in points.table() if point.can_fail]
        wanted += [breakages.of_point(point, random_) for point in points.table()]
        wanted += [breakages.of_name(name) for name in breakages.EXTERNAL for _ in range(3)
                   if breakages.MOUNTED.get(name, name) in mounts or name not in breakages.MOUNTED]
        if only:
            wanted = [breakage for breakage in wanted if only in breakage.name]
        if not wanted:
            sys.exit(f"rounds.py: no point and no breakage has \"{only}\" in its name; --list shows them")
        random_.shuffle(wanted)
        yield from wanted


def second_of(random_):
    """Returns a second fault point during a breakage, one that is reached without another breakage."""
    simple = [point for point in points.table() if point.name not in breakages.PROVOKED and not point.name.startswith("age.")]
    return breakages.of_point(random_.choice(simple), random_)


def summary(site, count, broken, kinds, seconds):
    unpassed = [name for name in site.faults.points if site.faults.passed(name) == 0]
    untaken = [name for name in site.faults.points if site.faults.taken(name) == 0]
    print(f"{count} rounds in {seconds:.0f} s, {len(broken)} broken"
          + (f" (rounds {', '.join(map(str, broken))})" if broken else ""))
    print(f"{len(site.faults.points)} fault points, {len(site.faults.points) - len(unpassed)} passed, "
          f"{len(site.faults.points) - len(untaken)} taken; " + ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items())))
    if unpassed:
        print("never passed: " + ", ".join(unpassed))
    for name in sorted(set(breakages.MOUNTED.values())):
        if name not in site.mounts:
            print(f"skipped: the disk of {name} full, for mounting is not permitted here")
    return unpassed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=10**6)
    parser.add_argument("--seconds", type=int, default=10**6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--every-point", action="store_true", help="fail when a fault point was never reached")
    parser.add_argument("--build", action="store_true", help="only build the programs")
    parser.add_argument("--list", action="store_true", help="list fault points and breakages, then exit")
    options = parser.parse_args()
    if options.build:
        build()
        return 0
    if options.list:
        for point in points.table():
            print(f"{point.name:<20} {'kill, fail, delay' if point.can_fail else 'kill, delay':<18} {point.sentence}")
        print("\n".join(name.replace("_", " ") for name in breakages.EXTERNAL))
        return 0
    if options.rounds == 10**6 and options.seconds == 10**6:
        options.rounds = 20
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # also stops the stack
    site = Site(build())
    broken, kinds, count, begun = [], collections.Counter(), 0, time.monotonic()
    try:
        for breakage in plan(random.Random(options.seed), site.mounts, options.only, options.every_point):
            if count == options.rounds or time.monotonic() - begun > options.seconds:
                break
            count += 1
            kinds["points" if breakage.point else "breakages"] += 1
            seed = options.seed * 100000 + count
            second = second_of(random.Random(-seed)) if not breakage.point and count % 3 == 0 else None
            kinds["with a point as well"] += second is not None
            if round_run(site, count, seed, breakage, second):
                broken.append(count)
            # The store is small, so the expiry of old orders makes space.
            if count % 40 == 0:
                violations = age(site) + site.crashes()
                print("a week later: " + ("ok" if not violations else "BROKEN\n    " + "\n    ".join(violations[:20])), flush=True)
                broken += [count] * bool(violations)
        violations = age(site) + site.crashes()
        print("after the last round, a week later: " + ("ok" if not violations else "BROKEN\n    " + "\n    ".join(violations[:20])))
        unpassed = summary(site, count, broken, kinds, time.monotonic() - begun)
        return 1 if broken or violations or (options.every_point and unpassed) else 0
    finally:
        site.close()


if __name__ == "__main__":
    sys.exit(main())
