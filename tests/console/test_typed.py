"""Typed text: input methods, other keyboards and copied text write the same text in several forms."""
import unicodedata

import pytest

from browser import Browser, address_new, totp
from test_sign_in import challenged, enabled, second

NFC = unicodedata.normalize("NFC", "pässwörter sind lang")
NFD = unicodedata.normalize("NFD", NFC)


def wide(text):
    """Returns the text as an input method for Chinese, Japanese or Korean writes it."""
    return "".join(chr(ord(letter) + 0xfee0) if "!" <= letter <= "~" else letter for letter in text)


@pytest.mark.parametrize("form", [
    lambda code: f"{code[:3]} {code[3:]}", lambda code: f" {code[:3]}-{code[3:]}\u00a0", wide,
    lambda code: f"\u202a{code[:3]}\u2009{code[3:]}\u202c"], ids=["blank", "dash", "fullwidth", "invisible"])
def test_a_code_is_taken_as_it_is_shown_and_copied(stack, owner, form):
    made = owner.post("/user/totp", {"password": "correct horse battery"})
    answer = owner.post("/user/totp/enable", {"code": form(totp(made.data["secret"]))})
    assert answer.status == 200, answer
    stack.sql("UPDATE users SET totp_step = 0")
    browser, challenge = challenged(stack, owner.email)
    assert second(browser, challenge, form(totp(made.data["secret"]))).data["state"] == "signedIn"


def test_a_recovery_code_is_taken_as_it_is_read(stack, owner):
    _, codes = enabled(owner)
    forms = [wide(codes[0]), codes[1].replace("-", "\u2013"), codes[2].replace("0", "o").replace("1", "l").lower()]
    for form in forms:
        browser, challenge = challenged(stack, owner.email)
        assert second(browser, challenge, form).status == 200, form


def test_an_address_is_taken_as_input_methods_write_it(stack, owner):
    forms = [f"  {owner.email}\u00a0", wide(owner.email), owner.email.replace("@", "\uff20").replace(".", "\u3002"),
             "\ufeff" + owner.email.upper()]
    for form in forms:
        assert Browser(stack).sign_in(form).status == 200, form
    assert Browser(stack).sign_in(owner.email.replace("@", "\uff20@")).status == 400
    email = address_new()
    assert Browser(stack).sign_up(f" {wide(email)} ").data["user"]["email"] == email


@pytest.mark.parametrize("first, then", [(NFC, NFD), (NFD, NFC), ("a\u00a0blank\u3000of\u2003any kind", "a blank of any kind")])
def test_a_password_is_the_same_in_each_normal_form(stack, browser, first, then):
    assert browser.sign_up(password=first).status == 201
    assert Browser(stack).sign_in(browser.email, then).status == 200
    assert browser.post("/user/password", {"currentPassword": then, "newPassword": then}).status == 200
    assert Browser(stack).sign_in(browser.email, first).status == 200


def test_the_characters_of_a_password_count_in_its_normal_form(browser):
    answer = browser.sign_up(password=unicodedata.normalize("NFD", "ä" * 11))
    assert answer.status == 400 and "has 11 characters" in str(answer.body), answer


def test_u0000_is_refused_and_is_no_attempt(stack, owner):
    stack.sql("DELETE FROM sign_in_attempts")
    for _ in range(8):
        answer = Browser(stack).sign_in(owner.email, "correct horse battery\0and more")
        assert answer.status == 400 and answer.fields() == ["password"], answer
        assert "contains the character U+0000; remove it" in str(answer.body), answer
    assert stack.sql("SELECT COUNT(*) FROM sign_in_attempts") == [["0"]]
    for body in ({"currentPassword": "correct\0", "newPassword": "another long password"},
                 {"currentPassword": "correct horse battery", "newPassword": "another long\0 password"}):
        assert owner.post("/user/password", body).status == 400
    assert Browser(stack).sign_up(password="thirteen\0chars").fields() == ["password"]
