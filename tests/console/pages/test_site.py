"""The service's public site: "/" for a person, the guides and the reference under /docs/."""
import html.parser
import os
import subprocess
import time
import urllib.parse

import pytest

PERSON = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
FOLDERS = [os.path.join(os.environ.get("IMGWARD_BUILD", os.path.join(ROOT, "build")), "site", "docs"), os.path.join(ROOT, "site", "docs")]
PAGES = sorted(name for name in os.listdir(next(filter(os.path.isdir, FOLDERS))) if name.endswith(".html"))


class Page(html.parser.HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], {""}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors.add(given.get("id", ""))
        self.links += [given[name] for name in ("href", "src") if name in given]


class Visit:
    """A visit to a page outside of the console."""

    def __init__(self, window):
        self.window, self.origin = window, window.url.rsplit("/console/", 1)[0]

    def open(self, path, width=1280, theme="light"):
        self.window.size(width, 844 if width < 500 else 900)
        self.window.theme(theme)
        self.window.refused += self.window.refusals_now()
        self.window.driver.get(self.origin + path)
        self.window.find("h1")

    def hosts(self):
        """Returns the origins of all requests of the page, from the browser's network log."""
        names = self.window.driver.execute_script("return performance.getEntriesByType('resource').map((one) => one.name).concat(location.href)")
        return {urllib.parse.urlsplit(name)._replace(path="", query="", fragment="").geturl() for name in names}

    def findings(self, modules):
        wide = self.window.overflow()
        return self.window.axe(modules) + ([wide] if wide else [])


@pytest.fixture
def visit(window):
    return Visit(window)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("language, title, button", [("en", "Protect your pictures.", "Open the console"), ("ko", "이미지를 보호하고", "콘솔 열기")])
def test_a_person_reads_what_this_is_and_opens_the_console(visit, modules, language, title, button, width, theme):
    visit.open(f"/?lang={language}", width, theme)
    visit.window.says(title)
    visit.window.picture(f"site-front-{language}-{width}-{theme}")
    assert visit.findings(modules) == []
    visit.window.press(button)
    visit.window.find("#console h1")


def test_a_program_gets_the_404_of_the_api(anonymous):
    for headers in ({}, {"Accept": "application/json"}, {"Accept": "*/*"}):
        answer = anonymous.get("/", headers=headers)
        assert (answer.status, answer.code) == (404, "RESOURCE_NOT_FOUND"), headers
    posted = anonymous.request("POST", "/", b"x", headers=PERSON)
    assert posted.status == 405 and posted.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("path, header, language", [
    ("/", "ko-KR,ko;q=0.9,en;q=0.8", "ko"), ("/", "de,ko;q=0.5", "en"), ("/", "en-US", "en"), ("/?lang=ko", "en", "ko"), ("/?lang=en", "ko", "en"),
    ("/?lang=/etc/passwd", "en", "en")])
def test_the_language_is_that_of_the_link_or_else_of_the_browser(anonymous, path, header, language):
    answer = anonymous.get(path, headers={**PERSON, "Accept-Language": header})
    assert answer.status == 200 and f'<html lang="{language}">'.encode() in answer.body
    assert "Accept-Language" in answer.headers["Vary"]


def test_the_page_leads_to_the_console_only_while_it_runs(stack, anonymous):
    for verb, is_linked in (("stop", False), ("start", True)):
        stack.part(verb, "console")
        assert (b'href="/console/"' in anonymous.get("/", headers=PERSON).body) == is_linked


@pytest.mark.parametrize("path, status, location", [
    ("/docs", 308, "/docs/"), ("/docs/reference", 308, "/docs/reference/"), ("/console/lib", 301, "/console/lib/"),
    ("/api/v2/docs", 308, "/docs/reference/"), ("/api/v2/docs/", 308, "/docs/reference/")])
def test_slashes_at_the_end_lead_on(anonymous, path, status, location):
    answer = anonymous.get(path, headers={"Host": "other.example"})
    assert (answer.status, answer.headers["Location"]) == (status, location)


def test_a_guide_is_found_without_html_and_a_folder_is_missing(anonymous):
    for name in ("protection", "webhooks"):
        assert anonymous.get(f"/docs/{name}").body == anonymous.get(f"/docs/{name}.html").body
    for path in ("/docs/protection/", "/docs/examples", "/docs/examples/", "/docs/reference/none", "/docs/none", "/console/lib/"):
        answer = anonymous.get(path)
        assert (answer.status, answer.code) == (404, "RESOURCE_NOT_FOUND"), path


