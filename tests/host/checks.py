"""The parts of packaging/test-host on each suite, in order. A part is a method of Plan; a check is one line of the report."""
import email
import email.policy
import glob
import os
import re
import shutil
import subprocess
import time

import breakdown
import invariants
import machine as machine_module
import pictures
import rounds
from browser import PASSWORD, Browser, totp
from machine import Machine, host
from marks import results
from report import Stop
from service import UNITS, Installed, Load, Site, loaded

PARTS = ("install", "use", "units", "watch", "mail", "faults", "clock", "reboot", "logs", "restore", "upgrade", "remove", "prefix",
         "small", "demo")
# Blocks of doc/install.md that the part "install" runs; other parts run the other blocks.
INSTALL = ("build", "install", "certificate-own", "name", "start", "first-order", "console")


def dist(tree, folder):
    """Returns the unpacked release tarball."""
    build = os.environ.get("IMGWARD_BUILD") or os.path.join(tree, "build")
    host(os.path.join(tree, "dev"), "build")
    host("make", "-s", "-C", build, "dist")
    [archive] = glob.glob(os.path.join(build, "imgward-*.tar.xz"))
    os.makedirs(folder)
    host("tar", "-xJf", archive, "-C", folder, "--strip-components=1")
    os.remove(archive)
    return folder


def blocks(page):
    """Returns the shell blocks of a page by the name in the first line, in order."""
    with open(page, encoding="utf-8") as file:
        return dict(re.findall(r"```sh\n# ([a-z-]+)\n(.*?)```", file.read(), re.S))


