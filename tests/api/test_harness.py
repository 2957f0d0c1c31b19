"""The stack itself: HTTP sends to HTTPS, and its certificate is its own."""
import http.client
import urllib.parse


def test_plain_http_answers_308_to_https(stack):
    plain = urllib.parse.urlsplit(stack.environment["IMGWARD_HTTP_URL"])
    connection = http.client.HTTPConnection(plain.hostname, plain.port, timeout=10)
    connection.request("GET", "/api/v2/orders?page=2")
    answer = connection.getresponse()
    connection.close()
    assert answer.status == 308
    assert answer.headers["Location"] == stack.url + "/api/v2/orders?page=2"
