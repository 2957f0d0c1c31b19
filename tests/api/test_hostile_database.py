"""On a MariaDB server with the global settings of a shared host, the session sets all values on which the service relies."""
import getpass
import os
import re
import subprocess
import time

import pytest

from client import ORDERS

SQL = os.path.join(os.path.dirname(__file__), "..", "..", "sql")
HOSTILE = {
    "sql_safe_updates": "1", "max_join_size": "100", "sql_select_limit": "1", "sql_mode": "'ORACLE,PAD_CHAR_TO_FULL_LENGTH'",
    "autocommit": "0", "completion_type": "2", "tx_read_only": "1", "tx_isolation": "'SERIALIZABLE'", "sql_auto_is_null": "1",
    "max_sort_length": "8", "group_concat_max_len": "4", "foreign_key_checks": "0", "check_constraint_checks": "0",
    "wait_timeout": "1", "net_write_timeout": "1", "max_statement_time": "0.2", "time_zone": "'+09:00'",
    "character_set_server": "latin1", "collation_connection": "latin1_german2_ci", "innodb_lock_wait_timeout": "1",
}


def set_all(stack, values):
    for name, value in values.items():
        # Without a time limit, because new sessions have max_statement_time of the values.
        stack.sql(f"SET SESSION max_statement_time = 0; SET GLOBAL {name} = {value}")
    stack.connections_kill()


@pytest.fixture(scope="module")
def hostile(stack):
    """The stack with such a server. The administrator must not be read-only, because it restores the values."""
    [before] = stack.sql("SELECT " + ", ".join(f"QUOTE(@@GLOBAL.{name})" for name in HOSTILE))
    numbers = {name for name, value in HOSTILE.items() if not value.startswith("'")}
    before = {name: value.strip("'") if name in numbers else value for name, value in zip(HOSTILE, before)}
    try:
        set_all(stack, HOSTILE)
        yield stack
    finally:
        set_all(stack, before)


def doctor(environment, config):
    done = subprocess.run([environment["IMGWARD_CTL"], "--config", config, "doctor", "--directory", SQL],
                          capture_output=True, text=True, timeout=120)
    return {line.split()[0]: line for line in done.stdout.splitlines()}


def test_the_whole_way_of_an_order_works(hostile, jpeg):
    client = hostile.account_new()
    order = client.order_whole([("Größe one.jpg", jpeg), ("two.jpg", jpeg)])
    assert order["status"] == "complete", order
    assert client.download(order["orderId"]).body.startswith(b"PK")


def test_lists_and_searches_work_with_more_rows_than_max_join_size(hostile):
    client = hostile.account_new()
    for number in range(60):
        assert client.create([f"größe {number}-{letter}.jpg" for letter in "ab"]).status == 201
    time.sleep(1.5)  # longer than wait_timeout
    for query, count in (({"keyword": "größe"}, 60), ({"keyword": "b größe 7"}, 1), ({}, 60)):
        for limit in ("100", "-1"):
            answer = client.list(limit=limit, **query)
            assert answer.status == 200 and len(answer.items) == count, (query, answer)


def test_webhooks_statistics_and_commands_work(hostile):
    client = hostile.account_new()
    made = [client.post(f"{ORDERS}/webhooks", {"url": f"https://hook{number}.example/x", "events": ["order.completed"]})
            for number in range(3)]
    assert [answer.status for answer in made] == [201] * 3, made
    assert len(client.get(f"{ORDERS}/webhooks").items) == 3
    for path in ("stats/usage", "stats/recent"):
        assert client.get(f"{ORDERS}/{path}").status == 200
    assert client.account in hostile.ctl("account", "list")
    lines = doctor(hostile.environment, hostile.environment["IMGWARD_CONFIG"])
    assert " WRONG " not in lines["database"] + lines["modes"] + lines["connections"], lines


# ---- a separate server, with settings that can only be made at the start ----

@pytest.fixture
def server(stack, tmp_path):
    """A new server, and the configuration of an imgwardctl for it. The function runs a statement as the administrator."""
    me, socket = getpass.getuser(), tmp_path / "sock"
    (tmp_path / "my.cnf").write_text(
        f"[mariadbd]\nuser={me}\ndatadir={tmp_path}/data\nsocket={socket}\npid-file={tmp_path}/pid\nskip-networking\n"
        "log-bin\nbinlog-format=STATEMENT\nmax-user-connections=25\ncharacter-set-server=latin1\n"
        "skip-character-set-client-handshake\nsql-safe-updates=1\nmax-join-size=100\ninnodb-log-file-size=4M\n")
    subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={tmp_path}/data", f"--user={me}", "--skip-test-db",
                    "--auth-root-authentication-method=socket", f"--auth-root-socket-user={me}", "--innodb-log-file-size=4M",
                    "--skip-name-resolve", "--force"], check=True, capture_output=True, timeout=600)
    process = subprocess.Popen(["mariadbd", f"--defaults-file={tmp_path}/my.cnf"], stderr=subprocess.DEVNULL)

    def run(statement):
        return subprocess.run(["mariadb", "--no-defaults", "-S", socket, "-e", statement], capture_output=True, text=True,
                              timeout=240)
    try:
        end = time.monotonic() + 240
        while run("SELECT 1").returncode != 0:
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.1)
        with open(stack.environment["IMGWARD_CONFIG"], encoding="utf-8") as file:
            text = file.read()
        (tmp_path / "imgward.conf").write_text(re.sub(r"(?m)^socket = .*mariadb\.sock$", f"socket = {socket}", text))
        with open(os.path.join(os.path.dirname(stack.environment["IMGWARD_CONFIG"]), "database.password"), encoding="utf-8") as file:
            password = file.read().strip()
        made = run("CREATE DATABASE imgward CHARACTER SET utf8mb4; "
                   f"CREATE USER imgward@localhost IDENTIFIED BY '{password}'; GRANT ALL ON imgward.* TO imgward@localhost")
        assert made.returncode == 0, made.stderr
        yield run
    finally:
        process.terminate()
        process.wait(60)


def test_doctor_names_what_the_session_cannot_set(stack, server, tmp_path):
    config = str(tmp_path / "imgward.conf")
    lines = doctor(stack.environment, config)
    assert "binlog_format is STATEMENT, which refuses writes at READ-COMMITTED; set MIXED or ROW" in lines["modes"], lines
    assert re.search(r"WRONG +max_connections or max_user_connections is 25, and the pool uses \d+", lines["connections"]), lines
    assert server("SET GLOBAL binlog_format = 'MIXED'").returncode == 0
    migrated = subprocess.run([stack.environment["IMGWARD_CTL"], "--config", config, "migrate", "--directory", SQL],
                              capture_output=True, text=True, timeout=120)
    assert migrated.returncode == 0, migrated.stdout + migrated.stderr
    lines = doctor(stack.environment, config)
    assert " ok " in lines["modes"] and " ok " in lines["migrations"], lines
