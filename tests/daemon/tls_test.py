"""TLS: certificates of servers and clients, good ones and each kind of bad one; tokens over it; renewal without a restart."""

import http.client
import json
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import unittest

from daemon_process import DAEMON, Daemon, ask, write_config, write_token
from waiting import PATIENCE_S


@unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
class TlsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="lkd-", dir="/tmp")
        cls.addClassCleanup(scratch.cleanup)
        cls.made = pathlib.Path(scratch.name)
        for authority in ("ca", "other-ca"):
            cls.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                        f"/CN={authority}", "-keyout", f"{authority}.key", "-out", f"{authority}.pem")
        cls.issue("server", "node", "subjectAltName=IP:127.0.0.1")
        cls.issue("renewed", "node", "subjectAltName=IP:127.0.0.1")
        cls.issue("ops", "ops.cluster")
        cls.issue("stranger", "stranger.cluster")
        cls.issue("forged", "ops.cluster", authority="other-ca")
        cls.issue("expired", "ops.cluster", days="-1")

    @classmethod
    def openssl(cls, *words):
        subprocess.run(["openssl", *words], cwd=cls.made, check=True, capture_output=True)

    @classmethod
    def issue(cls, name, common_name, extension="basicConstraints=CA:FALSE", authority="ca", days="2"):
        cls.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={common_name}",
                    "-keyout", f"{name}.key", "-out", f"{name}.csr")
        (cls.made / "extension").write_text(extension)
        cls.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key", "-CAcreateserial",
                    "-days", days, "-extfile", "extension", "-out", f"{name}.pem")

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="lkd-", dir="/tmp")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        for name in ("server.pem", "server.key", "ca.pem"):
            shutil.copy(self.made / name, self.folder / name)

    def start(self, client_authority=True, extra="", port="0"):
        self.token, token_file = write_token(self.folder, "reader")
        authority = f'client_authority = "{self.folder}/ca.pem"\n' if client_authority else ""
        self.config = write_config(self.folder, f"""{extra}
[tls]
certificate = "{self.folder}/server.pem"
key = "{self.folder}/server.key"
{authority}
[[token]]
name = "reader"
role = "read"
file = "{token_file}"
[[certificate]]
name = "ops.cluster"
role = "admin"
""")
        return Daemon(self, "--config", self.config, folder=self.folder, port=port)

    def context(self, client=None, authority="ca"):
        context = ssl.create_default_context(cafile=self.made / f"{authority}.pem")
        if client:
            context.load_cert_chain(self.made / f"{client}.pem", self.made / f"{client}.key")
        return context

    def test_tokens_and_certificates_say_who_asks(self):
        port = self.start().ports[0]
        status = lambda method, path, body=None, **options: ask(port, method, path, body, **options)[0]
        self.assertEqual(200, status("GET", "/api/v1/status", tls=self.context(), token=self.token))
        self.assertEqual(403, status("POST", "/api/v1/captures", {}, tls=self.context(), token=self.token))
        self.assertEqual(401, status("GET", "/api/v1/status", tls=self.context(), token=self.token[:-1] + "x"))
        self.assertEqual(200, status("GET", "/api/v1/status", tls=self.context("ops")))
        self.assertEqual(201, status("POST", "/api/v1/captures", {"wait_ns": 1}, tls=self.context("ops")))
        # Verified, and named nowhere.
        self.assertEqual(401, status("GET", "/api/v1/status", tls=self.context("stranger")))

    def test_processes_are_looked_at_over_tls_by_whose_certificate_may(self):
        port = self.start().ports[0]
        process = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def hang(client):
            done = subprocess.run(
                [DAEMON.with_name("lockstep"), "hang", "--host", f"127.0.0.1:{port}", "--ca", self.made / "ca.pem", "--cert",
                 self.made / f"{client}.pem", "--key", self.made / f"{client}.key", "--pid", str(process.pid), "--keep",
                 self.folder / client], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            return done.returncode, done.stderr

        status, said = hang("ops")
        self.assertIn(status, (0, 4), said)
        kept = json.loads((self.folder / "ops" / "evidence.json").read_text(encoding="utf-8"))
        self.assertEqual([process.pid], [one["pid"] for one in kept["processes"]])
        self.assertEqual(1, hang("stranger")[0])
        self.assertFalse((self.folder / "stranger").exists())

    def test_certificates_that_do_not_verify_are_refused(self):
        port = self.start().ports[0]
        for client in ("forged", "expired"):
            with self.assertRaises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected), msg=client):
                ask(port, "GET", "/api/v1/status", tls=self.context(client))
        with self.assertRaises(ssl.SSLError):  # The other way round: a client that trusts someone else.
            ask(port, "GET", "/api/v1/status", tls=self.context(authority="other-ca"))

    def test_old_versions_and_plain_text_are_refused(self):
        port = self.start().ports[0]
        old = self.context()
        old.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        with self.assertRaises((ssl.SSLError, ConnectionError, ValueError)):
            ask(port, "GET", "/api/v1/status", tls=old)
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as raw:
            raw.sendall(b"GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try:
                said = raw.recv(65536)
            except ConnectionError:
                said = b""
        self.assertNotIn(b"HTTP/1.1 200", said)

    def test_a_renewed_certificate_is_served_without_a_restart(self):
        daemon = self.start()
        def serial():
            with socket.create_connection(("127.0.0.1", daemon.ports[0]), timeout=PATIENCE_S) as raw:
                with self.context().wrap_socket(raw, server_hostname="127.0.0.1") as tls:
                    return tls.getpeercert()["serialNumber"]
        before = serial()
        kept = http.client.HTTPSConnection("127.0.0.1", daemon.ports[0], context=self.context(), timeout=PATIENCE_S)
        kept.request("GET", "/-/healthy")
        kept.getresponse().read()
        for kind in ("pem", "key"):
            shutil.copy(self.made / f"renewed.{kind}", self.folder / f"server.{kind}")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for_line("read again")
        self.assertNotEqual(before, serial())
        kept.request("GET", "/-/healthy")
        self.assertEqual(200, kept.getresponse().status)
        kept.close()
        renewed = serial()
        (self.folder / "server.pem").write_text("nonsense")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for_line("settings are unchanged")
        self.assertEqual(renewed, serial())

    def test_the_network_is_not_served_without_tls_and_callers(self):
        for flags, text, said in (([], "", "needs [tls]"),
                                  ([], '[tls]\ncertificate = "{0}/server.pem"\nkey = "{0}/server.key"\n', "needs a [[token]]")):
            config = write_config(self.folder, text.format(self.folder))
            daemon = Daemon(self, "--config", config, "--listen", "0.0.0.0:0", *flags, port="none", expect_start=False)
            self.assertEqual(1, daemon.process.wait(60))
            self.assertIn(said, daemon.process.stderr.read())
        daemon = Daemon(self, "--listen", "0.0.0.0:0", "--insecure-no-auth", port="none")
        daemon.wait_for_line("insecure_no_auth")
        self.assertEqual(200, ask(daemon.ports[0], "GET", "/api/v1/status")[0])


if __name__ == "__main__":
    unittest.main()
