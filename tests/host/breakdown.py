"""Breakages on a machine, and the longer checks of packaging/test-host."""
import json
import os
import re
import time

import pictures
import rounds
from marks import embedded, extract, results
from service import UNITS, Installed


def kill(plan, unit):
    """Kills a supervisor; systemd starts it again."""
    before = plan.main.main_pid(unit)
    plan.main.run("kill", "-9", before)
    plan.main.wait(lambda: plan.main.main_pid(unit) not in ("0", before) and plan.stack.units_are("active", unit), 60, f"{unit} to start again")


def images_kill(plan):
    """Kills every image process, twice."""
    for _ in range(2):
        plan.main.shell("pkill -9 -x imgward-image || true")
        time.sleep(2)
    plan.main.wait(lambda: plan.main.shell("pgrep -c -x imgward-image || true").strip() != "0", 60, "image processes")


def faults(plan):
    """Yields names and functions; each function runs under load."""
    acts = {f"kill -9 of {unit}": lambda unit=unit: kill(plan, unit) for unit in UNITS}
    acts["kill -9 of the image processes"] = lambda: images_kill(plan)
    for unit in ("mariadb", "redis-server", "nginx"):
        acts[f"systemctl restart {unit}"] = lambda unit=unit: plan.main.run("systemctl", "restart", unit)
    acts["systemctl reload of all three services"] = lambda: plan.main.run("systemctl", "reload", *UNITS)
    acts["systemctl restart of all three services"] = lambda: plan.main.run("systemctl", "restart", *UNITS)
    return acts


def dropin(plan, unit, text):
    folder = plan.main.path(f"/etc/systemd/system/{unit}.service.d")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "test.conf")
    if text is None:
        os.remove(path)
    else:
        with open(path, "w", encoding="ascii") as file:
            file.write("[Service]\n" + text)
    plan.main.run("systemctl", "daemon-reload")


def memory(plan):
    """Sets a small MemoryMax, without the limit of the image process that would refuse the picture before."""
    config = plan.main.read(plan.stack.config_path)
    dropin(plan, "imgward-worker", "MemoryMax=160M\n")
    plan.stack.set("image", memory_max_bytes="4294967296")
    plan.stack.set("worker", processes="1")
    try:
        plan.stack.restart("imgward-worker", "imgward-api")
        pid = plan.main.main_pid("imgward-worker")
        large = plan.site.client.order_whole([("large.jpg", pictures.jpeg(6000, 4000))], seconds=600)
        assert large["status"] == "failed" and large["files"][0]["error"], large
        small = plan.site.client.order_whole([("small.jpg", pictures.jpeg(300, 200))])
        assert small["status"] == "complete", small
        assert plan.main.main_pid("imgward-worker") == pid, "the worker itself was killed"
        plan.report.tell(str(large["files"][0]["error"]))
    finally:
        dropin(plan, "imgward-worker", None)
        with open(plan.main.path(plan.stack.config_path), "w", encoding="utf-8") as file:
            file.write(config)
        plan.stack.restart("imgward-worker", "imgward-api")


def disk(plan):
    """Fills a small file system as the store under load, then empties it."""
    main, store = plan.main, "/var/lib/imgward/store"
    config = main.read(plan.stack.config_path)
    main.run("systemctl", "stop", *UNITS)
    main.shell(f"mkdir /srv/aside && cp -a {store}/. /srv/aside/ && mount -t tmpfs -o size=200m,mode=0750,uid=$(id -u imgward),gid=$(id -g imgward) "
               f"test-host {store} && cp -a /srv/aside/. {store}/ && rm -rf /srv/aside")
    plan.stack.set("store", free_min_bytes="1048576")
    main.run("systemctl", "start", *UNITS)
    main.run("systemctl", "restart", "nginx")
    # The file system is visible through the machine's first process; this machine's own view shows the folder below it.
    plan.stack.store = f"/proc/{main.pid}/root{store}"

    def act():
        main.shell(f"dd if=/dev/zero of={store}/filler bs=1M 2>/dev/null || true; df {store} | tail -n 1")
        time.sleep(8)
        answer = plan.site.client.create(["a.jpg"])
        assert answer.status == 503, answer
        main.run("rm", f"{store}/filler")
    try:
        plan.faulted(act)
    finally:
        main.run("systemctl", "stop", *UNITS, "nginx")
        main.shell(f"rm -f {store}/filler; mkdir /srv/aside && cp -a {store}/. /srv/aside/ && umount {store} && rm -rf {store}/* && cp -a /srv/aside/. {store}/ && rm -rf /srv/aside")
        with open(main.path(plan.stack.config_path), "w", encoding="utf-8") as file:
            file.write(config)
        plan.stack.store = main.path(store)
        main.run("systemctl", "start", *UNITS, "nginx")


