"""The Debian package and nginx: the maintainer scripts run on a private root, and nginx -t passes after each step.

packaging/test-host installs the real package on a booted Debian. This test is its quick part.
"""
import os
import re
import shutil
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Debian's configuration, as far as the test needs it.
NGINX = """error_log {root}/error.log;
pid {root}/nginx.pid;
events {{ }}
http {{
    client_body_temp_path {root}/tmp/body;
    fastcgi_temp_path {root}/tmp/fastcgi;
    proxy_temp_path {root}/tmp/proxy;
    uwsgi_temp_path {root}/tmp/uwsgi;
    scgi_temp_path {root}/tmp/scgi;
    access_log {root}/access.log;
{http}
    include {root}/etc/nginx/conf.d/*.conf;
    include {root}/etc/nginx/sites-enabled/*;
}}
"""


class Machine:
    """A root with nginx and the package's files, installed as dpkg does."""

    def __init__(self, root, http=""):
        self.root, self.nginx = root, root / "etc" / "nginx"
        self.http = http
        (root / "tmp").mkdir(parents=True)
        self.nginx_install()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
                        "/CN=localhost", "-keyout", root / "site.key", "-out", root / "site.pem"], check=True, capture_output=True,
                       timeout=60)

    def nginx_install(self):
        for name in ("conf.d", "sites-available", "sites-enabled"):
            (self.nginx / name).mkdir(parents=True, exist_ok=True)
        (self.nginx / "nginx.conf").write_text(NGINX.format(root=self.root, http=self.http), encoding="utf-8")

    def script(self, name, *words):
        done = subprocess.run(["sh", os.path.join(ROOT, "debian", "imgward." + name), *words], capture_output=True, text=True,
                              timeout=60, env={**os.environ, "DPKG_ROOT": str(self.root)})
        assert done.returncode == 0, done.stderr
        return done.stderr

    def configured(self, name):
        """Returns a file of nginx/ as make writes it, with the paths of this root."""
        with open(os.path.join(ROOT, "nginx", name), encoding="utf-8") as file:
            text = file.read().replace("/var/log/nginx/", f"{self.root}/")
        for at, path in (("nginxdir", "imgward"), ("pkgdatadir", "/usr/share/imgward"), ("localstatedir", "/var"), ("tls", "ssl"), ("tls_socket", "ssl")):
            text = text.replace(f"@{at}@", path)
        assert not re.search("@[a-z_]+@", text), name
        return text

    def site(self):
        """Configures the site's name and certificate, as an administrator does."""
        return self.configured("site.conf.in").replace("/etc/ssl/imgward.example/fullchain.pem", f"{self.root}/site.pem").replace(
            "/etc/ssl/imgward.example/privkey.pem", f"{self.root}/site.key")

    def install(self, before=""):
        (self.nginx / "imgward").mkdir(parents=True, exist_ok=True)
        for name in os.listdir(os.path.join(ROOT, "nginx")):
            if name.endswith((".conf", ".conf.in")) and name != "site.conf.in":
                (self.nginx / "imgward" / name.removesuffix(".in")).write_text(self.configured(name), encoding="utf-8")
        (self.nginx / "sites-available" / "imgward").write_text(self.site(), encoding="utf-8")
        self.script("postinst", "configure", before)

    def enable(self, name="imgward"):
        (self.nginx / "sites-enabled" / name).symlink_to("../sites-available/imgward")

    def remove(self):
        self.script("prerm", "remove")
        self.script("postrm", "remove")

    def purge(self):
        shutil.rmtree(self.nginx / "imgward", ignore_errors=True)
        (self.nginx / "sites-available" / "imgward").unlink(missing_ok=True)
        return self.script("postrm", "purge")

    def accepts(self):
        done = subprocess.run(["nginx", "-t", "-e", "stderr", "-p", f"{self.root}/", "-c", f"{self.nginx}/nginx.conf"],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return True

    def left(self):
        """Returns the files in nginx's folder that come from the package."""
        return sorted(str(path.relative_to(self.nginx)) for path in self.nginx.rglob("*imgward*"))


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path / "root")


