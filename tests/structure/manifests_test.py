"""packaging/kubernetes/: YAML that kubectl's own types take whole, and that agrees with itself and with docs/capture.md."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tomllib
import unittest

try:
    import yaml
except ImportError:
    yaml = None

SOURCE = pathlib.Path(os.environ.get("LOCKSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
FOLDER = SOURCE / "packaging/kubernetes"
SOCKETS = "/run/lockstep/kineto"


def documents():
    for path in sorted(FOLDER.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            yield path.name, document


def lost(asked, kept, path=""):
    """What of `asked` is not in `kept`: names that the other side's types do not have."""
    if isinstance(asked, dict):
        if not isinstance(kept, dict):
            return [path]
        return [name for key, value in asked.items() for name in
                (lost(value, kept[key], f"{path}.{key}") if key in kept else [f"{path}.{key}"])]
    if isinstance(asked, list):
        if not isinstance(kept, list) or len(kept) < len(asked):
            return [path]
        return [name for index, value in enumerate(asked) for name in lost(value, kept[index], f"{path}[{index}]")]
    return [] if asked == kept else [f"{path}: {asked!r} became {kept!r}"]


@unittest.skipIf(yaml is None, "python3-yaml is not installed")
class ManifestsTest(unittest.TestCase):
    def find(self, file, kind):
        return next(document for name, document in documents() if name == file and document["kind"] == kind)

    def test_every_document_is_an_object_with_a_name(self):
        self.assertLessEqual(4, len(list(FOLDER.glob("*.yaml"))))
        for name, document in documents():
            with self.subTest(name, kind=document.get("kind")):
                self.assertTrue(document["apiVersion"] and document["kind"] and document["metadata"]["name"])

    def test_kubectls_types_take_every_field(self):
        # Where there is no server, kubectl reads the objects that `set env --local` knows into their types, and what
        # has no place in these is not printed again. It knows those with containers.
        if not shutil.which("kubectl"):
            self.skipTest("kubectl is not installed")
        for name, document in documents():
            if document["kind"] not in ("Pod", "DaemonSet"):
                continue
            with self.subTest(name):
                done = subprocess.run(["kubectl", "set", "env", "--local", "-f", "-", "-o", "json", "ADDED=1"],
                                      input=json.dumps(document), capture_output=True, text=True)
                self.assertEqual(0, done.returncode, done.stderr)
                self.assertEqual([], lost(document, json.loads(done.stdout)))

    def test_daemon_and_pods_meet_in_one_folder(self):
        config = tomllib.loads(self.find("daemonset.yaml", "ConfigMap")["data"]["lockstep.toml"])
        self.assertEqual([SOCKETS], config["kineto"]["directories"])
        pod = self.find("training-pod.yaml", "Pod")["spec"]
        variables = {entry["name"]: entry["value"] for entry in pod["containers"][0]["env"]}
        self.assertEqual({"KINETO_USE_DAEMON": "1", "KINETO_IPC_SOCKET_DIR": SOCKETS}, variables)
        self.assertEqual(SOCKETS, pod["containers"][0]["volumeMounts"][0]["mountPath"])
        self.assertEqual(SOCKETS, pod["volumes"][0]["hostPath"]["path"])

    def test_daemon_is_configured_from_what_is_mounted(self):
        config = tomllib.loads(self.find("daemonset.yaml", "ConfigMap")["data"]["lockstep.toml"])
        container = self.find("daemonset.yaml", "DaemonSet")["spec"]["template"]["spec"]["containers"][0]
        mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
        for file in (config["tls"]["certificate"], config["tls"]["key"], config["token"][0]["file"]):
            self.assertIn(str(pathlib.PurePosixPath(file).parent), mounts)
        self.assertIn(config["state"], mounts)
        self.assertIn(container["command"][-1], mounts)
        self.assertEqual(f"0.0.0.0:{container['ports'][0]['hostPort']}", config["listen"][0])

    def test_prometheus_finds_the_daemons_and_may_ask_them(self):
        template = self.find("daemonset.yaml", "DaemonSet")["spec"]["template"]
        monitor = self.find("podmonitor.yaml", "PodMonitor")
        [endpoint] = monitor["spec"]["podMetricsEndpoints"]
        self.check_monitor(monitor, endpoint, template["metadata"]["labels"],
                           [(port["name"], port["containerPort"]) for port in template["spec"]["containers"][0]["ports"]])

    def test_prometheus_finds_their_service_instead(self):
        template = self.find("daemonset.yaml", "DaemonSet")["spec"]["template"]
        service = self.find("servicemonitor.yaml", "Service")
        monitor = self.find("servicemonitor.yaml", "ServiceMonitor")
        [endpoint] = monitor["spec"]["endpoints"]
        self.assertEqual(service["metadata"]["namespace"], monitor["metadata"]["namespace"])
        self.assertLessEqual(service["spec"]["selector"].items(), template["metadata"]["labels"].items())
        [port] = service["spec"]["ports"]
        self.assertIn((port["targetPort"], port["port"]), [(one["name"], one["containerPort"]) for one in template["spec"]["containers"][0]["ports"]])
        self.check_monitor(monitor, endpoint, service["metadata"]["labels"], [(port["name"], port["port"])])

    def test_rules_for_the_operator_are_those_that_are_shipped(self):
        done = subprocess.run([sys.executable, "-c", "import build; print(build.text(), end='')"], cwd=FOLDER, capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(done.stdout, (FOLDER / "prometheusrule.yaml").read_text(encoding="utf-8"), "run packaging/kubernetes/build.py")
        shipped = [group for name in ("lockstep.rules.yml", "lockstep.alerts.yml")
                   for group in yaml.safe_load((SOURCE / "packaging/prometheus" / name).read_text(encoding="utf-8"))["groups"]]
        self.assertEqual(shipped, self.find("prometheusrule.yaml", "PrometheusRule")["spec"]["groups"])

    def check_monitor(self, monitor, endpoint, labels, ports):
        template = self.find("daemonset.yaml", "DaemonSet")["spec"]["template"]
        self.assertEqual(self.find("daemonset.yaml", "DaemonSet")["metadata"]["namespace"], monitor["metadata"]["namespace"])
        self.assertLessEqual(monitor["spec"]["selector"]["matchLabels"].items(), labels.items())
        # The alerts ask for this job.
        self.assertEqual("lockstep", labels[monitor["spec"]["jobLabel"]])
        self.assertIn((endpoint["port"], 9476), ports)
        self.assertEqual(("https", "/metrics"), (endpoint["scheme"], endpoint["path"]))
        [secret] = [volume["secret"]["secretName"] for volume in template["spec"]["volumes"] if volume["name"] == "secret"]
        self.assertEqual({secret}, {endpoint["authorization"]["credentials"]["name"], endpoint["tlsConfig"]["ca"]["secret"]["name"]})
        config = tomllib.loads(self.find("daemonset.yaml", "ConfigMap")["data"]["lockstep.toml"])
        self.assertEqual(endpoint["authorization"]["credentials"]["key"], pathlib.PurePosixPath(config["token"][0]["file"]).name)

    def test_no_container_may_do_more_than_it_needs(self):
        for name, document in documents():
            if document["kind"] not in ("Pod", "DaemonSet"):
                continue
            spec = document["spec"]["template"]["spec"] if document["kind"] == "DaemonSet" else document["spec"]
            for container in spec["containers"]:
                if container["name"] != "lockstepd":
                    continue
                with self.subTest(name):
                    context = container["securityContext"]
                    self.assertFalse(context.get("privileged", False))
                    self.assertFalse(context["allowPrivilegeEscalation"])
                    self.assertEqual(["ALL"], context["capabilities"]["drop"])

    def test_the_node_daemon_has_the_capabilities_of_the_systemd_unit(self):
        unit = (SOURCE / "packaging/systemd/lockstepd.service").read_text(encoding="utf-8")
        [line] = [line for line in unit.splitlines() if line.startswith("CapabilityBoundingSet=")]
        container = self.find("daemonset.yaml", "DaemonSet")["spec"]["template"]["spec"]["containers"][0]
        self.assertEqual(set(line.split("=")[1].split()), {f"CAP_{name}" for name in container["securityContext"]["capabilities"]["add"]})


if __name__ == "__main__":
    unittest.main()
