"""Sign-in, second factor, forgotten password, invitation, sign-up, lost sessions: as a user does them."""
from browser import PASSWORD, Browser, address_new, totp


def sign_in(window, email, password=PASSWORD):
    window.fill("Email", email)
    window.fill("Password", password)
    window.press("Sign in", "button")


def test_a_wrong_password_is_refused_and_the_right_one_opens_the_page_of_the_url(window, owner):
    window.open("/orders")
    sign_in(window, owner.email, "not the password")
    window.says("The email address, the password or the code is wrong.")
    window.fill("Password", PASSWORD)
    window.press("Sign in", "button")
    window.says("No orders yet")
    assert window.path == "/orders"


def test_a_new_user_signs_up_in_the_browser(window):
    window.open("/sign-in")
    window.press("Create an account")
    for label, value in (("Name", "Ada"), ("Account name", "Studio Ada"), ("Email", address_new()), ("New password", "short")):
        window.fill(label, value)
    window.press("Create account")
    assert "12" in window.error_of("New password")
    window.fill("New password", PASSWORD)
    window.press("Create account")
    window.says("Hello, Ada", "First steps")


def test_the_second_factor_is_turned_on_and_used(window, owner):
    window.enter(owner)
    window.open("/account/security")
    window.press("Turn on")
    window.fill("Password", "not the password")
    window.press("Continue")
    window.error_of("Password")
    window.fill("Password", PASSWORD)
    window.press("Continue")
    window.find(".qr path")
    secret = window.find("dialog .secret code").text
    window.fill("The code that the app shows", "000000" if totp(secret) != "000000" else "000001")
    window.press("Confirm")
    window.error_of("The code that the app shows")
    window.fill("The code that the app shows", totp(secret))
    window.press("Confirm")
    window.says("New recovery codes")
    codes = [one.text for one in window.all(".codes code")]
    assert len(codes) == 10
    window.press("I have stored it")
    window.wait(lambda: window.named("Turn off", "button"), "the button to turn it off")
    window.press("Sign out")
    window.says("Forgotten password?")
    sign_in(window, owner.email)
    window.fill("Code", codes[0])
    window.press("Sign in", "button")
    window.says("Hello,")


def test_a_forgotten_password_has_a_next_step_and_a_bad_link_says_so(window):
    window.open("/sign-in")
    window.press("Forgotten password?")
    window.says("This service sends no mail")
    assert not window.all("form") and not window.all(".notice a")
    window.open("/reset?token=" + "0" * 43)
    window.fill("New password", PASSWORD)
    window.press("Set password")
    window.says("This link was already used or has expired.", "Request a new link")


def test_the_operators_address_stands_where_it_is_needed(window, owner, stack):
    with stack.configured("console", "operator_contact", "help@imgward.example"):
        window.open("/forgot")
        link = window.find(".notice a")
        assert (link.text, link.get_attribute("href")) == ("help@imgward.example", "mailto:help@imgward.example")
        window.open("/sign-in")
        sign_in(window, owner.email, "not the password")
        window.says("The email address, the password or the code is wrong.")
        assert "Request id" not in window.text(), "a user's mistake is nothing for the operator"
        window.answer("/session", 500, {"code": "SERVER_INTERNAL_ERROR", "message": "The service failed.", "requestId": "0123abcd"})
        window.press("Sign in", "form button")
        window.says("The service failed. Please try again.", "Request id for the operator:", "0123abcd", "help@imgward.example")
    with stack.configured("console", "operator_contact", "ask at the desk"):
        window.open("/forgot")
        window.says("ask at the desk")


def test_an_invitation_makes_a_member(window, owner):
    window.enter(owner)
    window.open("/account/members")
    window.press("Invite")
    window.fill("Email", address_new())
    window.press("Invite", "dialog [type=submit]")
    link = window.find("dialog .secret code").text
    window.session_lose()
    window.open(link.partition("#")[2])
    window.says("You are invited to")
    window.fill("Name", "Grace")
    window.fill("New password", PASSWORD)
    window.press("Join", "button")
    window.says("Hello, Grace")


def test_an_address_is_confirmed_by_a_button(window):
    window.open("/verify?token=" + "0" * 43)
    window.press("Confirm", "button")
    window.says("This link was already used or has expired.")


def test_a_lost_session_keeps_what_was_typed(inside, owner, files):
    inside.go("/new")
    inside.give(files[:2])
    inside.says("2 pictures ready")
    inside.fill("Name of the order (optional)", "kept through sign-in")
    inside.session_lose()
    inside.press("Protect 2 pictures")
    inside.says("Please sign in again")
    inside.fill("Password", "not the password")
    inside.press("Sign in", "button")
    inside.says("The email address, the password or the code is wrong.")
    inside.fill("Password", PASSWORD)
    inside.press("Sign in", "button")
    inside.says("kept through sign-in", "Download all")


def test_two_tabs_share_a_session(inside, owner):
    first = inside.driver.current_window_handle
    inside.driver.switch_to.new_window("tab")
    inside.open("/orders")
    inside.says("No orders yet")
    inside.press("Sign out")
    inside.says("Forgotten password?")
    inside.driver.switch_to.window(first)
    inside.says("Please sign in again")
    inside.fill("Password", PASSWORD)
    inside.press("Sign in", "button")
    inside.says("Hello,")


def test_another_user_in_another_tab_replaces_the_page(inside, stack):
    first = inside.driver.current_window_handle
    stranger = Browser(stack)
    assert stranger.sign_up(name="Stranger").status == 201
    inside.driver.switch_to.new_window("tab")
    inside.session_lose()
    inside.open("/")
    sign_in(inside, stranger.email)
    inside.says("Hello, Stranger")
    inside.driver.switch_to.window(first)
    inside.says("Hello, Stranger")


def test_another_user_in_the_same_tab_does_not_see_the_page_before(inside, stack):
    stranger = Browser(stack)
    assert stranger.sign_up(name="Stranger").status == 201
    inside.go("/account")
    inside.session_lose()
    inside.press("Save", "button")
    inside.says("Please sign in again")
    sign_in(inside, stranger.email)
    inside.wait(lambda: inside.field("Name").get_attribute("value") == "Stranger", "the stranger's own profile")