def test_the_site_needs_no_edit_of_nginx_conf(machine):
    before = (machine.nginx / "nginx.conf").read_text()
    machine.install()
    assert machine.accepts()
    machine.enable()
    assert machine.accepts() and (machine.nginx / "nginx.conf").read_text() == before
    whole = subprocess.run(["nginx", "-T", "-e", "stderr", "-p", f"{machine.root}/", "-c", f"{machine.nginx}/nginx.conf"],
                           capture_output=True, text=True, timeout=60).stdout
    assert whole.count("upstream imgward_api") == 1 and "location ^~ /api/v2/" in whole


@pytest.mark.parametrize("link", ["imgward", "10-shop"])
def test_nginx_starts_after_remove_and_purge(machine, link):
    machine.install()
    machine.enable(link)
    machine.remove()
    assert machine.accepts()
    machine.install(before="1.0.0")
    assert machine.accepts()
    machine.purge()
    assert machine.accepts() and machine.left() == []
    assert os.listdir(machine.nginx / "sites-enabled") == []


def test_an_administrators_copy_of_the_site_survives_the_purge(machine):
    machine.install()
    (machine.nginx / "sites-enabled" / "shop").write_text(machine.site().replace("imgward.example", "shop.example"))
    assert machine.accepts()
    machine.purge()
    assert machine.accepts() and machine.left() == []
    assert "shop.example" in (machine.nginx / "sites-enabled" / "shop").read_text()


def test_an_edited_nginx_conf_that_includes_our_file_stays_valid(tmp_path):
    machine = Machine(tmp_path / "root", http="    include imgward/http.conf;")
    machine.install()
    assert not (machine.nginx / "conf.d" / "imgward.conf").exists(), "http.conf would be included twice"
    machine.enable()
    assert machine.accepts()
    told = machine.purge()
    assert machine.accepts() and machine.left() == ["imgward"] and os.listdir(machine.nginx / "imgward") == ["http.conf"]
    assert "still uses" in told and "http.conf" in told


def test_an_administrators_file_that_names_ours_stays_valid_after_the_purge(machine):
    machine.install()
    own = re.sub(r"include imgward/redirect[^;]*;", f"access_log {machine.root}/shop.log imgward;\n    include imgward/headers.conf;",
                 machine.site()).replace("con[f]", "conf")
    (machine.nginx / "conf.d" / "shop.conf").write_text(own)
    # conf.d/imgward.conf comes first.
    assert machine.accepts()
    told = machine.purge()
    assert machine.accepts()
    assert sorted(os.listdir(machine.nginx / "imgward")) == ["headers.conf", "locations.conf"] and told.count("still uses") == 3


def test_the_purge_of_nginx_may_come_first(machine):
    machine.install()
    machine.enable()
    # The postrm of nginx does the same.
    shutil.rmtree(machine.nginx)
    machine.remove()
    machine.purge()
    assert not machine.nginx.exists()
    machine.nginx_install()
    assert machine.accepts()


def test_the_file_that_an_administrator_deleted_is_not_written_by_a_later_upgrade(machine):
    machine.install()
    (machine.nginx / "conf.d" / "imgward.conf").unlink()
    machine.install(before="1.0.0")
    assert not (machine.nginx / "conf.d" / "imgward.conf").exists()


# Names of http.conf that other files use. Administrators edit http.conf, and dpkg keeps an edited file during an upgrade. So a
# new variable or zone belongs in a file that the package replaces, and these names stay.
OF_HTTP_CONF = set("""
    $imgward_error_allow $imgward_error_code $imgward_error_message $imgward_error_page $imgward_error_wait
    $imgward_https_only $imgward_is_far $imgward_is_header_long $imgward_is_no_get $imgward_is_preflight $imgward_is_unsized
    $imgward_is_url_long $imgward_port $imgward_refused_page $imgward_respelt imgward_api imgward_console
    imgward_console_open imgward_files imgward_keyless imgward_no_event imgward_upload_address imgward_upload_url
""".split())


