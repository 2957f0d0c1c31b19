"""Fixtures of the web console: browsers, and their address in each test."""
import itertools

import pytest

from browser import Browser

places = itertools.count(1)


@pytest.fixture(autouse=True)
def unlimited(stack):
    """Forgets the attempts of earlier tests, and gives the browsers of each test a separate address."""
    stack.sql("DELETE FROM sign_in_attempts")
    place = next(places)
    Browser.place = f"127.1.{place // 250}.{place % 250 + 1}"


@pytest.fixture
def browser(stack):
    """A browser without a session."""
    return Browser(stack)


@pytest.fixture
def owner(stack):
    """A signed-in owner of a new account."""
    browser = Browser(stack)
    answer = browser.sign_up()
    assert answer.status == 201, answer
    return browser


@pytest.fixture
def other(stack):
    """A signed-in owner of another account."""
    browser = Browser(stack)
    assert browser.sign_up().status == 201
    return browser


@pytest.fixture
def operator(stack):
    """A signed-in user of the operator, from dev.env."""
    browser = Browser(stack)
    answer = browser.sign_in(stack.environment["IMGWARD_CONSOLE_ADMIN_USER"],
                             stack.environment["IMGWARD_CONSOLE_ADMIN_PASSWORD"])
    assert answer.status == 200, answer
    return browser
