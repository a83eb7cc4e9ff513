#include <gtest/gtest.h>

#include "ingest/bytes/file_names.h"
#include "ingest/bytes/natural_order.h"
#include "ingest/bytes/trace_files.h"

namespace lockstep::ingest {
namespace {

struct RankCase {
  const char* name;
  std::optional<int32_t> rank;
  std::optional<int32_t> world_size = {};
};

TEST(NameFactsTest, TheRankOfEveryNamingHabitIsRead) {
  const RankCase cases[] = {
      {"rank3.json", 3},
      {"123-ws8-rank3-pid4711-20261122T010623Z-500ms.json.gz", 3},
      {"rank7-of-9-rank5-host-rank3-pid4711-20261122T010623Z-5iterations-2.json", 3},
      {"rank3_trace.json", 3},
      {"rank-3.json.gz", 3},
      {"rank_3.json", 3},
      {"Rank=3.json", 3},
      {"RANK_003.json", 3},
      {"rank0.json.gz", 0},
      {"rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", 34},
      {"rank3_iter100_200.json", 3},
      {"inference_rank_1.json.gz", 1},
      {"old_category_names_rank1.json.gz", 1},
      {"profile_123_99_node2_rank17.json", 17},
      {"global_rank_5.json", 5},
      {"globalrank5.json", 5},
      {"dp0_pp0_tp0_dcp0_ep0_rank12.1756710000000000000.pt.trace.json.gz", 12},
      {"local_rank1_rank9.json", 9},
      {"trace-3-of-8.json", 3, 8},
      {"trace_3_of_8.json.zst", 3, 8},
      {"step5-rank0of8.json", 0, 8},
      {"rank_00002-of-00016.json", 2, 16},
      {"rank2_world8.json", 2, 8},
      {"rank2_world_size_16.json", 2, 16},
      {"ws4_rank2.json", 2, 4},
      {"proc7.json", 7},
      {"process_7.json", 7},
      {"r7_trace.json", 7},
      {"trace.r7.json", 7},
      {"worker3.json", 3},
      {"worker0_step_12.1694128201545.pt.trace.json.gz", 0},
      {"worker0.1623143089861.pt.trace.json.gz", 0},
      {"1756710000-TP-3.trace.json.gz", 3},
      {"runs/7/rank3/trace.json", 3},
      {"archive/rank_3/trace.json", 3},
      {"rank9/rank3.json", 3},
  };
  for (const RankCase& c : cases) {
    EXPECT_EQ(ReadNameFacts(c.name).rank, c.rank) << c.name;
    EXPECT_EQ(ReadNameFacts(c.name).world_size, c.world_size) << c.name;
  }
}

TEST(NameFactsTest, NumbersThatAreNoRankAreNotTakenForOne) {
  const char* const names[] = {
      "trace.json",
      "",
      "rank.json",
      "rank_not_found.json.gz",
      "rank_non_gpu.json.gz",
      "frank3.json",
      "ranking3.json",
      "local_rank3.json",
      "localrank3.json",
      "pp_rank_0.json.gz",
      "tp_rank_2.json",
      "rank3a1f.json",
      "rank12345678901.json",
      "worker_process_4711.json",
      "8-of-8.json",
      "9_of_8.json",
      "alexnet.json.gz",
      "resnet50.json",
      "h100_qwen1.5_0.5b.json.gz",
      "mi250_minitoy_train_ROCm6_2_kineto.json.gz",
      "libkineto_activities_4711.json",
      "node1_gpu3.json",
      "x-DP-1-TP-0.trace.json.gz",
      "iteration_100/trace.json",
      "ranks/trace.json",
      "rank3/more/trace.json",
      "rank3-extra/trace.json",
      "router3.json",
  };
  for (const char* name : names) EXPECT_EQ(ReadNameFacts(name).rank, std::nullopt) << name;
}

TEST(NameFactsTest, HostAndProcessComeFromTheTensorboardHandlersNames) {
  const NameFacts facts = ReadNameFacts("/tmp/gpu-node-01.example.org_4711.1694128201545123456.pt.trace.json.gz");
  EXPECT_EQ(facts.host, "gpu-node-01.example.org");
  EXPECT_EQ(facts.process_id, 4711);
  EXPECT_EQ(facts.rank, std::nullopt);
}

TEST(NameFactsTest, SpanTracesSayRankHostAndProcess) {
  const NameFacts ranked = ReadNameFacts("spans/rank3-r7-of-9.cluster-pid4711.spans");
  EXPECT_EQ(ranked.rank, 3);
  EXPECT_EQ(ranked.world_size, std::nullopt);
  EXPECT_EQ(ranked.host, "r7-of-9.cluster");
  EXPECT_EQ(ranked.process_id, 4711);
  const NameFacts alone = ReadNameFacts("norank-node1-pid12.2.spans");
  EXPECT_EQ(alone.rank, std::nullopt);
  EXPECT_EQ(alone.host, "node1");
  EXPECT_EQ(alone.process_id, 12);
}

TEST(NameFactsTest, RingsOfTheNcclPluginSayRankHostAndProcess) {
  const NameFacts ranked = ReadNameFacts("rings/lockstep-nccl.rank3.gpu-7.cluster.4711.ring");
  EXPECT_EQ(ranked.rank, 3);
  EXPECT_EQ(ranked.host, "gpu-7.cluster");
  EXPECT_EQ(ranked.process_id, 4711);
  const NameFacts second = ReadNameFacts("lockstep-nccl.rank12-of-9.4711.2.ring.gz");
  EXPECT_EQ(second.rank, std::nullopt) << "a host may be called so";
  EXPECT_EQ(second.host, "rank12-of-9");
  EXPECT_EQ(second.process_id, 4711);
  EXPECT_EQ(ReadNameFacts("lockstep-nccl.10.0.0.5.4711.ring").host, "10.0.0.5");
  EXPECT_EQ(ReadNameFacts("lockstep-nccl.node.17.ring").process_id, 17);
  EXPECT_EQ(ReadNameFacts("lockstep-nccl.ring").host, std::nullopt);
  EXPECT_EQ(ReadNameFacts("lockstep-nccl..ring").host, std::nullopt);
  EXPECT_EQ(ReadNameFacts("lockstep-nccl.node.4711x.ring").process_id, std::nullopt);
}

TEST(NameFactsTest, AWorkerInAHostsNameIsNoRank) {
  const NameFacts facts = ReadNameFacts("mnist-worker-0_17.1694128201545.pt.trace.json");
  EXPECT_EQ(facts.rank, std::nullopt);
  EXPECT_EQ(facts.host, "mnist-worker-0");
  EXPECT_EQ(facts.process_id, 17);
}

TEST(NameFactsTest, NoHostIsMadeUpWhenTheRankIsNamed) {
  EXPECT_EQ(ReadNameFacts("worker0_step_12.1694128201545.pt.trace.json.gz").host, std::nullopt);
  EXPECT_EQ(ReadNameFacts("host_12.345.pt.trace.json").host, std::nullopt) << "345 is not a time";
}

TEST(NameFactsTest, EnormousNamesAreRead) {
  EXPECT_EQ(ReadNameFacts(std::string(1000000, '1') + "rank3.json").rank, std::nullopt);
  EXPECT_EQ(ReadNameFacts("rank3" + std::string(1000000, '_')).rank, 3);
}

TEST(FileNamesTest, KindsOfNames) {
  for (const char* name :
       {"a.json", "a.JSON", "a.json.gz", "a.json.zst", "a.pt.trace.json.gz", "d/a_17.json.gz", "a.json.xz",
        "a.json.bz2", "a.sqlite", "a.SQLITE.xz", "a.sqlite.gz", "a.pftrace", "a.PFTRACE.gz", "a.perfetto-trace", "a.pb",
        "a.pb.gz", "lockstep-nccl.rank0.node.17.ring", "lockstep-nccl.node.17.ring.zst"}) {
    EXPECT_EQ(KindOfName(name), NameKind::kTrace) << name;
  }
  for (const char* name :
       {"README.md", "LICENSE", "a.csv.gz", "a.yaml", "._a.json", ".a.json", "json", "", "a.json/", "host.xplane.pb",
        "saved_model.pb", "perfetto_manifest.json", "lockstep-capture-20261122T010623Z-500ms.json"}) {
    EXPECT_EQ(KindOfName(name), NameKind::kOther) << name;
  }
  for (const char* name : {"a.tar", "a.tar.gz", "a.tgz", "a.tar.zst", "a.ZIP"}) {
    EXPECT_EQ(KindOfName(name), NameKind::kArchive) << name;
  }
  EXPECT_EQ(KindOfName("a.pt.trace.json.tmp"), NameKind::kUnfinishedTrace);
  EXPECT_EQ(KindOfName("a.nsys-rep"), NameKind::kNsightReport);
  EXPECT_EQ(KindOfName("a.qdstrm"), NameKind::kNsightRaw);
  EXPECT_EQ(KindOfName("a.ncu-rep"), NameKind::kNcuReport);
  EXPECT_EQ(KindOfName("host.xplane.pb.gz"), NameKind::kOther);
}

TEST(FileNamesTest, PrintableNamesHoldNoControlCharactersAndNoBrokenUtf8) {
  EXPECT_EQ(PrintableName("rank0 \xc3\xa9.json"), "rank0 \xc3\xa9.json");
  EXPECT_EQ(PrintableName("a\x1b[31m\n\x7f"), "a\\x1b[31m\\x0a\\x7f");
  EXPECT_EQ(PrintableName("\xff\xc0\xaf\xed\xa0\x80\xf0\x9f"), "\\xff\\xc0\\xaf\\xed\\xa0\\x80\\xf0\\x9f");
  EXPECT_EQ(PrintableName("\xc2\x9b"), "\\xc2\\x9b");
}

TEST(NaturalOrderTest, NumbersCompareAsNumbers) {
  EXPECT_TRUE(NaturalLess("rank2.json", "rank10.json"));
  EXPECT_FALSE(NaturalLess("rank10.json", "rank2.json"));
  EXPECT_TRUE(NaturalLess("a9/x", "a10/x"));
  EXPECT_TRUE(NaturalLess("99999999999999999999998", "99999999999999999999999"));
  EXPECT_TRUE(NaturalLess("a", "b"));
  EXPECT_TRUE(NaturalLess("a", "a1"));
  EXPECT_FALSE(NaturalLess("a", "a"));
}

TEST(NaturalOrderTest, LeadingZerosDecideLast) {
  EXPECT_TRUE(NaturalLess("a01b", "a1b"));
  EXPECT_FALSE(NaturalLess("a1b", "a01b"));
  EXPECT_TRUE(NaturalLess("a1b1", "a01b2"));
  EXPECT_TRUE(NaturalLess("a0", "a00") != NaturalLess("a00", "a0"));
}

}  // namespace
}  // namespace lockstep::ingest
