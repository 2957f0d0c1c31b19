"""A private site with two of everything: Galera nodes, Redis with Sentinels, two machines with nginx, pool and worker.

A machine is a folder with separate configuration, sockets and logs. Both share database, Redis and file store. Each
nginx knows both pools, as doc/operating.md describes.
"""
import concurrent.futures
import getpass
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "fault"), os.path.join(ROOT, "tests", "api")]

from client import Client, Stack  # noqa: E402
import invariants  # noqa: E402
import rounds  # noqa: E402
from remotes import Remotes  # noqa: E402
from receiver import Receiver  # noqa: E402
from workload import PictureSet  # noqa: E402

BUILD = os.environ.get("IMGWARD_BUILD") or os.path.join(ROOT, "build")
GALERA = os.path.join(ROOT, "tests", "cluster", "galera-mini")
PROVIDER = "/usr/lib/galera/libgalera_smm.so"
SENTINELS = 3
# Seconds for which the first node must be ready before it is used again.
BACK_S = 2


def missing():
    """Returns what this machine lacks for the tests; "" if it has everything."""
    if not os.path.exists(PROVIDER):
        return "galera-4 is not installed: ./dev deps cluster"
    for program in ("mariadbd", "mariadb-install-db", "rsync", "lsof", "redis-server", "nginx"):
        if shutil.which(program) is None:
            return f"{program} is not installed: ./dev deps cluster"
    return ""


def run(*words, seconds=180, **environment):
    done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, env={**os.environ, **environment})
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stdout[-1500:]}{done.stderr[-1500:]}")
    return done.stdout


def until(check, what, seconds=120):
    """Waits until check() is true; an exception counts as false."""
    end = time.monotonic() + seconds
    while True:
        try:
            if check():
                return
        except (OSError, ValueError, RuntimeError, subprocess.SubprocessError):
            pass
        if time.monotonic() > end:
            raise TimeoutError(f"{what} within {seconds} s")
        time.sleep(0.1)


def ports_free(count):
    """Returns the first of count successive free ports, below the kernel's range for outgoing connections."""
    for base in itertools.count(11000 + os.getpid() % 150 * 100, count):
        sockets = []
        try:
            for port in range(base, base + count):
                sockets.append(socket.create_server(("127.0.0.1", port)))
            return base
        except OSError:
            continue
        finally:
            for one in sockets:
                one.close()


