"""A real Chromium that shows the console. Parts are found by their label or text, as a screen reader finds them."""
import json
import os
import shutil
import urllib.parse

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException, WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
SECONDS = 120
# Runs in each page before the page's scripts, and records every refusal of the policy.
NOTE_REFUSALS = """
window.refusals = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.refusals.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`);
});
"""


def driver_start(downloads):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--ignore-certificate-errors",
                 "--window-size=1440,900", "--lang=en", "--disable-background-networking", "--no-first-run"):
        options.add_argument(word)
    options.add_experimental_option("prefs", {"download.default_directory": downloads, "credentials_enable_service": False})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": NOTE_REFUSALS})
    return driver


class Window:
    """A window of the browser. Paths are those of the console, such as /orders."""

    def __init__(self, driver, stack, downloads):
        self.driver, self.stack, self.downloads = driver, stack, downloads
        self.url = stack.environment["IMGWARD_CONSOLE_URL"]
        self.clicks, self.refused = 0, []

    # ---- state ----

    def clear(self):
        """Resets the window to a new visitor: no cookie, no storage, a wide light window, a fast network."""
        self.size(1440)
        self.theme("light")
        self.network()
        for handle in self.driver.window_handles[1:]:
            self.driver.switch_to.window(handle)
            self.driver.close()
        self.driver.switch_to.window(self.driver.window_handles[0])
        self.driver.get("about:blank")
        origin = self.url.rsplit("/console/", 1)[0]
        self.driver.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        self.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        self.driver.get_log("browser")
        self.clicks, self.refused = 0, []

    def enter(self, browser):
        """Continues the session of a browser of the API tests."""
        host = urllib.parse.urlsplit(self.url).hostname
        for name, value in browser.cookies.items():
            self.driver.execute_cdp_cmd("Network.setCookie", {
                "name": name, "value": value, "domain": host, "path": "/", "secure": True, "httpOnly": True, "sameSite": "Lax"})

    def session_lose(self):
        self.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})

    def size(self, width, height=900):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def theme(self, name):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": name}, {"name": "prefers-reduced-motion", "value": "reduce"}]})

    def network(self, upload=-1):
        """Limits uploads to some bytes a second; -1 removes the limit."""
        self.driver.execute_cdp_cmd("Network.enable", {})
        self.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {
            "offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": upload})

    def answer(self, path, status, body, method="POST"):
        """Replaces the response to requests to this path of the console's API, until the console is loaded again."""
        self.driver.execute_script("""
            const [path, status, body, method] = arguments, ask = window.fetch;
            window.fetch = (url, options) => (new URL(url, location).pathname === "/console/api" + path && (options?.method ?? "GET") === method
              ? Promise.resolve(new Response(JSON.stringify(body), {status})) : ask(url, options));""", path, status, body, method)

    # ---- pages ----

    def open(self, path="/", wait="h1"):
        """Loads the console at a path."""
        self.refused += self.refusals_now()
        self.driver.get("about:blank")
        self.driver.get(f"{self.url}#{path}")
        return self.find(wait)

    def go(self, path, wait="main h1"):
        """Changes the page without loading the console again."""
        self.driver.execute_script("location.hash = arguments[0]", path)
        return self.find(wait)

    @property
    def path(self):
        return self.driver.execute_script("return location.hash.slice(1)")

    # ---- parts ----

    def wait(self, condition, what="a condition"):
        """Waits until condition() is true; an element that was replaced meanwhile counts as false."""
        def attempt(_):
            try:
                return condition()
            except (StaleElementReferenceException, IndexError):
                return False
        try:
            return WebDriverWait(self.driver, SECONDS, 0.1).until(attempt)
        except TimeoutException:
            raise AssertionError(f"waited for {what}; the page has: {self.text()[:1500]}") from None

    def all(self, css):
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def find(self, css):
        return self.wait(lambda: self.all(css), css)[0]

    def text(self):
        """Returns all text of the page, or of the open dialog if there is one."""
        script = "const all = document.querySelectorAll('dialog'); return (all[all.length - 1] || document.body).innerText"
        try:
            return self.driver.execute_script(script) or ""
        except WebDriverException:
            return ""

    def says(self, *words):
        """Waits until the page has these words."""
        for word in words:
            self.wait(lambda word=word: word in self.text(), repr(word))

    def named(self, word, css):
        """Returns the visible elements with this text or label, only those of the open dialog if there is one."""
        return self.driver.execute_script("""
            const [word, css] = arguments, dialogs = document.querySelectorAll("dialog");
            const root = dialogs.length ? dialogs[dialogs.length - 1] : document;
            return [...root.querySelectorAll(css)].filter((one) =>
              [one.textContent.trim(), one.getAttribute("aria-label")].includes(word) && one.getClientRects().length > 0);
            """, word, css)

    def press(self, word, css="button, a, label, summary"):
        """Clicks the first button or link with this text as soon as it is enabled."""
        def usable():
            return [one for one in self.named(word, css) if one.is_enabled()]
        one = self.wait(usable, f"a button {word!r}")[0]
        self.click(one)

    def click(self, element):
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()
        self.clicks += 1

    def field(self, label):
        """Returns the input with this label."""
        def labelled():
            return [self.driver.find_element(By.ID, one.get_attribute("for")) for one in self.named(label, "label[for]")]
        return self.wait(labelled, f"a field {label!r}")[0]

    def fill(self, label, value, clear=True):
        one = self.field(label)
        if clear and one.get_attribute("value"):
            # Preact detects the change from the event.
            self.driver.execute_script("arguments[0].value = ''; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))", one)
        one.send_keys(value)

    def choose(self, label, value):
        one = self.field(label)
        self.driver.execute_script("arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change', {bubbles: true}))", one, value)

    def error_of(self, label):
        """Waits for the error next to a field; returns its text."""
        one = self.field(label)
        self.wait(lambda: self.field(label).get_attribute("aria-invalid") == "true", f"an error of {label!r}")
        names = (one.get_attribute("aria-describedby") or "").split()
        return " ".join(self.driver.find_element(By.ID, name).text for name in names if name.endswith("-error"))

    def give(self, paths, place=0):
        """Chooses files, as the dialog of the system does."""
        self.find("input[type=file]")
        self.all("input[type=file]:not([webkitdirectory])")[place].send_keys("\n".join(map(str, paths)))

    # ---- findings ----

    def refusals_now(self):
        return self.driver.execute_script("return window.refusals || []")

    def refusals(self):
        """Returns everything that the content security policy refused since the start of the test."""
        return self.refused + self.refusals_now()

    def accidents(self):
        """Returns errors of scripts in the browser's log."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["source"] == "javascript" and entry["level"] == "SEVERE"]

    def overflow(self):
        """Returns by how many pixels the page is wider than the window, and the elements that stick out."""
        return self.driver.execute_script("""
            const width = document.documentElement.clientWidth, over = document.documentElement.scrollWidth - width;
            if (over <= 0) return "";
            return over + ": " + [...document.querySelectorAll("main *")].filter((one) => one.getBoundingClientRect().right > width + 1)
              .slice(0, 5).map((one) => one.outerHTML.slice(0, 120)).join(" | ");""")

    def axe(self, modules):
        """Returns axe-core's violations on the page, one line each."""
        if not self.driver.execute_script("return Boolean(window.axe)"):
            with open(os.path.join(modules, "axe-core", "axe.min.js"), encoding="utf-8") as file:
                self.driver.execute_script(file.read())
        found = self.driver.execute_async_script("""
            const done = arguments[arguments.length - 1];
            axe.run(document, {resultTypes: ["violations"]}).then((found) => done(JSON.stringify(found.violations)), (error) => done(JSON.stringify([{id: String(error), nodes: []}])));""")
        return [f"{rule['id']}: {node.get('html', '')[:160]} {node.get('failureSummary', '')[:200]}"
                for rule in json.loads(found) for node in rule["nodes"] or [{}]]

    def picture(self, name):
        """Saves a screenshot of the whole page in var/console-pages."""
        folder = os.path.join(os.environ.get("IMGWARD_VAR", "var"), "console-pages")
        os.makedirs(folder, exist_ok=True)
        self.driver.save_screenshot(os.path.join(folder, name + ".png"))
