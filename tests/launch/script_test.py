"""`lockstep script`: what it writes is a shell's or Kubernetes', and runs. SLURM's own judgement: tests/cluster."""

import itertools
import shutil
import unittest

from launch_case import BINARY, DONE, MISUSED, STAND_IN_NSYS, LaunchCase

try:
    import yaml
except ImportError:
    yaml = None

NSYS = ["--profile", "nsys", "--tool", STAND_IN_NSYS]


class ScriptTest(LaunchCase):
    def script(self, *words):
        done = self.run_words([BINARY, "script", *words])
        self.assertEqual(DONE, done.returncode, done.stderr)
        path = self.folder / "job.sh"
        path.write_text(done.stdout)
        return path

    def test_every_script_is_one_of_a_shell(self):
        kinds = (["slurm"], ["pbs"], ["pbs", "--mpi", "openmpi"], ["mpi"], ["mpi", "--mpi", "mpich"])
        profiles = ([], ["--profile", "none"], [*NSYS, "--ranks", "per-node:1", "--name", "%r.%q{HOME}", "--capture-range", "nvtx:a 'b'"])
        starts = (["--start", "torchrun"], ["--start", "direct"])
        for kind, profile, start in itertools.product(kinds, profiles, starts):
            with self.subTest(kind=kind, profile=profile, start=start):
                path = self.script(*kind, "--nodes", "2", "--gpus-per-node", "4", "--module", "a/1", "--env", "X=a 'b'", *profile, *start,
                                   "--", "python", "train.py", "$HOME", "it's")
                checked = self.run_words(["bash", "-n", path])
                self.assertEqual((0, ""), (checked.returncode, checked.stderr))
                if shutil.which("shellcheck"):
                    checked = self.run_words(["shellcheck", "-S", "warning", path])
                    self.assertEqual(0, checked.returncode, checked.stdout)

    @unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun: Debian's openmpi-bin has it")
    def test_scripts_for_mpi_and_pbs_run(self):
        hosts = self.folder / "hosts"
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
        pbs = {"PBS_NODEFILE": str(hosts), "PBS_JOBID": "11.head", "PBS_O_WORKDIR": str(self.folder)}
        for kind, text, words, variables in (("mpi", "localhost slots=4\n", [hosts], {}), ("pbs", "localhost\n" * 4, [], pbs)):
            with self.subTest(kind):
                for path in (self.folder / "notes").iterdir():
                    path.unlink()
                hosts.write_text(text)
                path = self.script(kind, "--mpi", "openmpi", "--start", "direct", "--ranks-per-node", "4", *NSYS, "--ranks", "1,3", "--", *self.rank_command("RANK"))
                done = self.run_words(["bash", path, *words], **root, **variables)
                self.assertEqual(0, done.returncode, done.stdout + done.stderr)
                self.assertIn("nsys.rank3-of-4.", done.stdout)
                self.assertNotIn("nsys.rank2-of-4.", done.stdout)
                self.assertEqual({0, 1, 2, 3}, set(self.notes()))
                path = self.script(kind, "--mpi", "openmpi", *NSYS, "--force", "--out", "failed", "--", "sh", "-c", "exit 7")
                failed = self.run_words(["bash", path, *words], **root, **variables)
                self.assertEqual(7, failed.returncode, failed.stdout + failed.stderr)
                self.assertIn("nsys.rank0-of-1.", failed.stdout)
        self.assertTrue((self.folder / "lockstep-nsys-11").is_dir())

    @unittest.skipUnless(yaml, "there is no PyYAML: Debian's python3-yaml has it")
    def test_kubernetes(self):
        path = self.script("k8s", "--nodes", "3", "--gpus-per-node", "8", "--time", "1:00:00", "--image", "registry/x:1", "--claim", "shared",
                           "--profile", "nsys", "--ranks", "first:8", "--env", "A=\"b\": c", "--", "python", "train.py", "- x: {y}")
        job = yaml.safe_load(path.read_text())
        self.assertEqual(("PyTorchJob", "train", "8", 3600), (job["kind"], job["metadata"]["name"], job["spec"]["nprocPerNode"],
                                                              job["spec"]["runPolicy"]["activeDeadlineSeconds"]))
        replicas = job["spec"]["pytorchReplicaSpecs"]
        self.assertEqual([1, 2], [replicas[kind]["replicas"] for kind in ("Master", "Worker")])
        for replica in replicas.values():
            container = replica["template"]["spec"]["containers"][0]
            self.assertEqual(["torchrun", "--no-python", "lockstep", "run", "--profile=nsys", "--ranks=first:8", "--out", "/reports/train",
                              "--", "python", "train.py", "- x: {y}"], container["command"])
            self.assertEqual({"nvidia.com/gpu": 8}, container["resources"]["limits"])
            self.assertIn({"name": "A", "value": '"b": c'}, container["env"])
            self.assertEqual({mount["name"] for mount in container["volumeMounts"]},
                             {volume["name"] for volume in replica["template"]["spec"]["volumes"]})

    def test_what_makes_no_sense_is_refused(self):
        for words in (["slurms", "--", "x"], ["slurm"], ["slurm", "--time", "5m", "--", "x"], ["slurm", "--nodes", "0", "--", "x"],
                      ["slurm", "--time", "1:99", "--", "x"], ["slurm", "--queue", "a b", "--", "x"], ["slurm", "--mpi", "pals", "--", "x"],
                      ["k8s", "--", "x"], ["mpi", "--queue", "q", "--", "x"], ["slurm", "--stats", "--", "x"], ["slurm", "--start", "x", "--", "x"]):
            with self.subTest(words):
                done = self.run_words([BINARY, "script", *words])
                self.assertEqual((MISUSED, ""), (done.returncode, done.stdout), done.stderr)


if __name__ == "__main__":
    unittest.main()