class Part:
    """A program in a separate session."""

    def __init__(self, words, log):
        self.words, self.log, self.process = words, log, None
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True)

    def members(self):
        """Returns the processes of the session, also those that changed their process group."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                    words = file.read().rsplit(") ", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(words[3]) == self.process.pid and words[0] != "Z":
                found.append(int(name))
        return found

    def kill(self):
        """Ends all processes by SIGKILL; repeats because one may be forking."""
        while found := self.members():
            for pid in found:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.02)
        self.process.wait()

    def stop(self, seconds=60):
        self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        self.kill()


class Front(Client):
    """Clients of a name with several addresses: each request goes to the next address, or to another if that refuses."""

    def __init__(self, site, key=None, account=None):
        super().__init__(site.stack, key, account)
        self.clients = [Client(stack, key, account) for stack in site.stacks]
        self.turn = itertools.count()

    def request(self, method, path, body=None, headers=None, key=True, timeout=60):
        target = urllib.parse.urlsplit(path)
        if target.netloc:
            path, key = target.path + ("?" + target.query if target.query else ""), False
        first = next(self.turn)
        for at in range(len(self.clients)):
            client = self.clients[(first + at) % len(self.clients)]
            try:
                return client.request(method, path, body, headers, key, timeout)
            except ConnectionRefusedError:
                if at == len(self.clients) - 1:
                    raise


class SiteStack(Stack):
    """Runs the SQL of the invariants on any node that responds, after all commits of other nodes."""

    site = None

    def sql(self, statement):
        for number in range(1, len(self.site.sockets) + 1):
            try:
                done = subprocess.run(
                    ["mariadb", "--no-defaults", "--connect-timeout=3", "-uroot", "-N", "-B", "-S",
                     self.site.sockets[number - 1], "imgward",
                     "-e", f"SET wsrep_sync_wait = 15; {statement}"], capture_output=True, timeout=30, check=True)
                return [line.split("\t") for line in done.stdout.decode(errors="replace").split("\n")[:-1]]
            except subprocess.SubprocessError:
                if number == len(self.site.sockets):
                    raise

    def account_new(self, plan="enterprise", requests_per_minute=1000000):
        client = super().account_new(plan, requests_per_minute)
        return Front(self.site, client.key, client.account)


class Site:
    def __init__(self):
        self.var = tempfile.mkdtemp(prefix="imgward-cluster.", dir="/tmp")
        os.chmod(self.var, 0o755)
        self.base = ports_free(60)
        self.parts = {}
        self.log = os.path.join(self.var, "log")
        self.store = os.path.join(self.var, "store")
        self.shared = os.path.join(self.var, "etc")
        for folder in (self.log, self.store, self.shared):
            os.mkdir(folder, 0o700)
        self.logs, self.troubles = {}, 0
        self.receiver, self.remotes = Receiver(), Remotes()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(lambda start: start(), (self.database_start, self.redis_start)))
        self.secrets_make()
        self.machines_make()
        self.accounts_make()

    # ---- database
    def database_start(self):
        self.galera = os.path.join(self.var, "g")
        # On a busy machine a node may need longer than the tool waits.
        for last in (False, False, True):
            try:
                run(GALERA, "up", self.galera, str(self.base))
                break
            except RuntimeError:
                if last:
                    raise
                subprocess.run([GALERA, "down", self.galera], check=False, timeout=60)
                shutil.rmtree(self.galera, ignore_errors=True)
        self.sockets = [os.path.join(self.galera, f"n{number}", "sock") for number in (1, 2, 3)]
        # A socket and two ports, so that both kinds are tested.
        self.hosts = f"{self.sockets[0]}, 127.0.0.1:{self.base + 1}, 127.0.0.1:{self.base + 2}"

    def database_stop(self):
        run(GALERA, "down", self.galera)

    def node(self, verb, number):
        run(GALERA, verb, self.galera, str(number))

    def node_signal(self, number, name):
        with open(os.path.join(self.galera, f"n{number}", "pid"), encoding="ascii") as file:
            os.kill(int(file.read()), name)

    def node_sql(self, number, statement):
        return run("mariadb", "--no-defaults", "-uroot", "-NB", "-S", self.sockets[number - 1], "-e", statement)

    # ---- Redis
    def redis_port(self, number):
        return self.base + 40 + number

    def redis_start(self):
        for number in range(3):
            folder = os.path.join(self.var, f"redis{number}")
            os.mkdir(folder)
            path = os.path.join(folder, "redis.conf")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"port {self.redis_port(number)}\nbind 127.0.0.1\ndir {folder}\nsave \"\"\nappendonly no\n"
                           "maxmemory 64mb\nmaxmemory-policy volatile-ttl\nrepl-diskless-sync-delay 0\n"
                           + (f"replicaof 127.0.0.1 {self.redis_port(0)}\n" if number else ""))
            self.part(f"redis{number}", "redis-server", path)
        until(lambda: run("redis-cli", "-p", str(self.redis_port(0)), "info", "replication").count("state=online") == 2,
              "two replicas of Redis", 60)
        for number in range(SENTINELS):
            folder = os.path.join(self.var, f"sentinel{number}")
            os.mkdir(folder)
            path = os.path.join(folder, "sentinel.conf")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"port {self.redis_port(10 + number)}\nbind 127.0.0.1\ndir {folder}\n"
                           f"sentinel monitor images 127.0.0.1 {self.redis_port(0)} 2\n"
                           "sentinel down-after-milliseconds images 1000\nsentinel failover-timeout images 4000\n")
            self.part(f"sentinel{number}", "redis-server", path, "--sentinel")
        until(lambda: all(f"sentinels={SENTINELS}" in self.sentinel(number, "info", "sentinel") and
                          "slaves=2" in self.sentinel(number, "info", "sentinel") for number in range(SENTINELS)),
              "the Sentinels know each other", 60)

    def sentinel(self, number, *words):
        return run("redis-cli", "-p", str(self.redis_port(10 + number)), *words)

    def redis_master(self):
        """Returns the number of the server that the Sentinels name."""
        return int(self.sentinel(0, "sentinel", "get-master-addr-by-name", "images").split()[1]) - self.redis_port(0)

    # ---- programs
    def part(self, name, *words):
        self.parts[name] = Part(list(words), os.path.join(self.log, name + ".log"))

    def secrets_make(self):
        def write(name, text):
            with open(os.path.join(self.shared, name), "w", encoding="utf-8",
                      opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write(text)
        write("database.password", "of-the-service\n")
        write("owner.password", "of-the-owner\n")
        write("signing.keys", f"one:{os.urandom(32).hex()}\n")
        with open(os.open(os.path.join(self.shared, "watermark.key"), os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
            file.write(os.urandom(32))
        run(os.path.join(BUILD, "imgwardctl"), "secret", "sealing", os.path.join(self.shared, "sealing.key"))
        users = "".join(
            f"CREATE USER imgward@'{place}' IDENTIFIED BY 'of-the-service';"
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON imgward.* TO imgward@'{place}';"
            f"CREATE USER imgward_owner@'{place}' IDENTIFIED BY 'of-the-owner';"
            f"GRANT ALL ON imgward.* TO imgward_owner@'{place}';" for place in ("localhost", "127.0.0.1"))
        self.node_sql(1, f"CREATE DATABASE imgward CHARACTER SET utf8mb4; {users}")

    def store_keys(self):
        """Returns the keys of [store] for both machines: a shared folder. A site with an object store overrides this."""
        return f"path = {self.store}"

    def config(self, number):
        with open(os.path.join(ROOT, "tests", "stack", "imgward.conf"), encoding="utf-8") as file:
            text = file.read()
        var = self.machine(number)
        text = re.sub(r"\[database\].*?\[api\]", f"""[database]
