"""imgwardctl init prepares an empty database server up to an account; a second run changes nothing."""
import os
import re
import stat
import subprocess
import uuid

import pytest


ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SQL = os.path.join(ROOT, "sql")


def ctl(stack, config, command, *words, folder=None):
    path = os.environ["PATH"] if folder is None else f"{folder}:{os.environ['PATH']}"
    return subprocess.run([stack.environment["IMGWARD_CTL"], "--config", config, command, "--directory", SQL, *words],
                          capture_output=True, text=True, timeout=600, env={**os.environ, "PATH": path})


def init(stack, config, *words, folder=None):
    return ctl(stack, config, "init", *words, folder=folder)


def words(done):
    """Returns step and result of every line."""
    lines = [re.match(r"(.{14}) (there|made|TO DO) ", line) for line in done.stdout.splitlines()]
    return {line[1].strip(): line[2] for line in lines if line}


@pytest.fixture
def fresh(stack, tmp_path):
    """A configuration whose database, user, password and secrets do not exist yet."""
    if os.geteuid() != 0:
        pytest.skip("only root is the database's administrator by its socket")
    name = "init_" + uuid.uuid4().hex[:8]
    (tmp_path / "store").mkdir()
    config = tmp_path / "imgward.conf"
    config.write_text(f"""
[database]
socket = {stack.environment["IMGWARD_DB_SOCKET"]}
name = {name}
user = {name}
password_file = {tmp_path}/database.password
[redis]
socket = {stack.environment["IMGWARD_REDIS_SOCKET"]}
[store]
path = {tmp_path}/store
signing_keys_file = {tmp_path}/signing.keys
[image]
watermark_key_file = {tmp_path}/watermark.key
[webhooks]
secret_key_file = {tmp_path}/sealing.key
""")
    yield str(config), name
    stack.sql(f"DROP DATABASE IF EXISTS `{name}`; DROP USER IF EXISTS '{name}'@localhost")


def test_a_first_run_makes_everything_and_a_second_nothing(stack, fresh, tmp_path):
    config, name = fresh
    first = init(stack, config, "--account", "The first", "--plan", "pro")
    made = words(first)
    wanted = ("signing keys", "sealing key", "watermark key", "password", "database", "tables", "account")
    assert {step: made[step] for step in wanted} == dict.fromkeys(wanted, "made"), first.stdout + first.stderr
    assert made["redis"] == made["file store"] == "there"
    for secret in ("signing.keys", "sealing.key", "watermark.key", "database.password"):
        assert stat.S_IMODE(os.stat(tmp_path / secret).st_mode) & 0o027 == 0, secret
    assert re.search(r"iw_live_[0-9A-Za-z]{43}", first.stdout)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    second = init(stack, config)
    assert "made" not in words(second).values() and "iw_live_" not in second.stdout, second.stdout
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    assert stack.sql(f"SELECT COUNT(*) FROM {name}.accounts") == [["1"]]


def test_the_service_may_write_rows_and_not_change_tables(stack, fresh):
    config, name = fresh
    init(stack, config)
    grants = " ".join(row[0] for row in stack.sql(f"SHOW GRANTS FOR {name}@localhost"))
    assert "SELECT, INSERT, UPDATE, DELETE ON" in grants and "ALL PRIVILEGES" not in grants
    for right in ("DROP", "ALTER", "CREATE", "GRANT OPTION", "FILE", "SUPER"):
        assert right not in grants


def test_obstacles_are_reported_and_the_other_steps_run(stack, fresh, tmp_path):
    config, _ = fresh
    with open(config, encoding="utf-8") as file:
        text = file.read()
    with open(config, "w", encoding="utf-8") as file:
        file.write(text.replace(stack.environment["IMGWARD_DB_SOCKET"], "/nonexistent/mysql.sock"))
    done = init(stack, config)
    assert done.returncode == 1
    verdicts = words(done)
    assert verdicts["signing keys"] == "made" and verdicts["database"] == verdicts["account"] == "TO DO"
    assert "CREATE USER" in done.stdout and "THE-PASSWORD" in done.stdout
    assert (tmp_path / "database.password").read_text().strip() not in done.stdout


