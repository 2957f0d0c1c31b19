"""Least privilege: the database refuses each program's user the statements that the program must not send."""
import os
import re
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

REFUSED = {
    "api": [
        "UPDATE accounts SET plan = 'enterprise'", "INSERT INTO accounts (name, plan, created_at) VALUES ('x', 'free', NOW())",
        "UPDATE accounts SET status = 'active'", "DELETE FROM accounts",
        "INSERT INTO api_keys (account_id, prefix, digest, created_at) VALUES (1, 'x', REPEAT('x', 32), NOW())",
        "UPDATE api_keys SET revoked_at = NULL", "UPDATE api_keys SET digest = REPEAT('x', 32)", "DELETE FROM api_keys",
        "SELECT password_hash FROM users", "UPDATE users SET is_admin = TRUE", "SELECT digest FROM user_sessions",
        "INSERT INTO user_sessions (user_id, digest, address, user_agent, created_at, seen_at, expires_at) VALUES (1, '', '', '', NOW(), NOW(), NOW())",
        "SELECT * FROM user_tokens", "SELECT * FROM recovery_codes", "SELECT * FROM invitations", "SELECT * FROM mails",
        "SELECT * FROM audit_events", "DELETE FROM audit_events", "SELECT * FROM request_log", "DELETE FROM request_log",
        "SELECT * FROM request_bodies", "DELETE FROM request_bodies", "SELECT * FROM delivery_bodies",
        "UPDATE jobs SET attempt = 0", "UPDATE jobs SET lease_owner = 'x'", "INSERT INTO job_retries VALUES (1, NOW())",
        "DELETE FROM switches", "UPDATE workers SET busy = 0", "UPDATE usage_days SET result_count = 0",
        "CREATE TABLE x (a INT)", "DROP TABLE jobs", "ALTER TABLE jobs ADD COLUMN x INT", "SELECT * FROM mysql.user",
    ],
    "console": [
        "UPDATE jobs SET attempt = 0", "UPDATE jobs SET lease_owner = 'x', lease_until = NOW()", "UPDATE jobs SET order_id = 1",
        "UPDATE jobs SET available_at = NOW()", "DELETE FROM accounts", "DELETE FROM api_keys",
        "UPDATE api_keys SET digest = REPEAT('x', 32)", "UPDATE api_keys SET account_id = 1",
        "UPDATE audit_events SET event = 'x'", "DELETE FROM audit_events", "SELECT * FROM mails", "DELETE FROM mails",
        "INSERT INTO request_log VALUES (1, 1, 1, '', '', '', 200, '', 1, NOW())", "DELETE FROM request_log", "DELETE FROM request_bodies",
        "UPDATE delivery_bodies SET payload = ''", "DELETE FROM job_retries", "UPDATE workers SET busy = 0", "DELETE FROM switches",
        "UPDATE usage_days SET result_count = 0", "CREATE TABLE x (a INT)", "DROP TABLE users", "SELECT * FROM mysql.user",
    ],
    "worker": [
        "SELECT password_hash FROM users", "SELECT totp_sealed FROM users", "UPDATE users SET is_admin = TRUE",
        "INSERT INTO users (account_id, role, email, name, created_at) VALUES (1, 'owner', 'x', 'x', NOW())",
        "SELECT digest FROM user_sessions", "SELECT digest FROM user_tokens", "SELECT digest FROM invitations",
        "SELECT request_body FROM request_bodies", "SELECT * FROM recovery_codes", "INSERT INTO recovery_codes VALUES (1, REPEAT('x', 32))",
        "UPDATE accounts SET plan = 'enterprise'", "UPDATE accounts SET status = 'active'",
        "INSERT INTO accounts (name, plan, created_at) VALUES ('x', 'free', NOW())",
        "INSERT INTO api_keys (account_id, prefix, digest, created_at) VALUES (1, 'x', REPEAT('x', 32), NOW())",
        "SELECT digest FROM api_keys", "UPDATE api_keys SET revoked_at = NULL",
        "INSERT INTO audit_events (event, address, details, at) VALUES ('x', '', '', NOW())", "SELECT details FROM audit_events",
        "INSERT INTO job_retries VALUES (1, NOW())", "INSERT INTO request_log VALUES (1, 1, 1, '', '', '', 200, '', 1, NOW())",
        "CREATE TABLE x (a INT)", "DROP TABLE jobs",
    ],
}

ALLOWED = {
    "api": ["UPDATE api_keys SET last_used_at = last_used_at WHERE id = 0", "SELECT COUNT(*) FROM jobs"],
    "console": ["UPDATE users SET name = name WHERE id = 0", "SELECT COUNT(*) FROM request_log"],
    "worker": ["SELECT email FROM users WHERE id = 0", "DELETE FROM user_sessions WHERE id = 0"],
}


def run(stack, program, statement):
    """Returns the end of the client's message; "" after a success."""
    with open(os.path.join(stack.environment["IMGWARD_VAR"], "etc", program + ".password"), encoding="ascii") as file:
        password = file.read().strip()
    done = subprocess.run(["mariadb", "--no-defaults", "-S", stack.environment["IMGWARD_DB_SOCKET"], "-u", "imgward_" + program,
                           "imgward", "-e", f"START TRANSACTION; {statement}; ROLLBACK"], capture_output=True, text=True,
                          timeout=60, env={**os.environ, "MYSQL_PWD": password})
    return done.stderr.strip()


@pytest.mark.parametrize("program", REFUSED)
def test_a_program_s_user_is_refused_other_programs_work(stack, program):
    for statement in REFUSED[program]:
        told = run(stack, program, statement)
        assert "denied" in told, (statement, told)


@pytest.mark.parametrize("program", ALLOWED)
def test_a_program_s_user_may_do_its_own_work(stack, program):
    for statement in ALLOWED[program]:
        assert run(stack, program, statement) == "", statement


def test_every_table_has_its_row(stack):
    """A new table needs a row in src/db/grants.c; otherwise the database refuses its programs."""
    with open(os.path.join(ROOT, "src", "db", "grants.c"), encoding="utf-8") as file:
        rows = set(re.findall(r'\{\s*"([a-z_]+)",', file.read()))
    assert {row[0] for row in stack.sql("SHOW TABLES")} == rows


@pytest.mark.parametrize("program", ["api", "console", "worker"])
def test_each_program_uses_its_own_user(stack, program, owner):
    """Connections were opened by the console's requests above, the API's below and the worker's heartbeat."""
    stack.account_new().list()
    users = {row[0] for row in stack.sql("SELECT user FROM information_schema.processlist")}
    assert "imgward_" + program in users