@pytest.mark.parametrize("octet, path", [(61, "/"), (62, "/favicon.ico"), (63, "/docs/"), (64, "/docs/reference/reference.css"), (65, "/console/console.css")])
def test_files_of_the_site_are_limited_per_address(stack, octet, path):
    found, end = [], time.monotonic() + 60
    while "429" not in found and time.monotonic() < end:
        found += subprocess.run(["curl", "-sZ", "--interface", f"127.0.0.{octet}", "--cacert", stack.environment["IMGWARD_CA"], "-H", "Accept: text/html",
                                 "-o", os.devnull, "-w", "%{http_code}\n", f"{stack.url}{path}?[1-1000]"],
                                capture_output=True, text=True, timeout=240).stdout.split()
    assert set(found) == {"200", "429"} and found.count("200") >= 400, (found.count("200"), found.count("429"), set(found))


def test_the_icon_is_served_by_the_name_that_browsers_guess(anonymous):
    answer = anonymous.get("/favicon.ico")
    assert answer.status == 200 and answer.headers["Content-Type"] == "image/svg+xml" and answer.body.startswith(b"<svg")


@pytest.mark.parametrize("width, theme", [(1280, "light"), (390, "dark")])
def test_every_guide_can_be_read(visit, modules, width, theme):
    found = []
    for name in PAGES:
        visit.open(f"/docs/{name}", width, theme)
        visit.window.picture(f"site-{name.removesuffix('.html')}-{width}-{theme}")
        found += [f"{name}: {line}" for line in visit.findings(modules)]
        found += [f"{name} asks {host}" for host in visit.hosts() - {visit.origin}]
    assert PAGES and found == [], "\n".join(found)


def test_the_links_of_all_guides_resolve(anonymous):
    pages, broken = {}, []

    def page_of(path):
        if path not in pages:
            answer = anonymous.get(path, headers=PERSON)
            pages[path] = Page(answer.body.decode()) if "html" in answer.headers["Content-Type"] else Page("")
            broken.extend([f"{path}: {answer.status}"] if answer.status >= 400 else [])
        return pages[path]

    for name in ["/", *(f"/docs/{name}" for name in PAGES)]:
        for link in page_of(name).links:
            place = urllib.parse.urlsplit(urllib.parse.urljoin(name, link))
            if not place.scheme and place.path.startswith(("/docs/", "/api/", "/console/")) or place.path == "/":
                anchors = page_of(place.path).anchors
                broken += [f"{name}: {link}"] if place.path.startswith("/docs/") and place.fragment not in anchors else []
            elif place.scheme != "https":
                broken.append(f"{name}: {link}")
    assert broken == []


def test_authentication_comes_first_and_each_error_has_its_remedy(visit):
    visit.open("/docs/")
    visit.window.says("Authorization: Bearer iw_live_", "Authentication")
    assert visit.window.all(".guide-menu a")[0].text == "Get started"
    visit.open("/docs/errors.html", 390)
    rows = visit.window.all("article table:first-of-type tbody tr")
    remedies = [row.find_elements("css selector", "td[data-label=Remedy]")[0].text for row in rows]
    assert len(rows) > 20 and all(remedies)


def test_the_search_finds_sections_and_operations(visit):
    visit.open("/docs/")
    visit.window.find("#search").send_keys("idempot reus")
    visit.window.wait(lambda: "IDEMPOTENCY_KEY_REUSED" in visit.window.find(".found-list a[href='/docs/errors.html']").text, "the error")
    visit.window.find("#search").clear()
    visit.window.find("#search").send_keys("stats usage")
    visit.window.says("GET /api/v2/orders/stats/usage")
    visit.window.find("#search").clear()
    visit.window.find("#search").send_keys("rotating")
    # The list is drawn again after each letter.
    visit.window.wait(lambda: visit.window.find(".found-list a[href='/docs/webhooks.html#rotating-the-secret']").click() or True, "a link")
    visit.window.says("Rotating the secret")


REFERENCE = "/docs/reference/"
REFERENCE_BYTES_MOST = 2_200_000


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_reference_shows_request_answer_and_samples(visit, width, theme):
    visit.open(f"{REFERENCE}#tag/orders/operation/createWatermarkEmbedOrder", width, theme)
    visit.window.says("Authentication", "Request samples", "Response samples")
    visit.window.picture(f"site-reference-{width}-{theme}")
    assert visit.window.overflow() == ""
    assert visit.hosts() == {visit.origin}
    tabs = {one.text for one in visit.window.all("[role=tab]")}
    assert {"curl", "Python", "Node", "PHP"} <= tabs


def test_the_reference_is_small_and_its_policy_allows_scripts_of_its_host_only(visit, anonymous):
    visit.open(REFERENCE)
    visit.window.says("Request samples")
    total = visit.window.driver.execute_script("return performance.getEntriesByType('resource').reduce((sum, one) => sum + one.decodedBodySize, 0)")
    assert 0 < total <= REFERENCE_BYTES_MOST
    policy = anonymous.get(REFERENCE).headers["Content-Security-Policy"]
    assert "script-src 'self';" in policy and "default-src 'none'" in policy and "unsafe-eval" not in policy


def test_the_search_of_the_reference_finds_an_operation(visit):
    visit.open(REFERENCE)
    visit.window.find("[role=search] input").send_keys("rotate")
    visit.window.says("Replace the secret")