def test_each_program_gets_a_user_with_its_rights(stack, fresh, tmp_path):
    config, name = fresh
    users = {program: f"{name[-8:]}_{program}" for program in ("api", "console", "worker")}
    with open(config, "a", encoding="utf-8") as file:
        for program, user in users.items():
            file.write(f"[{program}]\ndatabase_user = {user}\ndatabase_password_file = {tmp_path}/{program}.password\n")
        file.write("[console]\nenabled = yes\n")
    try:
        first = init(stack, config, "--user", "First@Example.org")
        made = words(first)
        assert made["grants"] == made["user"] == made["tables"] == "made", first.stdout + first.stderr
        assert "first@example.org, owner of" in first.stdout
        for program, user in users.items():
            assert stat.S_IMODE(os.stat(tmp_path / f"{program}.password").st_mode) & 0o7 == 0
            grants = "\n".join(row[0] for row in stack.sql(f"SHOW GRANTS FOR '{user}'@localhost"))
            assert f"`{name}`.`orders`" in grants and "ON *.* TO" in grants and "ALL PRIVILEGES" not in grants
            assert (f"`{name}`.`recovery_codes`" in grants) == (program == "console")
        assert init(stack, config).stdout.endswith("nothing to do\n") or words(init(stack, config))["grants"] == "there"
        printed = subprocess.run([stack.environment["IMGWARD_CTL"], "--config", config, "grants"], capture_output=True, text=True,
                                 timeout=60, check=True).stdout
        assert "THE-PASSWORD" in printed and open(tmp_path / "api.password", encoding="ascii").read().strip() not in printed
    finally:
        for user in users.values():
            stack.sql(f"DROP USER IF EXISTS '{user}'@localhost")


class Host:
    """systemctl and nginx of an installed host, as far as imgwardctl uses them."""

    def __init__(self, folder, config):
        self.folder, self.config = folder, config
        self.states = dict.fromkeys(("imgward-api", "imgward-worker", "nginx"), ("active", "enabled"))
        self.states["imgward-console"] = ("inactive", "disabled")
        self.site = "upstream imgward_api {\nlocation ^~ /api/v2/ {\nserver_name shop.example;\n"
        folder.mkdir()

    def write(self):
        blocks = [f"ExecStart={{ argv[]=/usr/sbin/{name} -c {self.config} ; }}\nLoadState=loaded\nActiveState={self.states[name][0]}\n"
                  f"UnitFileState={self.states[name][1]}\n" for name in ("imgward-api", "imgward-worker", "imgward-console", "nginx")]
        self.program("systemctl", "cat <<'END'\n" + "\n".join(blocks) + "END\n")
        self.program("nginx", f"cat <<'END'\n{self.site}END\n" if "[emerg]" not in self.site else f"echo '{self.site}' >&2\nexit 1\n")

    def program(self, name, text):
        (self.folder / name).write_text("#!/bin/sh\n" + text)
        (self.folder / name).chmod(0o755)


@pytest.fixture
def host(stack, fresh, tmp_path):
    config, _ = fresh
    with open(config, "a", encoding="utf-8") as file:
        file.write("[api]\npublic_url = https://shop.example\n")
    init(stack, config)
    return Host(tmp_path / "bin", config)


def left(done):
    """Returns the lines after "left to do:"."""
    return [line.strip() for line in done.stdout.partition("left to do:\n")[2].splitlines()]


def remaining(stack, host, command="init"):
    host.write()
    return left(ctl(stack, host.config, command, folder=host.folder))


def test_init_and_doctor_end_with_what_is_left_to_do(stack, host):
    assert remaining(stack, host) == []
    assert "nothing is left to do" in init(stack, host.config, folder=host.folder).stdout
    host.states["imgward-worker"], host.states["imgward-api"] = ("inactive", "enabled"), ("active", "disabled")
    wanted = ["systemctl enable --now imgward-worker", "systemctl enable imgward-api: not started at boot"]
    assert remaining(stack, host) == remaining(stack, host, "doctor") == wanted


@pytest.mark.parametrize("site, wanted", [
    ("upstream imgward_api {\n", "ln -s ../sites-available/imgward /etc/nginx/sites-enabled/"),
    ("location ^~ /api/v2/ {\n", "conf.d/imgward.conf"),
    ("upstream imgward_api {\nlocation ^~ /api/v2/ {\n    server_name imgward.example;\n", "server_name"),
    ("upstream imgward_api {\nlocation ^~ /api/v2/ {\n    ssl_certificate /nowhere/a.pem;\n", "replace /nowhere/a.pem"),
    ('nginx: [emerg] 83#83: cannot load certificate "/etc/ssl/shop.example/fullchain.pem": BIO_new_file() failed',
     'nginx does not accept its configuration: cannot load certificate "/etc/ssl/shop.example/fullchain.pem"'),
])
def test_what_the_site_lacks_is_left_to_do(stack, host, site, wanted):
    host.site = site
    for command in ("init", "doctor"):
        lines = remaining(stack, host, command)
        assert len(lines) == 1 and wanted in lines[0], lines


def test_a_console_without_a_user_or_a_unit_is_left_to_do(stack, host):
    with open(host.config, "a", encoding="utf-8") as file:
        file.write("[console]\nenabled = yes\n")
    lines = ["imgwardctl init --user EMAIL creates the first user of the console", "systemctl enable --now imgward-console"]
    assert remaining(stack, host) == remaining(stack, host, "doctor") == lines
    assert left(init(stack, host.config, "--user", "first@example.org", folder=host.folder)) == lines[1:]


def test_the_configuration_of_a_private_stack_has_no_list(stack, host):
    host.config, other = "/etc/imgward/imgward.conf", host.config
    host.states["imgward-api"] = ("inactive", "disabled")
    host.write()
    assert left(init(stack, other, folder=host.folder)) == []
