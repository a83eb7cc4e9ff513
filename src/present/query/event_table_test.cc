#include "present/query/event_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "present/query/testing/asked_run.h"

namespace lockstep::query {
namespace {

using analysis::testing::RunBuilder;
using testing::AskedRun;
using testing::RandomRun;
using testing::Rows;

model::Run SmallRun() {
  RunBuilder job;
  job.Rank(0)
      .Annotation(1, "ProfilerStep#3", 1000, 500)
      .Op(1, "aten::mm", 1100, 300)
      .Op(1, "aten::inner", 1150, 100)
      .Op(1, "aten::add", 1400, 50)
      .Runtime(1, "cudaLaunchKernel", 1120, 10, 77)
      .Kernel(7, "gemm", 1200, 250, 77)
      .Kernel(20, "ncclDevKernel_AllReduce", 1300, 400)
      .Memcpy(7, "Memcpy HtoD", 1460, 20);
  return job.Build();
}

TEST(EventTableTest, ColumnsAreTheModels) {
  AskedRun asked(SmallRun());
  EXPECT_EQ(asked.Ask("SELECT rank, window, lane, category, name, trace_start_ns, duration_ns, depth, step, device "
                      "FROM events WHERE name = 'aten::inner'"),
            (Rows{{"0", "0", "operators", "cpu_op", "aten::inner", "1150", "100", "2", "3", "NULL"}}));
  EXPECT_EQ(
      asked.Ask("SELECT kind, device, stream, correlation, step, launch_start_ns, launch_end_ns, end_ns - start_ns "
                "FROM kernels ORDER BY start_ns"),
      (Rows{{"compute", "0", "7", "77", "3", "1120", "1130", "250"},
            {"communication", "0", "20", "NULL", "3", "NULL", "NULL", "400"},
            {"memcpy", "0", "7", "NULL", "3", "NULL", "NULL", "20"}}));
}

TEST(EventTableTest, KernelsAreTheDeviceEventsUnderTheSameIds) {
  AskedRun asked(RandomRun(2));
  EXPECT_EQ(asked.AskOne("SELECT count(*) FROM kernels AS k JOIN events AS e USING (id) "
                         "WHERE k.name <> e.name OR k.start_ns <> e.start_ns OR e.lane <> 'device'"),
            "0");
  EXPECT_EQ(asked.AskOne("SELECT count(*) FROM kernels"),
            asked.AskOne("SELECT count(*) FROM events WHERE lane = 'device'"));
  EXPECT_EQ(asked.AskOne("SELECT sum(event_count) FROM tracks"), asked.AskOne("SELECT count(DISTINCT id) FROM events"));
}

TEST(EventTableTest, DepthCountsEventsThatAreStillOpen) {
  AskedRun asked(RandomRun(4));
  EXPECT_EQ(asked.AskOne("SELECT count(*) FROM events AS e WHERE depth <> (SELECT count(*) FROM events AS o "
                         "WHERE o.track = e.track AND o.id < e.id AND o.end_ns > e.start_ns)"),
            "0");
}

TEST(EventTableTest, ClocksAreAligned) {
  model::Run run = SmallRun();
  AskedRun asked(std::move(run));
  asked.run().ranks[0].clock.offset_ns = 100;
  asked.run().ranks[0].clock.drift_ppm = 400;
  asked.run().ranks[0].clock.reference_ns = 1000;
  EXPECT_EQ(asked.AskOne("SELECT start_ns FROM events WHERE name = 'aten::mm'"), "1000");
  EXPECT_EQ(asked.AskOne("SELECT name FROM events WHERE lane = 'operators' AND start_ns = 1000"), "aten::mm");
  EXPECT_EQ(asked.AskOne("SELECT count(*) FROM events WHERE start_ns >= 1000"),
            asked.AskOne("SELECT count(*) FROM events WHERE +start_ns >= 1000"));
}

TEST(EventTableTest, AnEmptyRunHasNoRows) {
  AskedRun asked(model::Run{});
  EXPECT_EQ(asked.AskOne("SELECT count(*) FROM events"), "0");
  EXPECT_EQ(asked.AskOne("SELECT count(*) FROM memory_events"), "0");
  EXPECT_EQ(asked.AskOne("SELECT count(*) FROM tracks WHERE rank = 1"), "0");
}

TEST(EventTableTest, ConstraintsBeyondTheRangeOfNumbersDoNoHarm) {
  AskedRun asked(RandomRun(2, 5));
  for (const char* bound : {"9223372036854775807", "-9223372036854775808", "1e300", "-1e300", "9e999", "-9e999",
                            "9.2233720368547758e18", "x'00'", "''", "'9'", "NULL"}) {
    for (const char* column : {"id", "rank", "track", "start_ns", "trace_start_ns", "end_ns", "duration_ns",
                               "correlation", "device", "name", "category", "lane"}) {
      for (const char* op : {"=", "<", "<=", ">", ">="}) {
        const std::string where = fmt::format("{} {} {}", column, op, bound);
        EXPECT_EQ(asked.AskOne("SELECT count(*) FROM events WHERE " + where),
                  asked.AskOne("SELECT count(*) FROM (SELECT * FROM events LIMIT -1) WHERE " + where))
            << where;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::query
