"""The console's files and headers, as nginx sends them."""
import http.client
import os
import urllib.parse

import pytest

from client import repeated

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def get(stack, path, **headers):
    base = urllib.parse.urlsplit(stack.url)
    connection = http.client.HTTPSConnection(base.hostname, base.port, context=stack.tls, timeout=60)
    try:
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        answer.read()
        return answer
    finally:
        connection.close()


def test_the_console_s_files_have_a_strict_policy(stack):
    for path in ("/console/", "/console/index.html", "/console/missing.js"):
        answer = get(stack, path)
        if answer.status == 404:  # an error of nginx allows no script
            assert "sandbox" in answer.headers["Content-Security-Policy"]
            continue
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'self'; ")
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff" and answer.headers["Referrer-Policy"] == "no-referrer"


def test_the_page_is_not_cached_and_other_files_by_their_tag(stack):
    if not os.path.exists(os.path.join(ROOT, "web", "index.html")):
        pytest.skip("there is no folder web")
    page = get(stack, "/console/")
    assert page.status == 200 and page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert page.headers["Cache-Control"] == "no-store"
    name = next(name for name in sorted(os.listdir(os.path.join(ROOT, "web"))) if name.endswith((".js", ".css")))
    file = get(stack, "/console/" + name)
    assert file.status == 200 and file.headers["Cache-Control"] == "no-cache" and file.headers["ETag"]
    assert get(stack, "/console/" + name, If_None_Match=file.headers["ETag"]).status == 304


@pytest.mark.parametrize("path", ["/console/", "/console/index.html", "/console/app.js", "/console/missing.js"])
@pytest.mark.parametrize("accepted", ["*/*", "application/problem+json"])
def test_an_error_of_nginx_has_each_header_once(stack, path, accepted):
    answer = get(stack, path, Range="bytes=99999999-", Accept=accepted)
    assert answer.status == (404 if "missing" in path else 416)
    assert not repeated(answer.headers), answer.headers
    for name in ("X-Request-Id", "Strict-Transport-Security", "X-Content-Type-Options", "Referrer-Policy",
                 "Content-Security-Policy", "Cache-Control"):
        assert answer.headers[name], name


def test_the_path_without_its_slash_leads_to_the_console(stack):
    answer = get(stack, "/console")
    assert answer.status == 308 and answer.headers["Location"] == stack.url + "/console/"


def test_answers_of_the_console_are_never_cached(stack):
    answer = get(stack, "/console/api/session")
    assert answer.status == 200 and answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Request-Id"] and "sandbox" in answer.headers["Content-Security-Policy"]


def test_only_the_installed_files_are_served(stack):
    for name in ("README.md", "Makefile.inc"):
        assert get(stack, "/console/" + name).status == 404