hosts = {self.hosts}
back_s = {BACK_S}
name = imgward
user = imgward
password_file = {self.shared}/database.password
timeout_s = 5

[redis]
sentinels = {", ".join(f"127.0.0.1:{self.redis_port(10 + place)}" for place in range(SENTINELS))}
master = images
retry_ms = 500

[api]
processes = 6
key_cache_s = 1""", text, flags=re.S)
        text = text.replace("path = @VAR@/store", self.store_keys()).replace("@VAR@/etc/", self.shared + "/")
        text = text.replace("[worker]", "[worker]\nprocesses = 1\nlease_s = 5\nheartbeat_s = 1\nsweep_ms = 500\n"
                            "retry_first_ms = 200")
        # One user of the database for all programs.
        text = re.sub(r"^database_(user|password_file) = .*\n", "", text, flags=re.M)
        for name, value in (("RUN", os.path.join(var, "run")), ("VAR", var), ("ROOT", ROOT), ("BUILD", BUILD),
                            ("HTTPS", str(self.https(1)))):
            text = text.replace(f"@{name}@", value)
        return text

    def machine(self, number):
        return os.path.join(self.var, f"m{number}")

    def https(self, number):
        return self.base + 55 + number

    def machine_make(self, number):
        var = self.machine(number)
        for folder in ("etc", "run", "log", "tmp/nginx", "tls"):
            os.makedirs(os.path.join(var, folder))
        config = self.config(number)
        with open(os.path.join(var, "etc", "imgward.conf"), "w", encoding="utf-8") as file:
            file.write(config)
        with open(os.path.join(var, "etc", "owner.conf"), "w", encoding="utf-8") as file:
            file.write(config.replace("user = imgward\n", "user = imgward_owner\n").replace("database.password", "owner.password"))
        for name in ("server.pem", "server.key"):
            shutil.copy(os.path.join(self.shared, name), os.path.join(var, "tls"))
        run(os.path.join(ROOT, "tests", "stack", "nginx.sh"), str(self.https(number)), str(self.https(number) + 2),
            IMGWARD_ROOT=ROOT, IMGWARD_VAR=var, IMGWARD_BUILD=BUILD)
        folder = os.path.join(var, "etc", "imgward")
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            both = "".join(f"    server unix:{self.machine(one)}/run/api.sock max_fails=1 fail_timeout=2s;\n"
                           for one in (number, 3 - number))
            text = re.sub(r"^    server unix:.*/api\.sock .*\n", both, text, flags=re.M)
            text = text.replace("fastcgi_next_upstream off;", "fastcgi_next_upstream error;").replace(f"{var}/store", self.store)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)

    def tls_make(self):
        tls = self.shared
        for words in (
                "ecparam -name prime256v1 -genkey -noout -out ca.key",
                "req -x509 -new -key ca.key -days 30 -subj /CN=cluster -addext basicConstraints=critical,CA:TRUE "
                "-addext keyUsage=critical,keyCertSign,cRLSign -out ca.pem",
                "ecparam -name prime256v1 -genkey -noout -out server.key",
                "req -x509 -new -key server.key -CA ca.pem -CAkey ca.key -days 30 -subj /CN=localhost "
                "-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -addext extendedKeyUsage=serverAuth -out server.pem"):
            subprocess.run(["openssl", *words.split()], cwd=tls, check=True, capture_output=True, timeout=60)

    def machines_make(self):
        self.tls_make()
        for number in (1, 2):
            self.machine_make(number)
        run(os.path.join(BUILD, "imgwardctl"), "--config", os.path.join(self.machine(1), "etc", "owner.conf"), "migrate",
            "--directory", os.path.join(ROOT, "sql"))
        keep = os.path.join(ROOT, "tests", "stack", "keep.sh")
        for number in (1, 2):
            var = self.machine(number)
            for name in ("api", "worker"):
                self.part(f"{name}{number}", keep, os.path.join(BUILD, f"imgward-{name}"), "--config",
                          os.path.join(var, "etc", "imgward.conf"))
                self.logs[f"{name}{number}"] = 0
            until(lambda: os.path.exists(os.path.join(var, "run", "api.sock")), "the pool listens")
            self.part(f"nginx{number}", "nginx", "-e", os.path.join(self.log, f"nginx{number}.log"), "-c",
                      os.path.join(var, "etc", "nginx.conf"), "-p", var + "/")

    def accounts_make(self):
        self.stacks = []
        for number in (1, 2):
            stack = SiteStack({"IMGWARD_URL": f"https://127.0.0.1:{self.https(number)}",
                               "IMGWARD_RUN": os.path.join(self.machine(number), "run"), "IMGWARD_STORE": self.store,
                               "IMGWARD_CA": os.path.join(self.shared, "ca.pem"), "IMGWARD_LOG": self.log,
                               "IMGWARD_CONFIG": os.path.join(self.machine(number), "etc", "imgward.conf"),
                               "IMGWARD_CTL": os.path.join(BUILD, "imgwardctl")})
            stack.site = self
            self.stacks.append(stack)
        self.stack = self.stacks[0]
        self.stack.sql(invariants.WATCH_SQL)
        self.client = self.stack.account_new()
        until(lambda: self.client.list(limit=1).status == 200, "the site serves", 60)
        hook = self.client.post("/api/v2/orders/webhooks", {"url": self.receiver.url("/hook")})
        self.secret = hook.data["secret"]
        self.picture_set = PictureSet()
        self.picture_set.marked = rounds.Site.mark(self)

    def crashes(self):
        return rounds.Site.crashes(self)

    def reasons(self):
        """Returns for each pool and worker the reasons of its changes of database server, from its log."""
        found = []
        for name in ("api1", "api2", "worker1", "worker2"):
            with open(os.path.join(self.log, name + ".log"), encoding="utf-8", errors="replace") as file:
                found.append([reason for line in file if '"event":"database_changed"' in line
                              for reason in ("away", "back") if f'"reason":"{reason}"' in line])
        return found

    def changes(self, reason):
        """Returns the changes of database server that pools and workers logged with this reason."""
        return sum(one.count(reason) for one in self.reasons())

    def all_changed(self, reason):
        """True if the last change of each pool and worker has this reason."""
        return all(one[-1:] == [reason] for one in self.reasons())

    def close(self):
        self.receiver.close()
        self.remotes.close()
        for part in reversed(list(self.parts.values())):
            part.stop(15)
        self.database_stop()
        if not os.environ.get("IMGWARD_CLUSTER_KEEP"):
            shutil.rmtree(self.var, ignore_errors=True)


class ReplicaSite(Site):
    """A site with two plain servers: a primary and its asynchronous replica."""

    def database_start(self):
        self.sockets = []
        for number in (1, 2):
            folder = os.path.join(self.var, f"d{number}")
            os.mkdir(folder)
            self.sockets.append(os.path.join(folder, "sock"))
            path = os.path.join(folder, "my.cnf")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"[mariadbd]\nuser={getpass.getuser()}\ndatadir={folder}/data\nsocket={folder}/sock\n"
                           f"pid-file={folder}/pid\nport={self.base + number - 1}\nbind-address=127.0.0.1\n"
                           f"skip-name-resolve\nserver-id={number}\nlog-bin=log\nbinlog_format=ROW\n"
                           "innodb_log_file_size=16M\nmax_connections=300\n")
            run("mariadb-install-db", "--no-defaults", f"--user={getpass.getuser()}", f"--datadir={folder}/data",
                "--auth-root-authentication-method=normal", "--skip-test-db")
            self.part(f"database{number}", "mariadbd", f"--defaults-file={path}")
            until(lambda: self.node_sql(number, "SELECT 1"), "the server starts")
        self.node_sql(1, "CREATE USER replica@'127.0.0.1' IDENTIFIED BY 'r'; GRANT REPLICATION SLAVE ON *.* TO replica@'127.0.0.1'")
        self.node_sql(2, f"SET GLOBAL read_only = 1; CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {self.base}, "
                         "MASTER_USER = 'replica', MASTER_PASSWORD = 'r', MASTER_USE_GTID = slave_pos; START SLAVE")
        self.hosts = f"127.0.0.1:{self.base}, 127.0.0.1:{self.base + 1}"

    def database_stop(self):
        """Does nothing, because the servers are parts."""

    def promote(self):
        """Stops writes on the primary; the replica applies all changes and becomes the primary."""
        self.node_sql(1, "SET GLOBAL read_only = 1")
        position = self.node_sql(1, "SELECT @@gtid_binlog_pos").strip()
        assert self.node_sql(2, f"SELECT MASTER_GTID_WAIT('{position}', 60)").strip() == "0"
        self.node_sql(2, "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0")


def opened(kind):
    """For a fixture: yields a site, or skips if this machine lacks a program."""
    lack = missing()
    if lack:
        pytest.skip(lack)
    site = kind.__new__(kind)
    try:
        site.__init__()
        yield site
    finally:
        site.close()