class Plan:
    def __init__(self, suite, base, work, trees, report, keep):
        self.suite, self.base, self.work, self.trees, self.report, self.keep = suite, base, work, trees, report, keep
        self.machines, self.site, self.wanted = [], None, []
        self.blocks = blocks(os.path.join(trees["now"], "doc", "install.md"))
        self.steps = blocks(os.path.join(trees["now"], "doc", "operating.md"))
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        self.authority()

    # ---- setting

    def authority(self):
        """Makes a certificate authority for the machines' names; the machines and the clients trust it."""
        os.makedirs(os.path.join(self.work, "tls"))
        place = os.path.join(self.work, "tls")
        host("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
             "-subj", "/CN=test-host authority", "-keyout", place + "/ca.key", "-out", place + "/ca.crt")

    def certificate(self, machine):
        """Writes a certificate for the machine's name to /srv, where doc/install.md expects it."""
        place = os.path.join(self.work, "tls")
        host("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=" + machine.host_name,
             "-keyout", machine.path("/srv/privkey.pem"), "-out", place + "/site.csr")
        with open(place + "/names", "w", encoding="ascii") as file:
            file.write(f"subjectAltName=DNS:{machine.host_name}\n")
        host("openssl", "x509", "-req", "-in", place + "/site.csr", "-CA", place + "/ca.crt", "-CAkey", place + "/ca.key",
             "-CAcreateserial", "-days", "30", "-extfile", place + "/names", "-out", machine.path("/srv/fullchain.pem"))
        os.makedirs(machine.path("/usr/local/share/ca-certificates"), exist_ok=True)
        shutil.copy(place + "/ca.crt", machine.path("/usr/local/share/ca-certificates/test-host.crt"))
        machine.run("update-ca-certificates")

    def machine_new(self, name, host_name=None, **limits):
        """Boots an empty machine with a certificate."""
        machine = Machine(self.base, os.path.join(self.work, name), f"iw{os.getpid() % 10000}{name[:4]}", host_name or f"{name}.imgward.test")
        for key, value in limits.items():
            setattr(machine, key, value)
        self.machines.append(machine)
        machine.up()
        self.certificate(machine)
        return machine

    def tree_put(self, machine, which="now"):
        folder = f"/srv/{which}/imgward"
        host("mkdir", "-p", machine.path(f"/srv/{which}"))
        host("cp", "-a", "--no-preserve=ownership", self.trees[which], machine.path(folder))
        return folder

    def block(self, machine, name, folder="/srv/now/imgward", **variables):
        """Runs a block of doc/install.md in the unpacked source, in a shell with the variables of its first block."""
        names = {"HOST": machine.host_name, "MAIL": f"admin@{machine.host_name}", "CERTIFICATE": "/srv/fullchain.pem",
                 "PRIVATE_KEY": "/srv/privkey.pem", **variables}
        words = "".join(f"export {key}='{value}'\n" for key, value in names.items())
        return machine.shell(words + self.blocks["names"] + f"cd {folder}\n" + self.blocks[name], seconds=2400)

    def run(self, wanted):
        for name in PARTS:
            if not wanted or name == "install" or any(word in name for word in wanted):
                print(f"== {self.suite}: {name}", flush=True)
                try:
                    getattr(self, "part_" + name)()
                except Stop:
                    if name == "install":
                        return
                except Exception as error:
                    # An error between the checks of a part.
                    self.report.check(f"the part {name}", self.fail, error)

    def fail(self, error):
        raise error

    def close(self):
        if self.site:
            self.site.close()
        for machine in self.machines:
            if self.keep:
                machine.down()
            else:
                machine.delete()

    def retire(self, machine):
        """Stops a machine that no later part uses."""
        self.machines.remove(machine)
        machine.down() if self.keep else machine.delete()

    # ---- parts

    def part_install(self):
        check = self.report.check
        self.report.must("an empty machine boots", self.main.run, "systemctl", "is-system-running")
        self.tree_put(self.main)
        for name in INSTALL:
            output = self.report.must(f"doc/install.md: {name}", self.block, self.main, name)
            if name in ("start", "first-order", "console") and output:
                self.report.tell("\n".join(re.sub(r"iw_live_\w+", "iw_live_...", line) for line in output.splitlines()[-24:]))
                found = re.search(r"password, shown only once: (\S+)", output)
                self.password = found[1] if found else getattr(self, "password", None)
        self.deb = self.main.shell("ls /srv/now/imgward_*.deb").strip()
        self.site = Site(self.main)
        self.stack = self.site.stack
        self.main.shell("apt-get install -q -y --no-install-recommends jq >/dev/null")
        self.site.since = self.main.run("date", "+%F %T").strip()
        check("the test's receivers are allowed", self.site.open_network)
        check("an account with a webhook and a marked picture", self.site.account_use)
        self.stack.sql(invariants.WATCH_SQL)

    def part_use(self):
        check = self.report.check
        check("orders of all three types, by upload and by URL", self.orders_mixed)
        check("a webhook is delivered and signed", self.webhook)
        check("the console: sign-in, second factor, sign-in with a code", self.second_factor)
        check("doctor reports no fault", self.main.run, "imgwardctl", "doctor")
        self.report.tell(self.main.run("imgwardctl", "doctor", check=False))
        check("init and doctor say that nothing is left", self.todo_is_said)
        check("doc/install.md: certificate-certbot, and a renewal", breakdown.certbot, self)

    def todo_is_said(self):
        output = self.main.run("imgwardctl", "init")
        assert "nothing is left to do" in output, output
        self.main.run("systemctl", "stop", "imgward-worker")
        try:
            output = self.main.run("imgwardctl", "init") + self.main.run("imgwardctl", "doctor", check=False)
            assert output.count("left to do:\n  systemctl enable --now imgward-worker\n") == 2, output
        finally:
            self.main.run("systemctl", "start", "imgward-worker")

    def orders_mixed(self):
        load = Load(self.site)
        time.sleep(1)
        self.settled(load.close())

    def settled(self, workload, since=0):
        """Checks that every order ended as it should, and that nothing was lost or done twice."""
        output = workload.violations + rounds.verify(self.site, workload, since)
        assert not output, "\n".join(output[:20])
        assert workload.orders

    def webhook(self):
        order = self.site.client.order_whole([("a.jpg", pictures.jpeg(200, 150))])
        delivery = next(one for one in self.site.receiver.wait("/hook", 1) if True)
        self.main.wait(lambda: any(one.json["data"]["orderId"] == order["orderId"] for one in self.site.receiver.at("/hook")), 30, "the delivery")
        assert delivery.is_signed_with(self.site.secret)

    def second_factor(self):
        browser = Browser(self.stack)
        answer = browser.sign_in(f"admin@{self.main.host_name}", self.password)
        assert answer.status == 200 and answer.data["state"] == "signedIn", answer
        made = browser.post("/user/totp", {"password": self.password})
        assert made.status in (200, 201), made
        secret = made.data["secret"]
        enabled = browser.post("/user/totp/enable", {"code": totp(secret)})
        assert enabled.status == 200, enabled
        other = Browser(self.stack)
        answer = other.sign_in(f"admin@{self.main.host_name}", self.password)
        assert answer.data["state"] == "secondFactor", answer
        # A code is accepted only once.
        answer = other.took(other.post("/session/second-factor", {"challenge": answer.data["challenge"], "code": totp(secret, time.time() + 30)}))
        assert answer.status == 200 and answer.data["state"] == "signedIn", answer
        answer = other.get("/v2/orders")
        assert answer.status == 200, answer

    def part_units(self):
        for unit in UNITS:
            self.report.check(f"{unit}: systemd-analyze verify says nothing", self.unit_verify, unit)
            self.report.tell(self.main.run("systemd-analyze", "security", "--no-pager", unit, check=False).splitlines()[-1])
        self.report.check("systemd finds nothing to complain of in the journal", self.unit_journal)
        self.report.check("a worker without its weights does not start, and says why", self.unit_reason)

    def unit_verify(self, unit):
        output = self.main.run("systemd-analyze", "verify", f"{unit}.service")
        assert not output.strip(), output

    def unit_journal(self):
        text = self.main.run("journalctl", "-o", "cat", "_PID=1", "-b", check=False)
        output = [line for line in text.splitlines() if "imgward" in line and re.search("Unknown|ignoring|deprecated|[Ff]ailed to", line)]
        assert not output, "\n".join(output[:10])

    def unit_reason(self):
        weights = self.main.shell("ls /usr/share/imgward/*.weights /usr/local/share/imgward/*.weights 2>/dev/null || true").split()[0]
        self.main.run("mv", weights, weights + ".away")
        try:
            begun = time.monotonic()
            output = self.main.run("systemctl", "restart", "imgward-worker", check=False)
            state = self.main.run("systemctl", "status", "--no-pager", "-n", "5", "imgward-worker", check=False)
            self.report.tell(f"{output.strip()} ({time.monotonic() - begun:.0f} s)\n{state}")
            assert "failed" in output.lower(), output
            assert re.search(r"Status: .*weights", state), state
        finally:
            self.main.run("mv", weights + ".away", weights)
            self.stack.restart("imgward-worker")

    def part_watch(self):
        check = self.report.check
        check("doc/install.md: prometheus", self.block, self.main, "prometheus")
        check("promtool check metrics is clean", self.metrics_clean)
        check("promtool check rules is clean", self.main.shell, "promtool check rules /etc/prometheus/imgward*.yml")
        check("Debian's Prometheus scrapes the service", self.scraped)

    def metrics_clean(self):
        output = self.main.shell(f"curl -sS --fail https://{self.main.host_name}/metrics --resolve {self.main.host_name}:443:127.0.0.1 | promtool check metrics")
        assert not output.strip(), output

    def scraped(self):
        ask = "curl -sS --get localhost:9090/api/v1/query --data-urlencode 'query=up{job=\"imgward\"}'"
        self.main.wait(lambda: '"1"]' in self.main.shell(ask, check=False), 90, "a scrape")

    def part_mail(self):
        check = self.report.check
        check("Debian's Postfix with STARTTLS and sign-in", breakdown.postfix, self.main)
        check("doc/install.md: mail", self.block, self.main, "mail", MAIL_URL=f"smtp://{self.main.host_name}:587")
        check("Postfix takes a mail of the service", self.mail_arrives)

    def mail_arrives(self):
        self.stack.set("mail", user="imgward", password_file="/etc/imgward/mail.password")
        self.main.shell("printf geheim >/etc/imgward/mail.password; chown root:imgward /etc/imgward/mail.password; chmod 640 /etc/imgward/mail.password")
        self.stack.restart("imgward-worker", "imgward-console")
        answer = Browser(self.stack).post("/password/forgot", {"email": f"admin@{self.main.host_name}"})
        assert answer.status in (200, 202, 204), answer
        text = self.main.wait(lambda: self.main.shell("cat /var/mail/admin 2>/dev/null || true"), 60, "the mail")
        mail = email.message_from_string(text, policy=email.policy.default)
        assert f"https://{self.main.host_name}/console/#/reset?token=" in mail.get_content(), text[-1500:]
        log = self.main.run("journalctl", "-o", "cat", "-t", "postfix/submission/smtpd", check=False)
        assert "sasl_username=imgward" in log, log[-1500:]

    def part_faults(self):
        for name, act in breakdown.faults(self).items():
            self.report.check(f"{name}, under load", self.faulted, act)
        self.report.check("an image process beyond MemoryMax is killed, the worker and other orders go on", breakdown.memory, self)
        self.report.check("the store's disk is full, then has room again", breakdown.disk, self)

    def faulted(self, act, allowed=None):
        """Acts under load. allowed is an error code that clients may get."""
        since = self.stack.sql("SELECT COALESCE(MAX(id), 0) FROM watch.changes")[0][0]
        with loaded(self.site) as found:
            act()
        output = rounds.calm(self.site)
        assert not output, output
        found[0].violations = [line for line in found[0].violations if not allowed or allowed not in line]
        self.settled(found[0], since)

    def part_clock(self):
        self.report.check("the clock jumps by an hour, forwards and back, under load", breakdown.clock, self)

    def part_reboot(self):
        self.report.check("a reboot in the middle of orders", self.faulted, self.main.reboot)
        self.report.check("a loss of power in the middle of orders", self.faulted, lambda: self.main.reboot(is_hard=True))
        self.report.check("all units run after it", lambda: self.main.wait(lambda: self.stack.units_are("active", *UNITS), 60, "the units"))

    def part_logs(self):
        self.report.check("logrotate: nginx goes on in a new file", self.rotated)

    def rotated(self):
        assert self.site.client.list(limit=1).status == 200
        log = self.main.path("/var/log/nginx/imgward.log")
        before = os.stat(log).st_ino
        output = self.main.run("logrotate", "-f", "/etc/logrotate.d/imgward")
        assert not output.strip(), output
        assert os.stat(log).st_ino != before, "logrotate made no new file"

        # Each process of nginx reopens the file when it reads the signal, and nginx writes the line after the end of the response.
        def is_written():
            assert self.site.client.list(limit=1).status == 200
            return os.stat(log).st_size > 0
        self.main.wait(is_written, 10, "a line in nginx's new log")

    def install_quick(self, machine, deb=None):
        """Installs as the part "install" does, but with a package that is already built."""
        self.tree_put(machine)
        host("cp", self.main.path(deb or self.deb), machine.path("/srv/now/"))
        for name in INSTALL[1:]:
            if name != "first-order":
                self.block(machine, name)

    def part_restore(self):
        check = self.report.check
        order = self.site.client.order_whole([("a.jpg", pictures.jpeg(300, 200))])
        wanted = results(self.site.client, order["orderId"])
        check("doc/operating.md: backup", self.main.shell, self.steps["names"] + self.steps["backup"])
        second = self.report.must("a second, empty machine, which takes the name over", self.machine_new, "second", self.main.host_name)
        check("the package on it", self.package_only, second)
        host("cp", "-a", self.main.path("/var/backups/imgward"), second.path("/var/backups/"))
        output = check("doc/operating.md: restore", second.shell, self.steps["names"] + self.steps["restore"])
        # The dump has the test's triggers, which write to a separate database.
        Installed(second).sql(invariants.WATCH_SQL)
        self.report.tell("\n".join((output or "").splitlines()[-6:]))
        check("the restored service answers with the old results", self.restored, second, order["orderId"], wanted)
        self.retire(second)
        Installed(self.main)

    def package_only(self, machine):
        self.tree_put(machine)
        host("cp", self.main.path(self.deb), machine.path("/srv/now/"))
        self.block(machine, "install")

    def restored(self, second, order, wanted):
        for name in ("certificate-own", "name"):
            self.block(second, name)
        second.shell("systemctl restart nginx && systemctl enable --now imgward-api imgward-worker imgward-console")
        stack = Installed(second)
        from client import Client
        client = Client(stack, self.site.client.key)
        assert results(client, order) == wanted
        done = client.order_whole([("b.png", pictures.png(120, 90))])
        assert done["status"] == "complete", done
        second.run("imgwardctl", "secret", "check")

    def part_upgrade(self):
        check = self.report.check
        if "before" not in self.trees:
            print("skipped: upgrade, for git knows no commit before with these migrations")
            return
        deb = check("the package of the commit before is built", self.package_before)
        if deb is None:
            return
        old = check("a machine with it", self.upgrade_machine, deb)
        if old is None:
            return
        site = Site(old)
        try:
            site.since = old.run("date", "+%F %T").strip()
            site.open_network()
            site.account_use()
            site.stack.sql(invariants.WATCH_SQL)
            mine, self.site, self.stack = (self.site, self.stack), site, site.stack
            host("cp", self.main.path(self.deb), old.path("/srv/now/"))
            # dpkg keeps the changed file; doc/operating.md describes the change for a second pool.
            old.shell("sed -i 's|^    server unix:.*/api.sock .*|    server unix:/run/imgward/api.sock max_fails=1 fail_timeout=2s;|' "
                      f"/etc/nginx/imgward/http.conf && systemctl restart nginx && curl -s -o /dev/null https://{old.host_name}/")
            since = self.nginx_pids(old)
            try:
                check("doc/install.md: upgrade, with orders in progress", self.faulted, lambda: self.block(old, "upgrade"))
                check("the units run the new programs", self.upgraded, old)
                check("nginx reads the new files, with the http.conf that was changed", self.nginx_upgraded, old, since)
            finally:
                self.site, self.stack = mine
        finally:
            site.close()
            self.retire(old)

    def package_before(self):
        folder = self.tree_put(self.main, "before")
        self.main.shell(f"cd {folder} && sed -i '1s/(\\([^)]*\\))/(\\1~before)/' debian/changelog && apt-get build-dep -q -y ./ >/dev/null && "
                        "DEB_BUILD_OPTIONS='nocheck parallel=2' dpkg-buildpackage -us -uc -b", seconds=1800)
        return self.main.shell("ls /srv/before/imgward_*~before*.deb").strip()

    def upgrade_machine(self, deb):
        """Installs the earlier package by the current page; the package may lack features of the page."""
        old = self.machine_new("old")
        self.install_quick(old, deb)
        old.shell("rm /srv/now/*.deb")
        return old

    def upgraded(self, old):
        version = old.run("dpkg-query", "-W", "-f", "${Version}", "imgward")
        assert "before" not in version, version
        for unit in UNITS:
            pid = old.main_pid(unit)
            assert "(deleted)" not in old.run("readlink", f"/proc/{pid}/exe"), unit
        old.run("imgwardctl", "doctor")

    def nginx_pids(self, machine):
        """Returns the ids of the nginx workers. A reload replaces them; a restart also replaces the parent."""
        return set(machine.shell("pgrep -P $(cat /run/nginx.pid)").split())

    def nginx_upgraded(self, old, since):
        old.shell("nginx -t && grep -q fail_timeout=2s /etc/nginx/imgward/http.conf")
        assert self.nginx_pids(old) - since, "the upgrade did not reload nginx"
        for path in ("/", "/docs/"):
            found = old.shell(f"curl -s -o /dev/null -w '%{{http_code}}' -H 'Accept: text/html' https://{old.host_name}{path}")
            assert found.strip() == "200", f"{path}: {found}"

    def part_remove(self):
        check, main = self.report.check, self.main
        keys = main.shell("cd /etc/imgward && sha256sum *.key*")
        check("remove", main.run, "apt-get", "-q", "remove", "-y", "imgward")
        check("no process and no running unit is left", self.nothing_runs)
        check("nginx starts without it", main.shell, "nginx -t && systemctl restart nginx")
        check("installed again: init has only to start it", self.installed_again)
        main.shell("echo imgward imgward/delete_pictures boolean false | debconf-set-selections")
        check("doc/install.md: purge, pictures kept", self.block, main, "purge")
        check("no process, unit, link or program is left", self.nothing_left)
        check("nginx restarts", main.shell, "nginx -t && systemctl restart nginx")
        check("keys, database and pictures are kept", self.kept, keys)
        main.shell("echo imgward imgward/delete_pictures boolean true | debconf-set-selections")
        check("installed and purged, pictures deleted", self.purged_all)
        check("nothing of it is left again", self.nothing_left)

    def nothing_runs(self):
        output = self.main.shell("pgrep -a imgward || true; systemctl list-units --no-legend --plain 'imgward*' || true")
        assert not output.strip(), output

    def installed_again(self):
        self.main.shell(f"apt-get install -q -y {self.deb}")
        output = self.main.run("imgwardctl", "init", check=False)
        self.report.tell("\n".join(output.splitlines()[-6:]))
        self.main.shell("systemctl start imgward-api imgward-worker imgward-console && systemctl restart nginx")
        done = self.site.client.order_whole([("b.png", pictures.png(120, 90))])
        assert done["status"] == "complete", done

    def nothing_left(self):
        self.nothing_runs()
        output = self.main.shell("ls /usr/bin/imgward* /usr/sbin/imgward* /usr/lib/systemd/system/imgward* /lib/systemd/system/imgward* "
                               "/etc/systemd/system/*/imgward* /etc/nginx/sites-*/imgward /etc/logrotate.d/imgward /etc/cron*/imgward* /run/imgward* 2>/dev/null || true")
        assert not output.strip(), output
        failed = self.main.run("systemctl", "list-units", "--all", "--no-legend", "--plain", "imgward*", check=False)
        assert not failed.strip(), failed

    def kept(self, keys):
        assert self.main.shell("cd /etc/imgward && sha256sum *.key*") == keys
        assert self.main.shell("find /var/lib/imgward/store -type f -print -quit").strip()
        assert int(self.stack.sql("SELECT COUNT(*) FROM orders")[0][0]) > 0

    def purged_all(self):
        self.main.shell(f"apt-get install -q -y {self.deb} && apt-get purge -q -y imgward")
        assert not os.path.exists(self.main.path("/var/lib/imgward/store"))

    def part_prefix(self):
        breakdown.prefix(self)

    def part_small(self):
        breakdown.small(self)

    def part_demo(self):
        breakdown.demo(self)
