#include "ingest/nccl/nccl_log.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>

namespace lockstep::ingest {
namespace {

using evidence::NcclJob;
using evidence::NcclTransport;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

/// A line of one rank's, on node-a or (from rank 2) node-b.
std::string Line(int rank, const std::string& message, const std::string& level = "INFO") {
  const std::string host = rank < 2 ? "node-a" : "node-b";
  return host + ":" + std::to_string(100 + rank % 2) + ":" + std::to_string(200 + rank) + " [" +
         std::to_string(rank % 2) + "] NCCL " + level + " " + message + "\n";
}

std::string Init(int rank, const std::string& state, int size = 4, const std::string& id = "0xabc") {
  return Line(rank, "ncclCommInitRank comm 0x7f00" + std::to_string(rank) + " rank " + std::to_string(rank) +
                        " nranks " + std::to_string(size) + " cudaDev 0 nvmlDev 0 busId 1" + std::to_string(rank) +
                        "000 commId " + id + " - Init " + state);
}

std::string AllInit() {
  std::string text;
  for (int rank = 0; rank < 4; ++rank) text += Init(rank, "START") + Init(rank, "COMPLETE");
  return text;
}

NcclJob Read(const std::string& text) {
  std::vector<NcclJob> logs;
  logs.push_back(ReadNcclLog(text, "a.log"));
  return MergeNcclLogs(std::move(logs));
}

const evidence::NcclLogFinding* Find(const std::vector<evidence::NcclLogFinding>& findings, const std::string& kind) {
  const auto found =
      std::find_if(findings.begin(), findings.end(), [&](const auto& finding) { return finding.kind == kind; });
  return found == findings.end() ? nullptr : &*found;
}

TEST(NcclLogTest, EqualPidsOnTwoHostsAreTwoProcesses) {
  const NcclJob job = Read(AllInit());
  ASSERT_THAT(job.processes, SizeIs(4));
  ASSERT_THAT(job.communicators, SizeIs(1));
  EXPECT_EQ(job.communicators[0].rank_count, 4);
  EXPECT_THAT(job.communicators[0].members, SizeIs(4));
  EXPECT_THAT(FindNcclProblems(job), IsEmpty());
}

TEST(NcclLogTest, AHealthyJobOfAnOldVersionJoinsBySize) {
  std::string text;
  for (int rank = 0; rank < 4; ++rank) {
    text += Line(rank, "Trees [0] " + std::to_string(rank + 1) + "/-1/-1->" + std::to_string(rank) + "->" +
                           std::to_string(rank - 1));
    text += Line(rank, "comm 0x7f00 rank " + std::to_string(rank) + " nranks 4 cudaDev 0 busId " +
                           std::to_string(rank) + "d0 - Init COMPLETE");
  }
  const NcclJob job = Read(text);
  ASSERT_THAT(job.communicators, SizeIs(1));
  EXPECT_THAT(job.communicators[0].members, SizeIs(4));
  EXPECT_EQ(job.members[1].trees[0].up, 0);
  EXPECT_THAT(job.members[1].trees[0].down, ElementsAre(2));
  EXPECT_EQ(job.processes[3].rank, 3);
}

TEST(NcclLogTest, SplitsWithoutAnIdJoinByParentNumberAndColour) {
  std::string text = AllInit();
  for (int rank = 0; rank < 4; ++rank) {
    text += Line(rank, "ncclCommSplit comm 0x8f00" + std::to_string(rank) + " rank " + std::to_string(rank / 2) +
                           " nranks 2 cudaDev 0 nvmlDev 0 busId 1000 parent 0x7f00" + std::to_string(rank) +
                           " splitCount 1 color " + std::to_string(rank % 2) + " key 0- Init START");
    text += Line(rank, "ncclCommSplit comm 0x8f00" + std::to_string(rank) + " rank " + std::to_string(rank / 2) +
                           " nranks 2 cudaDev 0 nvmlDev 0 busId 1000 parent 0x7f00" + std::to_string(rank) +
                           " splitCount 1 color " + std::to_string(rank % 2) + " key 0 - Init COMPLETE");
  }
  const NcclJob job = Read(text);
  ASSERT_THAT(job.communicators, SizeIs(3));
  for (size_t i = 1; i < 3; ++i) {
    ASSERT_THAT(job.communicators[i].members, SizeIs(2));
    EXPECT_EQ(job.members[job.communicators[i].members[0]].rank, 0);
    EXPECT_EQ(job.members[job.communicators[i].members[1]].rank, 1);
  }
}

TEST(NcclLogTest, ConnectionsTellTransportAdapterAndGpuDirect) {
  const NcclJob job = Read(Init(0, "START", 2) + Line(0, "Channel 07/0 : 0[0] -> 1[1] via P2P/CUMEM") +
                           Line(0, "Channel 01/0 : 0[0] -> 1[1] [send] via NET/IB/3(2)/GDRDMA/Shared") +
                           Line(0, "Channel 02 : 7[a01d0] -> 6[a01c0] [receive] via NET/AWS Libfabric/1") +
                           Line(0, "Channel 01 : 0[0] -> 1[1] via SHM/direct/direct"));
  ASSERT_THAT(job.members, SizeIs(1));
  const auto& connections = job.members[0].connections;
  ASSERT_THAT(connections, SizeIs(4));
  EXPECT_EQ(connections[0].transport, NcclTransport::kP2p);
  EXPECT_EQ(job.texts[connections[0].detail], "CUMEM");
  EXPECT_EQ(connections[1].transport, NcclTransport::kNetwork);
  EXPECT_TRUE(connections[1].gpu_direct);
  EXPECT_EQ(connections[1].net_device, 3);
  EXPECT_EQ(connections[1].proxy, 2);
  EXPECT_EQ(job.texts[connections[2].detail], "AWS Libfabric");
  EXPECT_EQ(connections[2].direction, evidence::NcclDirection::kReceive);
  EXPECT_FALSE(connections[2].gpu_direct);
  EXPECT_EQ(connections[3].transport, NcclTransport::kSharedMemory);
}

TEST(NcclLogTest, RingsTreesCountsAndTimingsAreRead) {
  const NcclJob job = Read(
      Init(0, "START", 2) + Line(0, "Channel 00/02 : 0 1") + Line(0, "Tree 0 : -1 -> 0 -> 1/-1/-1") +
      Line(0, "24 coll channels, 0 collnet channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per peer") +
      Line(0, "Init timings - ncclCommInitRank: rank 0 nranks 2 total 2.13 (kernels 0.17, bootstrap 1.93)"));
  const auto& member = job.members.at(0);
  EXPECT_THAT(member.rings.at(0), ElementsAre(0, 1));
  EXPECT_THAT(member.trees.at(0).down, ElementsAre(1));
  EXPECT_THAT(member.channel_counts, ElementsAre(Pair("coll", 24), Pair("collnet", 0), Pair("nvls", 16),
                                                 Pair("p2p", 32), Pair("p2p_per_peer", 32)));
  EXPECT_EQ(member.init_ns, 2'130'000'000);
  EXPECT_THAT(member.init_phases_ns, ElementsAre(Pair("kernels", 170'000'000), Pair("bootstrap", 1'930'000'000)));
}

TEST(NcclLogTest, AProcessTellsVersionsInterfacesAndSettings) {
  const NcclJob job =
      Read(Line(0, "NCCL version 2.26.2+cuda12.2") + Line(0, "cudaDriverVersion 12080") +
           Line(0, "Bootstrap: Using eth0:10.0.92.140<0>") + Line(0, "NCCL_SHM_DISABLE set by environment to 1.") +
           Line(0, "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>") +
           Line(0, "[Rank 0] Using network IB") + "NCCL version 2.9.9+cuda11.2\n");
  const evidence::NcclProcess& process = job.processes.at(0);
  EXPECT_EQ(process.version, "2.26.2+cuda12.2");
  EXPECT_EQ(process.driver_version, "12.8");
  EXPECT_EQ(process.bootstrap.name, "eth0");
  EXPECT_EQ(process.bootstrap.address, "10.0.92.140");
  ASSERT_THAT(process.adapters, SizeIs(2));
  EXPECT_EQ(process.adapters[1].name, "mlx5_1");
  EXPECT_EQ(process.adapters[1].link, "RoCE");
  EXPECT_EQ(process.settings.at(0).value, "1");
  EXPECT_EQ(process.network, "IB");
}

TEST(NcclLogTest, EveryLineIsCountedOnce) {
  const NcclJob job = Read("hello\n" + Line(0, "Using network IB") + Line(0, "a line that nobody knows") + "\n" +
                           Line(0, "Some call", "WARN"));
  EXPECT_EQ(job.lines.nccl, 2);
  EXPECT_EQ(job.lines.unknown, 1);
  EXPECT_EQ(job.lines.other, 2);
  EXPECT_THAT(job.unknown_samples, ElementsAre("a.log:3: a line that nobody knows"));
}

TEST(NcclLogTest, ErrorsSayWhatTheyMeanAndWhereTheyPoint) {
  const std::string time = "[2026-11-21 03:35:23] ";
  const NcclJob job = Read(
      AllInit() + Line(0, "Bootstrap : Using eth0:10.0.0.1<0>") + "[2026-11-21 03:35:25] " +
      Line(2, "NET/IB : Got completion from peer 10.0.0.1<36406> with status=5 opcode=0 len=0 vendor err 249", "WARN") +
      time +
      Line(1, "NET/IB: Got completion from peer 10.0.0.2<5> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=1", "WARN") +
      time + Line(3, "HINT: NCCL_IB_TIMEOUT is too short") + Line(3, "transport/net.cc:1362 -> 6 [Progress Thread]"));
  const auto findings = FindNcclProblems(job);
  ASSERT_THAT(findings, SizeIs(testing::Ge(2)));
  EXPECT_EQ(findings[0].kind, "ib_completion");
  EXPECT_TRUE(findings[0].first);
  EXPECT_THAT(findings[0].ranks, ElementsAre(1));
  EXPECT_EQ(findings[0].peer, "10.0.0.2<5>");
  EXPECT_TRUE(evidence::IsTransportError(findings[0]));
  EXPECT_THAT(findings[0].text, HasSubstr("retry exceeded (12)"));
  EXPECT_EQ(findings[0].time_unix_ns, 1795232123000000000);
  const auto echo = std::find_if(findings.begin(), findings.end(),
                                 [](const auto& f) { return f.text.find("flushed") != std::string::npos; });
  ASSERT_NE(echo, findings.end());
  EXPECT_EQ(echo->severity, "warning");
  EXPECT_FALSE(evidence::IsTransportError(*echo));
  EXPECT_THAT(echo->text, HasSubstr("where rank 0 is"));
  EXPECT_NE(Find(findings, "call_failed"), nullptr);
}

struct ErrorCase {
  const char* text;
  const char* kind;
  const char* level = "WARN";
};

class NcclErrorTest : public testing::TestWithParam<ErrorCase> {};

TEST_P(NcclErrorTest, IsOfItsKind) {
  const NcclJob job = Read(Line(0, GetParam().text, GetParam().level));
  ASSERT_THAT(job.errors, SizeIs(1));
  EXPECT_EQ(job.errors[0].kind, GetParam().kind);
}

INSTANTIATE_TEST_SUITE_P(
    Catalogue, NcclErrorTest,
    testing::Values(
        ErrorCase{"NET/IB : Got completion from peer 10.0.0.1<36406> with error 12, opcode 0, len 0", "ib_completion"},
        ErrorCase{"NET/IB : mlx5_0:1 async fatal event: port error", "ib_event"},
        ErrorCase{"NET/IB: Device 2 marked as failed. Initiating recovery? Yes (send comm=0x1)", "ib_device_failed"},
        ErrorCase{"Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1, curr state INIT",
                  "ib_route"},
        ErrorCase{"Call to ibv_reg_mr failed with error Cannot allocate memory", "ib_memory"},
        ErrorCase{"socketProgress: Connection closed by remote peer node-3<41234>", "socket_closed"},
        ErrorCase{"Net : Connection closed by remote peer", "socket_closed"},
        ErrorCase{"socketProgressOpt: Call to recv from 10.0.0.5<41234> failed : Connection reset by peer",
                  "socket_reset"},
        ErrorCase{"socketPollConnect: connect to 10.0.0.5<50001> returned Connection refused, retrying (3/34) after "
                  "sleep for 300 msec",
                  "socket_connect_retry", "INFO"},
        ErrorCase{"socketPollConnect: connect to 10.0.0.5<50001> returned Connection refused, exceeded error retry "
                  "count after 35 attempts",
                  "socket_connect_failed"},
        ErrorCase{"NET/Socket : peer 10.0.0.5<1> message truncated : receiving 2097152 bytes instead of 1048576.",
                  "size_mismatch"},
        ErrorCase{"Cuda failure 'out of memory'", "cuda"},
        ErrorCase{"P2P is disabled between NVLINK connected GPUs 1 and 0. This is probably due to a hardware issue",
                  "nvlink"},
        ErrorCase{"Error: failed to extend /dev/shm/nccl-XXXX to 4194660 bytes, error: No space left on device (28)",
                  "shared_memory"},
        ErrorCase{"Mismatched NCCL version detected : rank 3 version 22707 rank 0 version 22703", "version_mismatch"},
        ErrorCase{"Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1a000", "duplicate_gpu"},
        ErrorCase{"Detected mixed local Net device counts across ranks (min 1, max 8). Set NCCL_IGNORE_NET_MISMATCH=1",
                  "net_device_mismatch"},
        ErrorCase{"NET/OFI Request 0x1 completed with error. RC: 113 Error: unreachable", "ofi"},
        ErrorCase{"something new", "other_warning"}));

TEST(NcclProblemsTest, VersionsNetworksInterfacesAndSettingsMustAgree) {
  std::string text = AllInit();
  for (int rank = 0; rank < 4; ++rank) {
    text += Line(rank, rank == 3 ? "NCCL version 2.27.7+cuda12.9" : "NCCL version 2.27.3+cuda12.9");
    text += Line(rank, rank == 2 ? "Using network Socket" : "Using network IB");
    text += Line(rank, rank == 1 ? "Bootstrap: Using docker0:172.17.0.1<0>" : "Bootstrap: Using eth0:10.0.0.1<0>");
    text += Line(rank, rank == 0 ? "NCCL_ALGO set by environment to Tree" : "NCCL_ALGO set by environment to Ring");
  }
  const auto findings = FindNcclProblems(Read(text));
  const std::vector<std::pair<const char*, int>> expected = {
      {"version_mismatch", 3}, {"network_mismatch", 2}, {"interface_mismatch", 1}, {"environment_mismatch", 0}};
  for (const auto& [kind, rank] : expected) {
    const auto* finding = Find(findings, kind);
    ASSERT_NE(finding, nullptr) << kind;
    EXPECT_THAT(finding->ranks, ElementsAre(rank)) << kind;
    EXPECT_EQ(finding->file, "a.log");
    EXPECT_GT(finding->line, 0) << kind;
    EXPECT_FALSE(finding->remedy.empty()) << kind;
  }
}

TEST(NcclProblemsTest, ARankThatNeverStartsIsMissing) {
  const auto findings = FindNcclProblems(Read(Init(0, "START") + Init(1, "START") + Init(3, "START")));
  const auto* finding = Find(findings, "missing_rank");
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->ranks, ElementsAre(2));
  EXPECT_THAT(finding->text, HasSubstr("3 of 4 ranks"));
}

TEST(NcclProblemsTest, AStartWithoutItsEndIsTold) {
  std::string text = AllInit() + Init(2, "START", 4, "0xdef");
  for (const int rank : {0, 1, 3}) text += Init(rank, "START", 4, "0xdef") + Init(rank, "COMPLETE", 4, "0xdef");
  const auto findings = FindNcclProblems(Read(text));
  const auto* finding = Find(findings, "init_incomplete");
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->ranks, ElementsAre(2));
}

std::string Collective(int rank, const std::string& name, const std::string& op_count, const std::string& rest) {
  return Line(rank, name + ": opCount " + op_count + " sendbuff 0x1 recvbuff 0x2 " + rest + " comm 0x7f00" +
                        std::to_string(rank) + " [nranks=4] stream 0x4");
}

TEST(NcclProblemsTest, CollectivesThatDifferAreFoundByCommunicatorAndCount) {
  std::string text = AllInit();
  for (int rank = 0; rank < 4; ++rank) {
    text += Collective(rank, "AllReduce", "3e", "count 1 datatype 7 op 0 root 0");
    text += Collective(rank, "AllReduce", "3f",
                       rank == 2 ? "count 512 datatype 7 op 0 root 0" : "count 1024 datatype 7 op 0 root 0");
    text += Collective(rank, "Send", "3f", "count " + std::to_string(rank) + " datatype 7 op 0 root 0");
    if (rank != 3) text += Collective(rank, "AllGather", "40", "count 8 datatype 9 op 0 root 0");
  }
  const auto findings = FindNcclProblems(Read(text));
  const auto* mismatch = Find(findings, "collective_mismatch");
  ASSERT_NE(mismatch, nullptr);
  EXPECT_THAT(mismatch->ranks, ElementsAre(2));
  EXPECT_THAT(mismatch->text, HasSubstr("Collective 63 (opCount 3f)"));
  EXPECT_THAT(mismatch->text, HasSubstr("AllReduce of 512 float32, sum on rank 2"));
  const auto* fewer = Find(findings, "fewer_collectives");
  ASSERT_NE(fewer, nullptr);
  EXPECT_THAT(fewer->ranks, ElementsAre(3));
}

TEST(NcclProblemsTest, ChannelCountsAndGpuDirectMustAgree) {
  std::string text = AllInit();
  for (int rank = 0; rank < 4; ++rank) {
    text += Line(rank, rank == 1 ? "8 coll channels, 8 p2p channels, 1 p2p channels per peer"
                                 : "16 coll channels, 8 p2p channels, 1 p2p channels per peer");
    text += Line(rank, "Channel 00/0 : " + std::to_string(rank) + "[0] -> " + std::to_string((rank + 1) % 4) +
                           "[1] [send] via NET/IB/0" + (rank == 3 ? "" : "/GDRDMA"));
  }
  const auto findings = FindNcclProblems(Read(text));
  ASSERT_NE(Find(findings, "channel_mismatch"), nullptr);
  EXPECT_THAT(Find(findings, "channel_mismatch")->ranks, ElementsAre(1));
  ASSERT_NE(Find(findings, "gpu_direct_mismatch"), nullptr);
  EXPECT_THAT(Find(findings, "gpu_direct_mismatch")->ranks, ElementsAre(3));
}

TEST(NcclProblemsTest, SocketOnAMachineWithAdaptersIsTold) {
  const auto findings = FindNcclProblems(
      Read(Line(0, "NET/IB : Using [0]mlx5_0:1/IB; OOB eth0:10.0.0.1<0>") + Line(0, "Using network Socket")));
  ASSERT_NE(Find(findings, "socket_network"), nullptr);
  EXPECT_THAT(Find(findings, "socket_network")->text, HasSubstr("mlx5_0"));
}

TEST(NcclProblemsTest, TheOrderOfFilesChangesNothing) {
  std::vector<NcclJob> forth, back;
  std::vector<std::pair<std::string, std::string>> files;
  for (int rank = 0; rank < 4; ++rank) {
    files.emplace_back("rank" + std::to_string(rank), Init(rank, "START") + (rank == 1 ? "" : Init(rank, "COMPLETE")));
  }
  for (const auto& [name, text] : files) forth.push_back(ReadNcclLog(text, name));
  std::reverse(files.begin(), files.end());
  for (const auto& [name, text] : files) back.push_back(ReadNcclLog(text, name));
  const auto a = FindNcclProblems(MergeNcclLogs(std::move(forth))),
             b = FindNcclProblems(MergeNcclLogs(std::move(back)));
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].text + a[i].file, b[i].text + b[i].file);
}

TEST(NcclLogTest, BinaryBytesAndHugeLinesDoNoHarm) {
  std::string text(3 << 20, '\0');
  text += "\n" + std::string(2 << 20, 'x') + " " + Line(0, "Using network IB");
  text += Line(0, std::string(5000, 'y')) + "\xff\xfe NCCL INFO \x01\n";
  const NcclJob job = Read(text);
  EXPECT_EQ(job.lines.nccl + job.lines.unknown + job.lines.other, 4);
  EXPECT_EQ(job.lines.cut, 1);
}

}  // namespace
}  // namespace lockstep::ingest
