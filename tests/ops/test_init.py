"""imgwardctl init: from an empty database server to an account; a second run changes nothing."""
import os
import re
import stat
import subprocess
import uuid

import pytest


ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SQL = os.path.join(ROOT, "sql")


def init(stack, config, *words):
    return subprocess.run([stack.environment["IMGWARD_CTL"], "--config", config, "init", "--directory", SQL, *words],
                          capture_output=True, text=True, timeout=600)


def words(done):
    """Step and result of every line."""
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
    stack.sql(f"DROP DATABASE IF EXISTS {name}; DROP USER IF EXISTS {name}@localhost")


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
            grants = "\n".join(row[0] for row in stack.sql(f"SHOW GRANTS FOR {user}@localhost"))
            assert f"`{name}`.`orders`" in grants and "ON *.* TO" in grants and "ALL PRIVILEGES" not in grants
            assert (f"`{name}`.`recovery_codes`" in grants) == (program == "console")
        assert init(stack, config).stdout.endswith("nothing to do\n") or words(init(stack, config))["grants"] == "there"
        printed = subprocess.run([stack.environment["IMGWARD_CTL"], "--config", config, "grants"], capture_output=True, text=True,
                                 timeout=60, check=True).stdout
        assert "THE-PASSWORD" in printed and open(tmp_path / "api.password", encoding="ascii").read().strip() not in printed
    finally:
        for user in users.values():
            stack.sql(f"DROP USER IF EXISTS {user}@localhost")
