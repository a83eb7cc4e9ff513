#include "node/control/client/trace_window.h"

#include <gtest/gtest.h>

namespace lockstep::control {
namespace {

// As PyTorch 2.13 writes it, shortened.
constexpr const char* kTrace = R"( {
    "schemaVersion": 1,
    "displayTimeUnit": "ms",
    "baseTimeNanoseconds": 1790857026000000000,
    "traceEvents": [
  {
    "ph": "X", "cat": "user_annotation", "name": "Optimizer.step#SGD.step", "pid": 1, "tid": 1,
    "ts": 4419348313950.000, "dur": 5.000,
    "args": { "External id": 3 }
  },
  {
    "ph": "i",
    
    "s": "g",
    "name": "Iteration Start: PyTorch Profiler",
    "pid": "Traces",
    "tid": "Trace PyTorch Profiler",
    "ts": 4419348313913.417
    
  },
  {
    "ph": "X", "cat": "user_annotation", "name": "Optimizer.step#SGD.step", "pid": 1, "tid": 1,
    "ts": 4419348314950.000, "dur": 5.000
  },
  {
    "ph": "i",
    "s": "g",
    "name": "Record Window End",
    "pid": "",
    "tid": "",
    "ts": 4419348942710.670
  }
  ],"traceName": "/tmp/lockstep/x.json" }
)";

TraceFacts Scanned(std::string_view text, size_t piece) {
  TraceScanner scanner;
  for (size_t at = 0; at < text.size(); at += piece) scanner.Feed(text.substr(at, piece));
  return scanner.Finish();
}

TEST(TraceScannerTest, ReadsTheNumberOfTheFirstStep) {
  EXPECT_EQ(Scanned(R"({"lockstep_first_step": 50, "traceEvents": []})", 7).first_step, 50);
  EXPECT_EQ(Scanned(R"({"lockstep_step_count": 3, "traceEvents": []})", 7).step_count, 3);
  EXPECT_EQ(Scanned(kTrace, 100).first_step, std::nullopt);
  EXPECT_EQ(Scanned(R"({"lockstep_first_step": -1, "traceEvents": []})", 7).first_step, std::nullopt);
}

TEST(TraceScannerTest, ReadsTheWindowOfATrace) {
  const TraceFacts facts = Scanned(kTrace, 1 << 20);
  EXPECT_TRUE(facts.whole);
  EXPECT_EQ(facts.start_unix_ns, 1790857026000000000 + 4419348313913417);
  EXPECT_EQ(facts.end_unix_ns, 1790857026000000000 + 4419348942710670);
  EXPECT_EQ(facts.optimizer_step_count, 2u);
  EXPECT_EQ(facts.bytes, std::string_view(kTrace).size());
}

TEST(TraceScannerTest, TheSizeOfPiecesChangesNothing) {
  // Long enough for several blocks.
  std::string text = kTrace;
  const std::string filler(200, ' ');
  std::string events;
  for (int i = 0; i < 2000; ++i)
    events += R"({"ph":"X","name":"Optimizer.step#Adam","ts":1.000,"dur":1.000},)" + filler;
  text.insert(text.find("{\n    \"ph\": \"X\""), events);
  for (const size_t piece : {1ul, 7ul, 511ul, 4096ul, 65536ul, 1ul << 20}) {
    const TraceFacts facts = Scanned(text, piece);
    EXPECT_EQ(facts.optimizer_step_count, 2002u) << piece;
    EXPECT_TRUE(facts.whole);
    EXPECT_EQ(facts.start_unix_ns, 1790857026000000000 + 4419348313913417) << piece;
    EXPECT_EQ(facts.end_unix_ns, 1790857026000000000 + 4419348942710670) << piece;
  }
}

TEST(TraceScannerTest, ACutTraceIsNotWhole) {
  const std::string_view text = kTrace;
  for (size_t length = 0; length + 3 < text.size(); ++length) {
    // A cut behind an event's end looks like an end; its size then tells, which the daemon states.
    const TraceFacts facts = Scanned(text.substr(0, length), 64);
    const size_t last = text.substr(0, length).find_last_not_of(" \n");
    if (last != std::string_view::npos && text[last] == '}') continue;
    EXPECT_FALSE(facts.whole) << length;
  }
  EXPECT_FALSE(Scanned("", 1).whole);
  EXPECT_FALSE(Scanned("{}", 1).whole);
}

TEST(TraceScannerTest, TheBaseMayComeLast) {
  const TraceFacts facts =
      Scanned(R"({"traceEvents":[{"name":"Record Window End","ts":5.5}],"baseTimeNanoseconds": 1000})", 10);
  EXPECT_EQ(facts.end_unix_ns, 6500);
  EXPECT_FALSE(facts.start_unix_ns);
}

TEST(MicrosecondsAsNsTest, ReadsDigitsExactly) {
  EXPECT_EQ(MicrosecondsAsNs("4419348942710.670,"), 4419348942710670);
  EXPECT_EQ(MicrosecondsAsNs("12"), 12000);
  EXPECT_EQ(MicrosecondsAsNs("0.0015"), 1);
  EXPECT_FALSE(MicrosecondsAsNs("-1"));
  EXPECT_FALSE(MicrosecondsAsNs(""));
  EXPECT_FALSE(MicrosecondsAsNs("99999999999999999999"));
}

}  // namespace
}  // namespace lockstep::control
