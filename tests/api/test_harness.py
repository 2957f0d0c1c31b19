"""The stack: redirect from HTTP to HTTPS, nginx with the shipped files, file permissions."""
import http.client
import os
import subprocess
import urllib.parse

import pytest


def test_plain_http_answers_308_to_https(stack):
    plain = urllib.parse.urlsplit(stack.environment["IMGWARD_HTTP_URL"])
    connection = http.client.HTTPConnection(plain.hostname, plain.port, timeout=90)
    connection.request("GET", "/api/v2/orders?page=2")
    answer = connection.getresponse()
    connection.close()
    assert answer.status == 308
    assert answer.headers["Location"] == stack.url + "/api/v2/orders?page=2"


def test_plain_http_serves_the_challenges_of_certbot(stack):
    """Without the file, the request is redirected as any other, so a renewal needs no edit of the site."""
    plain = urllib.parse.urlsplit(stack.environment["IMGWARD_HTTP_URL"])
    folder = os.path.join(stack.environment["IMGWARD_VAR"], "www", ".well-known", "acme-challenge")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "token"), "w", encoding="ascii") as file:
        file.write("token.thumbprint")

    def get(path):
        connection = http.client.HTTPConnection(plain.hostname, plain.port, timeout=90)
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body, answer.headers["Location"]

    assert get("/.well-known/acme-challenge/token")[:2] == (200, b"token.thumbprint")
    for path in ("/.well-known/acme-challenge/other", "/.well-known/token"):
        assert get(path)[0] == 308 and get(path)[2] == stack.url + path


def test_nginx_takes_the_shipped_files_without_a_warning(stack):
    var = stack.environment["IMGWARD_VAR"]
    done = subprocess.run(["nginx", "-t", "-e", "stderr", "-c", f"{var}/etc/nginx.conf", "-p", var + "/"],
                          capture_output=True, text=True, timeout=180,
                          env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"})
    assert done.returncode == 0, done.stderr
    assert "[warn]" not in done.stderr, done.stderr


def test_the_services_database_user_cannot_change_tables(stack):
    grants = "\n".join(row[0] for row in stack.sql("SHOW GRANTS FOR imgward@localhost"))
    assert "GRANT SELECT, INSERT, UPDATE, DELETE ON `imgward`.*" in grants
    assert "ALL PRIVILEGES" not in grants


def test_the_database_is_strict_and_in_utc(stack):
    mode, zone = stack.sql("SELECT @@sql_mode, @@time_zone")[0]
    assert "STRICT_ALL_TABLES" in mode and zone == "+00:00"


@pytest.mark.parametrize("name", ["mariadbd", "redis", "nginx", "api", "console", "worker"])
def test_every_part_has_its_pid_file(stack, name):
    assert os.path.isdir(f"/proc/{stack.pid(name)}")


def test_migrating_again_does_nothing(stack):
    etc = os.path.join(stack.environment["IMGWARD_VAR"], "etc", "owner.conf")
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    done = subprocess.run([stack.environment["IMGWARD_CTL"], "--config", etc, "migrate", "--directory", root + "/sql"],
                          capture_output=True, text=True, timeout=180)
    assert done.returncode == 0 and "0 applied" in done.stdout, done
