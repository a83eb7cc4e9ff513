#include "node/proc/proc_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "node/proc/job_environment.h"

namespace lockstep::proc {
namespace {

using control::JobKind;
using ::testing::HasSubstr;

std::string Zeros(std::string text) {
  std::replace(text.begin(), text.end(), ' ', '\0');
  return text + '\0';
}

ProcessDetails FromEnvironment(const std::string& text) {
  ProcessDetails details;
  ReadJobEnvironment(Zeros(text), &details);
  return details;
}

TEST(EnvironmentTest, FirstValueCounts) {
  EXPECT_EQ(EnvironmentValue(Zeros("AB=1 A=2 A=3 B"), "A"), "2");
  EXPECT_EQ(EnvironmentValue(Zeros("AB=1"), "A"), "");
  EXPECT_EQ(EnvironmentValue("", "A"), "");
}

TEST(TorchVersionTest, VersionIsReadFromItsAssignment) {
  EXPECT_EQ(ParseTorchVersion("__all__ = ['__version__', 'debug']\n__version__ = '2.13.0+cpu'\ndebug = False\n"),
            "2.13.0+cpu");
  EXPECT_EQ(ParseTorchVersion("__version__ = \"2.0.1\"\n"), "2.0.1");
  EXPECT_EQ(ParseTorchVersion("from typing import Optional\n__version__: str = '2.4.0a0+git12'\n"), "2.4.0a0+git12");
  EXPECT_EQ(ParseTorchVersion(""), "");
  EXPECT_EQ(ParseTorchVersion("__version__ = "), "");
  EXPECT_EQ(ParseTorchVersion("__version__ = 'a b'\n"), "");
  EXPECT_EQ(ParseTorchVersion("__version__ = '" + std::string(100, '1') + "'\n"), "");
}

TEST(JobEnvironmentTest, InnermostLauncherGivesTheRankAndTheSchedulerTheJob) {
  // As measured in one rank of each, rank 3 of 4.
  const auto torchrun = FromEnvironment(
      "SLURM_JOB_ID=16 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0 RANK=3 "
      "LOCAL_RANK=1 WORLD_SIZE=4 TORCHELASTIC_RUN_ID=none");
  EXPECT_EQ(torchrun.rank, 3);
  EXPECT_EQ(torchrun.local_rank, 1);
  EXPECT_EQ(torchrun.world_size, 4);
  EXPECT_EQ(torchrun.job_kind, JobKind::kSlurm);
  EXPECT_EQ(torchrun.job_id, "16");
  EXPECT_EQ(torchrun.job_step, "0");
  const auto mpirun = FromEnvironment(
      "SLURM_JOB_ID=16 SLURM_STEP_ID=1 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 OMPI_COMM_WORLD_RANK=3 "
      "OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 PMIX_RANK=3");
  EXPECT_EQ(mpirun.rank, 3);
  EXPECT_EQ(mpirun.world_size, 4);
  const auto hydra = FromEnvironment(
      "SLURM_JOB_ID=16 SLURM_STEP_ID=1 SLURM_PROCID=1 SLURM_LOCALID=0 SLURM_STEP_NUM_TASKS=4 PMI_RANK=3 PMI_SIZE=4 "
      "MPI_LOCALRANKID=1");
  EXPECT_EQ(hydra.rank, 3);
  EXPECT_EQ(hydra.local_rank, 1);
  const auto srun =
      FromEnvironment("SLURM_JOB_ID=16 SLURM_STEP_ID=2 SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=4 SLURM_LOCALID=1");
  EXPECT_EQ(srun.rank, 3);
  EXPECT_EQ(srun.local_rank, 1);
  EXPECT_EQ(srun.world_size, 4);
  EXPECT_EQ(srun.job_step, "2");
}

TEST(JobEnvironmentTest, BatchScriptIsNoRank) {
  const auto batch = FromEnvironment("SLURM_JOB_ID=16 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=4");
  EXPECT_FALSE(batch.rank);
  EXPECT_EQ(batch.job_id, "16");
}

TEST(JobEnvironmentTest, OtherLaunchersAreKnown) {
  EXPECT_EQ(FromEnvironment("MV2_COMM_WORLD_RANK=2 MV2_COMM_WORLD_SIZE=8").rank, 2);
  EXPECT_EQ(FromEnvironment("PALS_RANKID=5 PMI_RANK=5 PALS_LOCAL_RANKID=1").local_rank, 1);
  EXPECT_EQ(FromEnvironment("FLUX_TASK_RANK=5 FLUX_JOB_ID=f2x").job_kind, JobKind::kFlux);
  EXPECT_EQ(FromEnvironment("JSM_NAMESPACE_RANK=5 LSB_JOBID=77").job_kind, JobKind::kLsf);
  EXPECT_EQ(FromEnvironment("PBS_JOBID=13[4].head PMI_RANK=1").job_id, "13[4].head");
  EXPECT_EQ(FromEnvironment("RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 TORCHELASTIC_RUN_ID=run7").job_kind,
            JobKind::kTorchelastic);
  EXPECT_EQ(FromEnvironment("OMPI_COMM_WORLD_RANK=1 PMIX_NAMESPACE=42").job_kind, JobKind::kMpi);
  EXPECT_EQ(FromEnvironment("HOME=/x").job_kind, JobKind::kNone);
}

TEST(JobEnvironmentTest, PodsRankIsNotTheLaunchersRank) {
  // torchrun in an operator's pod: RANK is the pod's.
  const auto launcher = FromEnvironment("KUBERNETES_SERVICE_HOST=10.0.0.1 HOSTNAME=llama-worker-1 RANK=2 WORLD_SIZE=4");
  EXPECT_FALSE(launcher.rank);
  EXPECT_EQ(launcher.job_kind, JobKind::kKubernetes);
  EXPECT_EQ(launcher.job_id, "llama");
}

TEST(JobEnvironmentTest, NonsenseIsUnknown) {
  for (const char* rank : {"", "-1", "x", "3x", "99999999999", "1e3"}) {
    EXPECT_FALSE(FromEnvironment(fmt::format("RANK={} LOCAL_RANK=0", rank)).rank) << rank;
  }
  EXPECT_EQ(FromEnvironment("SLURM_JOB_ID=" + std::string(1000, '7')).job_id.size(), 128u);
  EXPECT_FALSE(FromEnvironment("KINETO_USE_DAEMON=").counts_iterations);
  EXPECT_TRUE(FromEnvironment("KINETO_USE_DAEMON=1").counts_iterations);
  EXPECT_FALSE(FromEnvironment("KINETO_USE_DAEMON=1").has_step_tracer);
  EXPECT_TRUE(FromEnvironment("LOCKSTEP_RUN_CAPTURES=1").has_step_tracer);
}

TEST(JobEnvironmentTest, PodUidIsFoundInBothCgroupLayouts) {
  EXPECT_EQ(FindPodUid("0::/kubepods/burstable/pod0a1b2c3d-0000-1111-2222-333344445555/abc\n"),
            "0a1b2c3d-0000-1111-2222-333344445555");
  EXPECT_EQ(FindPodUid("0::/kubepods.slice/kubepods-pod0a1b2c3d_0000_1111_2222_333344445555.slice/x\n"),
            "0a1b2c3d_0000_1111_2222_333344445555");
  EXPECT_EQ(FindPodUid("0::/user.slice/pod0a1b2c3d-0000-1111-2222-333344445555\n"), "");
}

TEST(SettingsTest, WhatSteersCommunicationIsKeptSortedAndNothingElse) {
  EXPECT_THAT(ReadSettings(Zeros("PATH=/bin NCCL_IB_HCA=mlx5 GLOO_SOCKET_IFNAME=eth0 TORCHELASTIC_RUN_ID=7 TORCH_X=")),
              testing::ElementsAre("GLOO_SOCKET_IFNAME=eth0", "NCCL_IB_HCA=mlx5", "TORCH_X="));
}

TEST(SettingsTest, WhatLooksLikeASecretIsLeftOut) {
  EXPECT_THAT(ReadSettings(Zeros("NCCL_API_KEY=1 TORCH_HUB_TOKEN=2 NCCL_DEBUG")), testing::IsEmpty());
}

TEST(PythonVersionTest, InterpretersNameHasIt) {
  EXPECT_EQ(PythonVersionOf("/usr/bin/python3.11"), "3.11");
  EXPECT_EQ(PythonVersionOf("/opt/python3.13t (deleted)"), "3.13");
  EXPECT_EQ(PythonVersionOf("python3"), "");
  EXPECT_EQ(PythonVersionOf("/usr/bin/perl"), "");
}

TEST(CommandTextTest, SecretsAreHidden) {
  EXPECT_EQ(CommandText(Zeros("python train.py --hf-token=abc --lr 3")), "python train.py --hf-token=*** --lr 3");
  EXPECT_EQ(CommandText(Zeros("python t.py --password hunter2 --lr 3")), "python t.py --password *** --lr 3");
  EXPECT_EQ(CommandText(Zeros("t WANDB_API_KEY=0123 --max-tokens 5")), "t WANDB_API_KEY=*** --max-tokens 5");
  EXPECT_EQ(CommandText(Zeros("t hf_abcdefghijklmnop")), "t ***");
  EXPECT_EQ(CommandText(Zeros("t --data https://u:pw@h/x --tokenizer llama")),
            "t --data https://***@h/x --tokenizer llama");
}

TEST(CommandTextTest, TextIsPrintableUtf8AndBounded) {
  EXPECT_EQ(CommandText(std::string("a\nb\0\x1b[1m\0\xff\0\xc3\xa4\0", 14)), "a?b ?[1m ? \xc3\xa4");
  const std::string text = CommandText(Zeros(std::string(5000, 'x')));
  EXPECT_EQ(text.size(), 1024u);
  EXPECT_LE(CommandText(std::string(1023, 'x') + "\xc3\xa4").size(), 1024u);
}

TEST(ProcReaderTest, OwnProcessIsRead) {
  const ProcReader reader("/proc");
  const auto details = reader.Read(::getpid(), 0);
  ASSERT_TRUE(details);
  EXPECT_GT(details->start_ticks, 0u);
  EXPECT_EQ(details->device, "cpu");
  EXPECT_THAT(details->command, HasSubstr("lockstep_node_proc_test"));
  EXPECT_TRUE(reader.IsAlive(::getpid(), details->start_ticks));
  EXPECT_FALSE(reader.IsAlive(::getpid(), details->start_ticks + 1));
  EXPECT_FALSE(reader.Read(INT32_MAX, 0));
}

TEST(ProcReaderTest, ProcessThatStartedAfterItsDatagramIsAnother) {
  EXPECT_FALSE(ProcReader("/proc").Read(::getpid(), 1));
}

/// A made /proc with one process, whose torch is at `torch` in its own root.
class MadeProc : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = "/tmp/lsk-proc-XXXXXX";
    root_ = ::mkdtemp(path.data());
    std::filesystem::create_directories(root_ + "/77/fd");
    std::filesystem::create_directories(root_ +
                                        "/77/root"
                                        "/venv/torch/lib");
    Write("77/stat", "77 (python) S 1 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 500 22");
    Write("77/maps",
          "7f00-7f01 r-xp 00000000 08:01 5   /usr/lib/libc.so.6\n7f02-7f03 r-xp 0 08:01 6   "
          "/venv/torch/lib/libtorch_cpu.so\n");
    Write("77/cmdline", Zeros("python train.py"));
    Write(
        "77/root"
        "/venv/torch/version.py",
        "__version__ = '2.6.0'\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& name, const std::string& text) { std::ofstream(root_ + "/" + name) << text; }
  void Open(const std::string& device) { ::symlink(device.c_str(), (root_ + "/77/fd/9").c_str()); }
  ProcessDetails Read() { return ProcReader(root_).Read(77, 0).value_or(ProcessDetails{}); }

  std::string root_;
};

TEST_F(MadeProc, TorchVersionIsReadInTheProcessesOwnRoot) {
  EXPECT_EQ(Read().torch_version, "2.6.0");
  EXPECT_EQ(Read().start_ticks, 500u);
}

TEST_F(MadeProc, LinksDoNotLeadOutOfTheRoot) {
  Write("secret", "__version__ = '6.6.6'\n");
  std::filesystem::remove(root_ +
                          "/77/root"
                          "/venv/torch/version.py");
  ::symlink((root_ + "/secret").c_str(), (root_ + "/77/root"
                                                  "/venv/torch/version.py")
                                             .c_str());
  EXPECT_EQ(Read().torch_version, "");
  std::filesystem::remove_all(root_ +
                              "/77/root"
                              "/venv/torch");
  Write("version.py", "__version__ = '6.6.6'\n");
  ::symlink(root_.c_str(), (root_ + "/77/root"
                                    "/venv/torch")
                               .c_str());
  EXPECT_EQ(Read().torch_version, "");
  ::unlink((root_ + "/77/root"
                    "/venv/torch")
               .c_str());
  ::symlink("../../..", (root_ + "/77/root"
                                 "/venv/torch")
                            .c_str());
  EXPECT_EQ(Read().torch_version, "");
}

TEST_F(MadeProc, PipeInPlaceOfTheVersionHoldsNobodyUp) {
  std::filesystem::remove(root_ +
                          "/77/root"
                          "/venv/torch/version.py");
  ASSERT_EQ(::mkfifo((root_ + "/77/root"
                              "/venv/torch/version.py")
                         .c_str(),
                     0600),
            0);
  EXPECT_EQ(Read().torch_version, "");
}

TEST_F(MadeProc, DeviceIsWhatItHoldsOpen) {
  EXPECT_EQ(Read().device, "cpu");
  Open("/dev/nvidiactl");
  EXPECT_EQ(Read().device, "cpu");
  ::unlink((root_ + "/77/fd/9").c_str());
  Open("/dev/nvidia3");
  EXPECT_EQ(Read().device, "cuda");
  ::unlink((root_ + "/77/fd/9").c_str());
  Open("/dev/dri/renderD128");
  EXPECT_EQ(Read().device, "xpu");
  ::symlink("/dev/kfd", (root_ + "/77/fd/8").c_str());
  EXPECT_EQ(Read().device, "rocm");
}

TEST_F(MadeProc, LaunchersAreKnownByTheirCommand) {
  for (const char* command :
       {"/venv/bin/python3 /venv/bin/torchrun --nproc-per-node 4 train.py", "torchrun train.py",
        "python -u -W ignore -m torch.distributed.run train.py", "python3.11 -m torch.distributed.launch train.py",
        "python -X dev /opt/bin/accelerate launch train.py", "deepspeed train.py"}) {
    Write("77/cmdline", Zeros(command));
    EXPECT_TRUE(Read().launcher) << command;
  }
  for (const char* command :
       {"python train.py torchrun", "python -u train.py -m torch.distributed.run", "train -m torchrun",
        "python -m train torchrun", "python", "python -W", "python -m", "bash torchrun"}) {
    Write("77/cmdline", Zeros(command));
    EXPECT_FALSE(Read().launcher) << command;
  }
}

TEST_F(MadeProc, WorkersAreKnownByTheirName) {
  EXPECT_FALSE(Read().helper);
  Write("77/comm", "pt_data_worker\n");
  EXPECT_TRUE(Read().helper);
  Write("77/comm", "python\n");
  Write("77/cmdline", Zeros("python /venv/torch/_inductor/compile_worker/__main__.py"));
  EXPECT_TRUE(Read().helper);
}

}  // namespace
}  // namespace lockstep::proc
