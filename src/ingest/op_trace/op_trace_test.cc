#include "ingest/op_trace/op_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::ingest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kHeader = "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n";

Result<OperationContent> Read(const std::string& text) {
  auto source = OpenMemory(text, {});
  return ReadOperationTable(**source, "table.csv");
}

TEST(OpTraceTest, TimesAreTakenExactly) {
  const auto content = Read(std::string(kHeader) + "1,2,5,23,forward-compute,0.8486716747283936,4.6e-05,3,0,7,2\n");
  ASSERT_TRUE(content);
  ASSERT_EQ(content->trace.operations.size(), 1);
  const model::Operation& operation = content->trace.operations[0];
  EXPECT_EQ(operation.start_ns, 848'671'675);
  EXPECT_EQ(operation.duration_ns, 46'000);
  EXPECT_EQ(operation.data_rank, 1);
  EXPECT_EQ(operation.stage, 2);
  EXPECT_EQ(operation.rank, 5);
  EXPECT_EQ(operation.step, 23);
  EXPECT_EQ(operation.sequence, 3);
  EXPECT_EQ(operation.micro_batch, 7);
  EXPECT_TRUE(content->ledger.entries().empty());
}

TEST(OpTraceTest, MinusOneMeansThatThereIsNone) {
  const auto content = Read(std::string(kHeader) + "0,0,0,1,gc,0,0,0,-1,-1,-1\n");
  ASSERT_TRUE(content);
  EXPECT_EQ(content->trace.operations[0].model_chunk, std::nullopt);
  EXPECT_EQ(content->trace.operations[0].global_chunk, std::nullopt);
}

TEST(OpTraceTest, ColumnsMayComeInAnyOrderAndRankMayBeMissing) {
  const auto content = Read(
      "\xEF\xBB\xBFseq_id,optype,step,stage,dp_rank,\"duration\",start_ts,other\r\n"
      "0,gc,1,1,1,0,0.5,x\r\n0,gc,1,0,0,0,0.25,x");
  ASSERT_TRUE(content);
  ASSERT_EQ(content->trace.operations.size(), 2);
  EXPECT_EQ(content->trace.operations[0].rank, 0);
  EXPECT_EQ(content->trace.operations[1].rank, 3);
  EXPECT_EQ(content->trace.operations[1].start_ns, 500'000'000);
}

TEST(OpTraceTest, TheOrderOfLinesChangesNothing) {
  const std::string a = "0,0,0,1,gc,2,1,0,-1,-1,-1\n";
  const std::string b = "0,0,0,1,backward-compute,1,1,0,0,0,0\n";
  const auto one = Read(kHeader + a + b);
  const auto two = Read(kHeader + b + a);
  ASSERT_TRUE(one && two);
  EXPECT_THAT(one->trace.types, ElementsAre("backward-compute", "gc"));
  EXPECT_EQ(one->trace.types, two->trace.types);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(one->trace.operations[i].start_ns, two->trace.operations[i].start_ns);
}

TEST(OpTraceTest, BadLinesAreSkippedAndCounted) {
  const auto content = Read(std::string(kHeader) +
                            "0,0,0,1,gc,0,0,0,-1,-1,-1\n"
                            "0,0,0,1,gc,nan,0,1,-1,-1,-1\n"
                            "0,0,0,1,gc,1,-5,1,-1,-1,-1\n"
                            "0,0\n"
                            "\n"
                            "0,0,0,1,gc,9e9,9e9,1,-1,-1,-1\n" +
                            std::string(100'000, 'x') + "\n0,0,0,2,gc,0,0,0,-1,-1,-1\n");
  ASSERT_TRUE(content);
  EXPECT_EQ(content->trace.operations.size(), 2);
  ASSERT_EQ(content->ledger.entries().size(), 1);
  EXPECT_EQ(content->ledger.entries()[0].code, "operation_skipped");
  EXPECT_EQ(content->ledger.entries()[0].count, 5);
  EXPECT_THAT(content->ledger.entries()[0].message, HasSubstr("line 3: start_ts 'nan'"));
}

TEST(OpTraceTest, ATableWithoutANeededColumnIsRefusedByName) {
  const auto content = Read("dp_rank,stage,step,optype,start_ts\n0,0,0,gc,0\n");
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, ErrorCode::kCorruptData);
  EXPECT_THAT(content.error().message, HasSubstr("duration, seq_id"));
}

TEST(OpTraceTest, ATableWithoutOperationsIsRefused) {
  for (const char* text : {"", kHeader, "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id\nx\n"}) {
    const auto content = Read(text);
    ASSERT_FALSE(content);
    EXPECT_EQ(content.error().code, ErrorCode::kCorruptData);
  }
}

TEST(OpTraceTest, FormatsAreToldByTheirBytes) {
  EXPECT_EQ(SniffOperations(kHeader), OperationFormat::kStudyTable);
  EXPECT_EQ(SniffOperations(R"({"1": {"total": 5, "fwd_start": [)"), OperationFormat::kPrimusRank);
  EXPECT_EQ(SniffOperations(R"({"world_size": 8, "pp_size": 8, "num_mbs": 16})"), OperationFormat::kPrimusConfig);
  EXPECT_EQ(SniffOperations(R"({"schemaVersion": 1, "traceEvents": []})"), OperationFormat::kNone);
  EXPECT_EQ(SniffOperations("[{\"name\": \"forward\"}]"), OperationFormat::kNone);
  EXPECT_EQ(SniffOperations("a,b,c\n"), OperationFormat::kNone);
  EXPECT_EQ(SniffOperations(""), OperationFormat::kNone);
}

TEST(OpTraceTest, PrimusTimesAreMilliseconds) {
  OperationContent content;
  ASSERT_TRUE(ReadPrimusRank(R"({"2": {"total": 3193.61376953125, "memory": 2.5, "fwd_start": [0.0439860001206398, 70],
      "fwd_end": [62.5, 80.25], "bwd_start": [100], "bwd_end": [150.000001]}})",
                             3, "pp_rank_3.json", &content));
  ASSERT_EQ(content.trace.operations.size(), 3);
  EXPECT_EQ(content.trace.operations[0].start_ns, 43'986);
  EXPECT_EQ(content.trace.operations[1].duration_ns, 10'250'000);
  EXPECT_EQ(content.trace.operations[2].duration_ns, 50'000'001);
  EXPECT_EQ(content.trace.types[content.trace.operations[2].type], model::kBackwardCompute);
  ASSERT_EQ(content.trace.iterations.size(), 1);
  EXPECT_EQ(content.trace.iterations[0].total_ns, 3'193'613'770);
  EXPECT_EQ(content.trace.iterations[0].memory_bytes, int64_t{5} << 29);
  EXPECT_EQ(content.trace.operations[0].stage, 3);
}

TEST(OpTraceTest, AnIterationThatIsNotSoundIsSkipped) {
  OperationContent content;
  ASSERT_TRUE(ReadPrimusRank(R"({"1": {"total": 5, "fwd_start": [1], "fwd_end": []},
      "2": {"total": 5, "fwd_start": [3], "fwd_end": [2]}, "3": 7, "x": {"total": 5}, "4": {"fwd_start": [[1]]},
      "5": {"total": 5, "fwd_start": [1], "fwd_end": [2]}})",
                             0, "r", &content));
  EXPECT_EQ(content.trace.operations.size(), 1);
  EXPECT_EQ(content.trace.operations[0].step, 5);
  ASSERT_EQ(content.ledger.entries().size(), 1);
  EXPECT_EQ(content.ledger.entries()[0].count, 5);
}

TEST(OpTraceTest, PrimusFilesThatAreNoneAreRefused) {
  for (const char* text : {"", "[]", "{}", "{\"1\"", "{\"1\": {\"total\": 5", "nonsense"}) {
    OperationContent content;
    const auto status = ReadPrimusRank(text, 0, "r", &content);
    ASSERT_FALSE(status) << text;
    EXPECT_EQ(status.error().code, ErrorCode::kCorruptData);
  }
}

}  // namespace
}  // namespace lockstep::ingest
