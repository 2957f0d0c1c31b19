"""The service's own site: "/" for a person."""
import pytest

PERSON = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


class Visit:
    """A visit of a page outside of the console."""

    def __init__(self, window):
        self.window, self.origin = window, window.url.rsplit("/console/", 1)[0]

    def open(self, path, width=1280, theme="light"):
        self.window.size(width, 844 if width < 500 else 900)
        self.window.theme(theme)
        self.window.refused += self.window.refusals_now()
        self.window.driver.get(self.origin + path)
        self.window.find("h1")

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
    ("/docs", 308, "/docs/"), ("/docs/", 302, "/api/v2/docs"), ("/api/v2/docs/", 308, "/api/v2/docs")])
def test_slashes_at_the_end_lead_on(anonymous, path, status, location):
    answer = anonymous.get(path)
    assert (answer.status, answer.headers["Location"]) == (status, location)


def test_the_icon_is_served_by_the_name_that_browsers_guess(anonymous):
    answer = anonymous.get("/favicon.ico")
    assert answer.status == 200 and answer.headers["Content-Type"] == "image/svg+xml" and answer.body.startswith(b"<svg")
