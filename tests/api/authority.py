"""A certificate authority for tests, using the openssl program."""
import os
import ssl
import subprocess
import time

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


class Authority:
    """Issues certificates into a test's folder; file is the authority's certificate."""

    def __init__(self, folder):
        self.folder = str(folder)
        self.file = self.path("ca.pem")
        self.openssl("req", "-x509", *KEY, "-keyout", self.path("ca.key"), "-out", self.file, "-subj", "/CN=imgward-test", "-days", "30")

    def path(self, name):
        return os.path.join(self.folder, name)

    def openssl(self, *words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=60)

    def issue(self, name, host="IP:127.0.0.1", days=30):
        """Returns the files of a new certificate and its key. host is the subjectAltName; with 0 days the certificate has
        expired."""
        certificate, key, request, extensions = (self.path(name + end) for end in (".pem", ".key", ".csr", ".ext"))
        with open(extensions, "w", encoding="ascii") as file:
            file.write(f"subjectAltName={host}\n")
        self.openssl("req", *KEY, "-keyout", key, "-out", request, "-subj", "/CN=" + name)
        self.openssl("x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self.path("ca.key"), "-CAcreateserial",
                     "-days", str(days), "-extfile", extensions, "-out", certificate)
        if days == 0:
            time.sleep(1.1)  # until the second in which it ends is over
        return certificate, key

    def self_signed(self, name):
        certificate, key = self.path(name + ".pem"), self.path(name + ".key")
        self.openssl("req", "-x509", *KEY, "-keyout", key, "-out", certificate, "-subj", "/CN=" + name, "-days", "30",
                     "-addext", "subjectAltName=IP:127.0.0.1")
        return certificate, key


def served(pair):
    """Returns an SSL context for a server with that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    return context
