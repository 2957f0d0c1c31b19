"""Fixtures of the tests in a real browser: one Chromium for all tests, and small pictures."""
import os
import shutil

import pytest

import pictures

try:
    import window as window_module
except ImportError:
    window_module = None


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    if window_module is None or not window_module.CHROMIUM or not window_module.DRIVER:
        pytest.skip("chromium, chromium-driver or python3-selenium is not installed: ./dev deps check")
    downloads = tmp_path_factory.mktemp("downloads")
    driver = window_module.driver_start(str(downloads))
    driver.downloads = downloads
    yield driver
    driver.quit()


@pytest.fixture
def window(driver, stack):
    """A window of a new visitor. A test fails if the content security policy refused something or a script had an error."""
    for name in os.listdir(driver.downloads):
        path = os.path.join(driver.downloads, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    window = window_module.Window(driver, stack, driver.downloads)
    window.clear()
    yield window
    assert window.refusals() == []
    assert window.accidents() == []


@pytest.fixture
def inside(window, owner):
    """A window of a signed-in owner of a new account."""
    window.enter(owner)
    window.open("/", ".side")
    return window


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Ten small pictures of three formats."""
    place = tmp_path_factory.mktemp("pictures")
    for number in range(1, 11):
        kind, make = [("jpg", pictures.jpeg), ("png", pictures.png), ("webp", pictures.webp)][number % 3]
        (place / f"drawing {number}.{kind}").write_bytes(make(320 + number, 280))
    return place


@pytest.fixture
def files(folder):
    return sorted(folder.iterdir())