def clock(plan):
    """Moves the clock of MariaDB and of our programs by libfaketime, because the machine shares the clock of its host."""
    main = plan.main
    main.shell("apt-get install -q -y --no-install-recommends libfaketime >/dev/null")
    library = main.shell("dpkg -L libfaketime | grep '/libfaketime.so.1$'").strip()
    shift = main.path("/etc/test-host.shift")
    units = ("mariadb", *UNITS)

    def to(seconds):
        with open(shift + ".new", "w", encoding="ascii") as file:
            file.write(f"{seconds:+d}\n")
        os.replace(shift + ".new", shift)
    to(0)
    for unit in units:
        dropin(plan, unit, f"Environment=LD_PRELOAD={library} FAKETIME_TIMESTAMP_FILE=/etc/test-host.shift FAKETIME_NO_CACHE=1 "
               "FAKETIME_DONT_FAKE_MONOTONIC=1\n")
    try:
        plan.stack.restart(*units)
        rounds.calm(plan.site)

        def act():
            # The day must not change, because statistics of tomorrow are not shown today.
            shift_s = -3600 if time.gmtime().tm_hour == 23 else 3600
            to(shift_s)
            plan.main.wait(lambda: abs(float(plan.stack.sql("SELECT UNIX_TIMESTAMP(NOW(3))")[0][0]) - time.time() - shift_s) < 60, 20, "the jump")
            time.sleep(8)
            to(0)
            time.sleep(3)
        # An upload URL is valid for an hour.
        plan.faulted(act, allowed="URL_EXPIRED")
    finally:
        for unit in units:
            dropin(plan, unit, None)
        plan.stack.restart(*units)
        rounds.calm(plan.site)


def postfix(machine):
    """Debian's Postfix with a submission port: STARTTLS is required, and users sign in by Cyrus SASL's own table."""
    machine.shell(f"""
echo "postfix postfix/main_mailer_type select Internet Site" | debconf-set-selections
echo "postfix postfix/mailname string {machine.host_name}" | debconf-set-selections
apt-get install -q -y --no-install-recommends postfix libsasl2-modules sasl2-bin >/dev/null
id admin >/dev/null 2>&1 || useradd -m admin
install -m 0600 /srv/fullchain.pem /etc/postfix/tls.pem; install -m 0600 /srv/privkey.pem /etc/postfix/tls.key
postconf -e "smtpd_tls_cert_file=/etc/postfix/tls.pem" "smtpd_tls_key_file=/etc/postfix/tls.key" "mydestination=localhost, {machine.host_name}"
postconf -M 'submission/inet=submission inet n - n - - smtpd'
postconf -P 'submission/inet/syslog_name=postfix/submission' 'submission/inet/smtpd_tls_security_level=encrypt' \
    'submission/inet/smtpd_sasl_auth_enable=yes' 'submission/inet/smtpd_recipient_restrictions=permit_sasl_authenticated,reject' \
    'submission/inet/smtpd_sasl_path=smtpd'
printf 'pwcheck_method: auxprop\\nauxprop_plugin: sasldb\\nmech_list: PLAIN LOGIN\\n' >/etc/postfix/sasl/smtpd.conf
printf geheim | saslpasswd2 -p -c -u {machine.host_name} imgward
chown root:postfix /etc/sasldb2; chmod 640 /etc/sasldb2
postconf -e "smtpd_sasl_local_domain={machine.host_name}"
systemctl restart postfix
""")


def certbot(plan):
    """Gets a certificate as the page describes, with Debian's ACME server instead of Let's Encrypt; then renews it."""
    main = plan.main
    with open(main.path("/etc/test-host.pebble"), "w", encoding="ascii") as file:
        json.dump({"pebble": {"listenAddress": "127.0.0.1:14000", "managementListenAddress": "127.0.0.1:15000", "httpPort": 80, "tlsPort": 443,
                              "certificate": "/srv/fullchain.pem", "privateKey": "/srv/privkey.pem"}}, file)
    main.shell(f"apt-get install -q -y --no-install-recommends certbot pebble >/dev/null; echo 'server = https://{main.host_name}:14000/dir' >>/etc/letsencrypt/cli.ini; "
               "systemctl reset-failed test-pebble 2>/dev/null || true; "
               f"sed -i 's/^127.0.1.1/127.0.0.1/' /etc/hosts; systemd-run -q -u test-pebble -E PEBBLE_VA_NOSLEEP=1 -E PEBBLE_WFE_NONCEREJECT=0 pebble -config /etc/test-host.pebble")
    main.run("rm", "-rf", f"/etc/ssl/{main.host_name}")
    try:
        plan.block(main, "certificate-certbot")
        main.run("systemctl", "reload", "nginx")
        first = main.wait(lambda: served(main), 20, "a certificate of the ACME server")
        main.run("certbot", "renew", "--force-renewal", "--no-random-sleep-on-renew")
        main.wait(lambda: served(main) not in (None, first), 20, "the renewed certificate")
    finally:
        main.run("rm", "-f", f"/etc/ssl/{main.host_name}")
        plan.block(main, "certificate-own")
        main.run("systemctl", "reload", "nginx")
        main.run("systemctl", "stop", "test-pebble", check=False)