def nginx_sources():
    """Returns each file of nginx/ without comments."""
    for name in sorted(os.listdir(os.path.join(ROOT, "nginx"))):
        if name.endswith((".conf", ".conf.in")):
            with open(os.path.join(ROOT, "nginx", name), encoding="utf-8") as file:
                yield name, re.sub(r"(?m)^\s*#.*", "", file.read())


def test_an_http_conf_of_the_release_before_has_all_that_the_other_files_use():
    used, own = set(), set()
    for name, text in nginx_sources():
        if name != "http.conf":
            own |= set(re.findall(r"(?:\bset |auth_request_set )(\$imgward_\w+)", text))
            used |= set(re.findall(r"(?:zone=|fastcgi_pass |limit_conn |(?=\$))(\$?imgward_\w+)", text))
    assert used - own == OF_HTTP_CONF


def test_includes_name_the_whole_path():
    """A relative path is resolved below nginx's prefix, where --sysconfdir puts no file."""
    assert [f"{name}: {line}" for name, text in nginx_sources()
            for line in re.findall(r"\binclude (?!@nginxdir@/)[^;]*;", text)] == []


def test_every_link_of_an_installed_document_resolves(tmp_path):
    subprocess.run(["make", "-s", "-C", os.environ["IMGWARD_BUILD"], "install-nobase_dist_docDATA", f"DESTDIR={tmp_path}"],
                   check=True, capture_output=True, timeout=300)
    pages = list(tmp_path.rglob("*.md"))
    broken = []
    for page in pages:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            if not re.match(r"[a-z]+:|#", link) and not (page.parent / link.split("#")[0]).is_file():
                broken.append(f"{page.relative_to(tmp_path)}: {link}")
    assert len(pages) >= 20 and broken == []


def test_installed_files_have_the_configured_paths_and_uninstall_leaves_none(tmp_path):
    """make install below /usr/local, the default, writes no path of another prefix, and no file outside of it."""
    def make(target):
        subprocess.run(["make", "-s", "-C", os.environ["IMGWARD_BUILD"], target, f"DESTDIR={tmp_path}"], check=True,
                       capture_output=True, timeout=300)

    make("install")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    names = {str(path.relative_to(tmp_path)) for path in files}
    assert {"usr/local/lib/systemd/system/imgward-worker.service", "usr/local/lib/sysusers.d/imgward.conf",
            "usr/local/lib/tmpfiles.d/imgward.conf", "usr/local/etc/nginx/imgward/site.conf",
            "usr/local/etc/logrotate.d/imgward", "usr/local/etc/imgward/imgward.conf.sample"} <= names
    assert all(name.startswith("usr/local/") for name in names)
    other = re.compile(r"(?<!/usr/local)/(?:etc|etc/nginx|sbin|bin|share|var/lib|libexec|usr/\w+)/imgward\b")
    wrong = [f"{path}: {found[0]}" for path in files if path.suffix in (".service", ".conf", ".sample", ".8", ".5")
             for found in other.finditer(path.read_text(encoding="utf-8")) if not found[0].startswith("/etc/nginx/imgward.")]
    assert wrong == []
    make("uninstall")
    assert [path for path in tmp_path.rglob("*") if not path.is_dir() or path.name == "imgward"] == []


def test_the_purge_keeps_the_keys_of_the_database(machine):
    machine.install()
    etc = machine.root / "etc" / "imgward"
    etc.mkdir()
    for name in ("watermark.key", "sealing.key", "signing.keys"):
        (etc / name).write_text("secret")
    assert "keys in /etc/imgward are kept" in machine.purge()
    assert sorted(os.listdir(etc)) == ["sealing.key", "signing.keys", "watermark.key"]
