"""An installed imgward as clients and the administrator see it. The clients are outside of the machine: they use TLS and
the machine's address."""
import contextlib
import hashlib
import os
import re
import socket
import ssl
import subprocess
import threading
import time

import machine as machine_module
from client import Client
from marks import embedded, results
from remotes import Remotes
from receiver import Receiver
from workload import PictureSet, Workload

UNITS = ("imgward-api", "imgward-worker", "imgward-console")
addresses = {}
_resolve = socket.getaddrinfo


def resolve(name, *words, **more):
    """Resolves the machines' names, which are not in DNS."""
    return _resolve(addresses.get(name, name), *words, **more)


socket.getaddrinfo = resolve


class Installed:
    """The stack of tests/api/client.py on a machine. paths are those of the package, or of another prefix."""

    def __init__(self, machine, config="/etc/imgward/imgward.conf", ctl="imgwardctl"):
        self.machine, self.config_path, self.ctl_path = machine, config, ctl
        self.url = f"https://{machine.host_name}"
        self.store = machine.path("/var/lib/imgward/store")
        self.environment = {}
        addresses[machine.host_name] = machine.address

    @property
    def tls(self):
        """Returns a context that trusts the machine's authorities."""
        return ssl.create_default_context(cafile=self.machine.path("/etc/ssl/certs/ca-certificates.crt"))

    def ctl(self, *words, check=True):
        return self.machine.run(self.ctl_path, *words, check=check)

    def sql(self, statement):
        """Runs a statement as the administrator, like tests/api/client.py."""
        try:
            text = self.machine.run("mariadb", "--no-defaults", "-N", "-B", "-S", "/run/mysqld/mysqld.sock", "imgward", "-e", statement)
        except machine_module.Failed as error:
            raise subprocess.CalledProcessError(1, statement, str(error)) from error
        return [line.split("\t") for line in text.split("\n")[:-1]]

    def pid(self, name):
        return int(self.machine.main_pid("imgward-" + name))

    def account_new(self, plan="enterprise", requests_per_minute=1000000):
        name = "test-" + hashlib.sha256(os.urandom(8)).hexdigest()[:12]
        account = self.ctl("account", "create", "--plan", plan, name).split()[-1]
        self.ctl("account", "plan", "--requests-per-minute", str(requests_per_minute), account, plan)
        key = re.search(r"iw_live_[0-9A-Za-z]{43}", self.ctl("key", "create", account))[0]
        return Client(self, key, account)

    def set(self, section, **values):
        """Sets keys of the configuration."""
        kept, at = [], None
        for line in self.machine.read(self.config_path).splitlines():
            at = line.strip("[] ") if line.startswith("[") else at
            if at != section or line.partition("=")[0].strip() not in values:
                kept.append(line)
        with open(self.machine.path(self.config_path), "w", encoding="utf-8") as file:
            file.write("\n".join([*kept, f"[{section}]", *(f"{key} = {value}" for key, value in values.items())]) + "\n")

    def restart(self, *units):
        self.machine.run("systemctl", "restart", *units)

    def units_are(self, state, *units):
        return self.machine.run("systemctl", "is-active", *units, check=False).split() == [state] * len(units)


class Site:
    """An installed service with clients, sources, targets and a webhook receiver outside, with the members of a site of
    tests/fault/rounds.py."""

    def __init__(self, machine, **paths):
        self.machine = machine
        self.stack = Installed(machine, **paths)
        self.receiver = Receiver(machine.gateway)
        self.remotes = Remotes(address=machine.gateway)
        self.since = None

    def open_network(self):
        """Allows URLs of the test's own receivers, which have private addresses."""
        self.stack.set("outgoing", allow_http="yes", allow_addresses=self.machine.gateway + "/32", allow_ports="1024-65535")
        self.stack.restart("imgward-api", "imgward-worker")

    def account_use(self):
        self.client = self.stack.account_new()
        self.secret = self.client.post("/api/v2/orders/webhooks", {"url": self.receiver.url("/hook")}).data["secret"]
        self.picture_set = PictureSet()
        form, _, _, data = self.picture_set.pictures[0]
        order = embedded(self.client, [(f"marked.{form}", data, ["found on every host"])])
        self.picture_set.marked = "found on every host", results(self.client, order["orderId"])[0][1]

    def crashes(self):
        """Returns the programs of ours that crashed since the start of the watch."""
        text = self.machine.run("journalctl", "-o", "cat", "--since", self.since, *[f"-uimgward-{name}" for name in
                                ("api", "worker", "console")], check=False)
        return [line[:300] for line in text.splitlines() if re.search(
            r'"event":"(child_died|image_process_died)".*"signal":(11|6|7|8|4|31)\b|"code":"SERVER_INTERNAL_ERROR"|AddressSanitizer', line)]

    def close(self):
        self.receiver.close()
        self.remotes.close()


class Load:
    """Repeats the mixed workload of tests/fault until the end."""

    def __init__(self, site):
        self.site, self.workloads, self.is_over = site, [], threading.Event()
        self.thread = threading.Thread(target=self.mix)
        self.thread.start()

    def mix(self):
        while not self.is_over.is_set():
            workload = Workload(self.site.client, self.site.remotes, self.site.picture_set, len(self.workloads) + 1, 600)
            self.workloads.append(workload)
            looker = workload.run()
            workload.is_over.set()
            looker.join()
            while not self.is_over.wait(1) and self.waiting() > 2:
                pass

    def waiting(self):
        try:
            return int(self.site.stack.sql("SELECT COUNT(*) FROM orders WHERE status = 'inProgress'")[0][0])
        except (OSError, subprocess.SubprocessError, ValueError, IndexError):
            return 0

    def close(self):
        """Returns all orders and violations as one workload."""
        self.is_over.set()
        self.thread.join()
        whole = Workload(self.site.client, self.site.remotes, self.site.picture_set, 0)
        for one in self.workloads:
            whole.orders += one.orders
            whole.violations += one.violations
            whole.requests += one.requests
            whole.transient += one.transient
        return whole


@contextlib.contextmanager
def loaded(site, seconds=3):
    """Runs a block under load. Yields a list, which contains the whole workload after the block."""
    load, found = Load(site), []
    try:
        time.sleep(seconds)
        yield found
        time.sleep(1)
    finally:
        found.append(load.close())