def served(machine):
    """Returns the serial number of the site's certificate when the ACME server has issued it."""
    text = machine.shell(f"openssl s_client -connect 127.0.0.1:443 -servername {machine.host_name} </dev/null 2>/dev/null | openssl x509 -noout -issuer -serial")
    return text.partition("serial=")[2].strip() if "Pebble" in text else None


def prefix(plan):
    """Installs the release tarball below /usr/local, without the package."""
    check, must = plan.report.check, plan.report.must
    machine = must("an empty machine for the tarball", plan.machine_new, "tarball")
    plan.tree_put(machine)
    for name in ("tarball-build", "tarball-setup", "certificate-own", "name", "start", "first-order", "console"):
        output = must(f"doc/install.md, without the package: {name}", plan.block, machine, name, SHARE="/usr/local/share")
        if name in ("start", "first-order"):
            plan.report.tell("\n".join(re.sub(r"iw_live_\w+", "iw_live_...", line) for line in output.splitlines()[-4:]))
    check("its units: systemd-analyze verify says nothing", verify_all, machine)
    check("its orders of all three types", prefix_orders, machine)
    check("doc/install.md, without the package: tarball-uninstall", plan.block, machine, "tarball-uninstall")
    check("make uninstall leaves nothing", uninstalled, machine)
    plan.retire(machine)


def prefix_orders(machine):
    client = Installed(machine).account_new()
    done = client.order_whole([("a.png", pictures.png(300, 200))])
    assert done["status"] == "complete", done
    order = embedded(client, [("b.jpg", pictures.jpeg(400, 300), ["below another prefix"])])
    read = extract(client, results(client, order["orderId"])[0][1])
    assert read["watermarkText"] == "below another prefix", read


def verify_all(machine):
    output = machine.run("systemd-analyze", "verify", *(unit + ".service" for unit in UNITS))
    assert not output.strip(), output


def uninstalled(machine):
    output = machine.shell("find /usr/local /etc/nginx -name '*imgward*' | sed -n 1,10p; systemctl list-unit-files --no-legend 'imgward*' || true")
    assert not output.strip(), output


def small(plan):
    """Runs everything on one core and 1 GiB: MariaDB, Redis, nginx, the console and an order of 24 megapixels."""
    check = plan.report.check
    machine = plan.report.must("a machine of one core and 1 GiB", plan.machine_new, "small", memory_bytes=1 << 30, cpus="0")
    check("installation on it", plan.install_quick, machine)
    plan.report.tell("\n".join(line for line in machine.run("imgwardctl", "doctor", check=False).splitlines() if re.search("fits|memory", line)))
    check("an order of 24 megapixels ends well beside the console", small_order, plan, machine)
    check("nothing was killed for memory", small_kills, machine)
    plan.retire(machine)


def small_order(plan, machine):
    stack = Installed(machine)
    client = stack.account_new()
    begun = time.monotonic()
    done = client.order_whole([("a.jpg", pictures.jpeg(6000, 4000))], seconds=600)
    assert done["status"] == "complete", done
    assert stack.units_are("active", *UNITS)
    group = f"/sys/fs/cgroup/memory/imgward-{machine.name}/memory.max_usage_in_bytes"
    if os.path.exists(group):
        with open(group, encoding="ascii") as file:
            plan.report.tell(f"24 MP in {time.monotonic() - begun:.1f} s; the machine's peak with its cache: {int(file.read()) >> 20} MiB")


def small_kills(machine):
    group = f"/sys/fs/cgroup/memory/imgward-{machine.name}"
    for folder, _, names in os.walk(group):
        if "memory.oom_control" in names:
            with open(os.path.join(folder, "memory.oom_control"), encoding="ascii") as file:
                assert "oom_kill 0" in file.read(), folder


def demo(plan):
    """Runs the first command of README.md on an empty machine, from the tarball."""
    check = plan.report.check
    machine = plan.report.must("an empty machine for the demo", plan.machine_new, "demo")
    folder = plan.tree_put(machine)
    output = check("./dev demo", machine.shell, f"cd {folder} && ./dev demo", seconds=1800)
    plan.report.tell("\n".join((output or "").splitlines()[-8:]))
    plan.retire(machine)
