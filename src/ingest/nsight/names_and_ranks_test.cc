#include <gmock/gmock.h>

#include <map>

#include "ingest/nsight/event_names.h"
#include "ingest/nsight/nccl_payload.h"
#include "ingest/nsight/nsys_export.h"
#include "ingest/nsight/rank_environment.h"
#include "ingest/nsight/report_events.h"

namespace lockstep::ingest::nsight {
namespace {

LaunchFacts Launch(const std::map<std::string, std::string, std::less<>>& variables) {
  return ReadLaunch([&](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(RankEnvironmentTest, TorchrunGoesFirstWhereItIsConsistent) {
  const LaunchFacts facts = Launch({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}});
  EXPECT_EQ(facts.rank, 5);
  EXPECT_EQ(facts.world_size, 8);
  EXPECT_EQ(facts.variable, "RANK");
}

TEST(RankEnvironmentTest, AWorldOfOneThatWasLeftBehindGivesWay) {
  EXPECT_EQ(
      Launch({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}}).rank,
      3);
  EXPECT_EQ(Launch({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).world_size, 1);
  EXPECT_EQ(Launch({{"RANK", "9"}, {"WORLD_SIZE", "4"}, {"PMI_RANK", "2"}, {"PMI_SIZE", "4"}}).rank, 2);
}

TEST(RankEnvironmentTest, AnInteractiveAllocationSaysNothing) {
  EXPECT_EQ(Launch({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}).rank, std::nullopt);
  EXPECT_EQ(Launch({{"SLURM_PROCID", "0"}}).rank, std::nullopt);
  EXPECT_EQ(Launch({{"SLURM_PROCID", "3"}, {"SLURM_NPROCS", "16"}}).rank, 3);
}

TEST(RankEnvironmentTest, NumbersThatAreNoneAreIgnored) {
  EXPECT_EQ(Launch({{"RANK", "-1"}}).rank, std::nullopt);
  EXPECT_EQ(Launch({{"RANK", "3x"}}).rank, std::nullopt);
  EXPECT_EQ(Launch({{"RANK", "99999999999"}}).rank, std::nullopt);
}

TEST(RankEnvironmentTest, VariablesAreFoundByWholeName) {
  EXPECT_EQ(FindVariable("ROLE_RANK=7;RANK=3;X=1", "RANK"), "3");
  EXPECT_EQ(FindVariable("A=1\nRANK=4\nB=2", "RANK"), "4");
  EXPECT_EQ(FindVariable("RANK_OF=3", "RANK"), std::nullopt);
  EXPECT_EQ(FindVariable("RANK", "RANK"), std::nullopt);
}

TEST(EventNamesTest, CallsAreNamedAsKinetoNamesThem) {
  EXPECT_EQ(CallName("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
  EXPECT_EQ(CallName("cudaMemcpyAsync_ptsz_v7000"), "cudaMemcpyAsync");
  EXPECT_EQ(CallName("cuMemcpyHtoDAsync_v2"), "cuMemcpyHtoDAsync_v2");
  EXPECT_EQ(CallName("cudaMalloc"), "cudaMalloc");
  EXPECT_TRUE(IsDriverCall("cuLaunchKernelEx"));
  EXPECT_FALSE(IsDriverCall("cudaLaunchKernel"));
  EXPECT_EQ(MemcpyName(1, 0, 2), "Memcpy HtoD (Pageable -> Device)");
  EXPECT_EQ(MemcpyName(8, std::nullopt, std::nullopt), "Memcpy DtoD");
  EXPECT_EQ(MemcpyName(-7, 99, INT64_MAX), "Memcpy unknown (Unknown -> Unknown)");
  EXPECT_EQ(MemsetName(2), "Memset (Device)");
}

TEST(EventNamesTest, RangesOfLibrariesAreCollectivesByTheirText) {
  EXPECT_EQ(RegionOf("", "ncclAllReduce").name, "nccl:ncclAllReduce");
  EXPECT_TRUE(RegionOf("NCCL", "ncclAllReduce").is_collective);
  EXPECT_FALSE(RegionOf("NCCL", "ncclGroupEnd").is_collective);
  EXPECT_TRUE(RegionOf("NCCL", "ncclSend").is_collective);
  EXPECT_TRUE(RegionOf("MPI", "MPI_Iallreduce").is_collective);
  EXPECT_EQ(RegionOf("MPI", "MPI_Init").name, "MPI_Init");
  EXPECT_EQ(RegionOf("MPI", "MPI_Waitall").name, "mpi:MPI_Waitall");
  EXPECT_TRUE(RegionOf("gloo", "all_reduce").is_collective);
  EXPECT_FALSE(RegionOf("train", "all_reduce").is_collective);
  EXPECT_EQ(RegionOf("train", "forward").name, "train:forward");
  EXPECT_TRUE(RegionOf("", "nccl:all_reduce, op_id = 4").is_collective);
}

TEST(NcclPayloadTest, NumbersAreReadHoweverTheyAreGrouped) {
  const NcclPayload payload = ReadNcclPayload(
      R"({"NCCL communicator ID": "0x1f", "Message size [bytes]": "1,048,576", "Peer rank": 3, "No. of ranks": "16"})");
  EXPECT_EQ(payload.communicator, 0x1fu);
  EXPECT_EQ(payload.message_bytes, 1048576);
  EXPECT_EQ(payload.peer, 3);
  EXPECT_EQ(payload.rank_count, 16);
  EXPECT_EQ(payload.rank, std::nullopt);
  EXPECT_EQ(ReadNcclPayload(R"({"Peer rank": )").peer, std::nullopt);
  EXPECT_EQ(ReadNcclPayload(R"({"Peer rank": 99999999999999999999999999})").peer, std::nullopt);
}

/// Little-endian, as the struct lies in memory.
std::string Bytes(std::initializer_list<std::pair<uint64_t, size_t>> members) {
  std::string bytes;
  for (const auto& [value, size] : members) {
    for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i));
  }
  return bytes;
}

TEST(NcclPayloadTest, BytesAreReadByTheFunctionsNameAndTheirNumber) {
  const auto before = DecodeNcclPayload("ncclSend", Bytes({{4096, 8}, {3, 4}, {0, 4}}));
  ASSERT_TRUE(before.has_value());
  EXPECT_EQ(before->communicator, std::nullopt);
  EXPECT_EQ(before->message_bytes, 4096);
  EXPECT_EQ(before->peer, 3);
  const auto since = DecodeNcclPayload("ncclRecv", Bytes({{0xfedcba9876543210, 8}, {4096, 8}, {5, 4}, {0, 4}}));
  ASSERT_TRUE(since.has_value());
  EXPECT_EQ(since->communicator, 0xfedcba9876543210);
  EXPECT_EQ(since->message_bytes, 4096);
  EXPECT_EQ(since->peer, 5);
  const auto gathered = DecodeNcclPayload("ncclAllGather", Bytes({{77, 8}, {1 << 20, 8}}));
  ASSERT_TRUE(gathered.has_value());
  EXPECT_EQ(gathered->communicator, 77u);
  EXPECT_EQ(gathered->message_bytes, 1 << 20);
  const auto first = DecodeNcclPayload("ncclCommInitRank", Bytes({{6, 4}, {8, 4}, {2, 4}}));
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->rank, 6);
  EXPECT_EQ(first->rank_count, 8);
  const auto later = DecodeNcclPayload("ncclCommInitRankConfig", Bytes({{77, 8}, {8, 4}, {6, 4}, {2, 4}, {0, 4}}));
  ASSERT_TRUE(later.has_value());
  EXPECT_EQ(later->rank, 6);
  EXPECT_EQ(later->rank_count, 8);
  EXPECT_EQ(later->communicator, 77u);
}

TEST(NcclPayloadTest, BytesOfAnotherNumberOrAnotherFunctionAreNotGuessed) {
  EXPECT_FALSE(DecodeNcclPayload("ncclAllReduce", Bytes({{4096, 8}})).has_value());
  EXPECT_FALSE(DecodeNcclPayload("ncclAllReduce", "").has_value());
  EXPECT_FALSE(DecodeNcclPayload("all_reduce", std::string(24, 'x')).has_value());
  // More bytes than there are numbers for.
  EXPECT_EQ(DecodeNcclPayload("ncclAllGather", std::string(8, '\xff'))->message_bytes, std::nullopt);
}

TEST(NsysExportTest, VersionsOfReportsAndOfNsysAreCompared) {
  EXPECT_EQ(ReportVersion("NVIDIA Tegra Profiler Report 2026@2@1@210-262137639646v0."),
            (std::array<int, 4>{2026, 2, 1, 210}));
  EXPECT_EQ(ReportVersion("NVIDIA Tegra Profiler Report 1.\n"), std::nullopt);
  EXPECT_EQ(NsysVersion("NVIDIA Nsight Systems version 2023.4.4.54-234433681190v0\n"),
            (std::array<int, 4>{2023, 4, 4, 54}));
  EXPECT_EQ(NsysVersion("no such thing"), std::nullopt);
}

}  // namespace
}  // namespace lockstep::ingest::nsight
