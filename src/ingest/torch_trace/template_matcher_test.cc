#include "ingest/torch_trace/template_matcher.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "ingest/bytes/byte_source.h"
#include "ingest/torch_trace/trace_reader.h"

namespace lockstep::ingest {
namespace {

// What a reader makes of a text: every event, and every ledger code.
std::string TextOfRead(const std::string& text, bool learned_templates) {
  TraceReaderOptions options;
  options.learned_templates = learned_templates;
  auto source = OpenMemory(text, {});
  auto content = ReadTrace(**source, "test.json", options);
  if (!content) return "error: " + content.error().message;
  std::string read;
  for (const model::Track& track : content->trace.tracks) {
    for (size_t i = 0; i < track.events.size(); ++i) {
      read += fmt::format("{} {} {}/{} {} {}+{}\n", static_cast<int>(track.lane),
                          model::CategoryName(track.events.category[i]), track.process_id, track.thread_id,
                          content->names[track.events.name[i]], track.events.start_ns[i], track.events.duration_ns[i]);
    }
  }
  for (const auto& entry : content->ledger.entries()) read += entry.code + "\n";
  return read;
}

std::string Trace(std::initializer_list<std::string> events) {
  std::string text;
  for (const std::string& event : events) text += (text.empty() ? "" : ",\n") + event;
  return "{\"traceEvents\": [\n" + text + "\n]}";
}

void ExpectTheSame(std::initializer_list<std::string> events) {
  const std::string text = Trace(events);
  EXPECT_EQ(TextOfRead(text, true), TextOfRead(text, false)) << text;
}

std::string DurationLast(const std::string& duration) {
  return R"({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 5, "dur": )" + duration + "}";
}

TEST(TemplateMatcherTest, TheLastValueIsReadToItsEnd) {
  for (const char* duration : {"5e3", "1.5e3", "1e-05", "7E2", "1.2345", "12345678901234567", "5x", "\"9\"", "null"}) {
    ExpectTheSame({DurationLast("1"), DurationLast("1.25"), DurationLast(duration), DurationLast("2")});
  }
}

TEST(TemplateMatcherTest, TimesNearTheLimitAreReadAlike) {
  for (const char* duration : {"2305843009213692.999", "2305843009213693", "2305843009213693.951",
                               "2305843009213693.952", "2305843009213694", "9999999999999999"}) {
    ExpectTheSame({DurationLast("1"), DurationLast("1.25"), DurationLast(duration), DurationLast("2")});
  }
}

TEST(TemplateMatcherTest, ANameMayBeTheLastValue) {
  const auto event = [](const std::string& name) {
    return R"({"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 5, "dur": 1, "name": ")" + name + "\"}";
  };
  ExpectTheSame({event("a"), event("b"), event("c} d"), event("e { f"), event("g")});
  ExpectTheSame({event("a"), event("a"), event("}},{"), event("a")});
}

TEST(TemplateMatcherTest, ATextForAThreadMayBeTheLastValue) {
  const auto event = [](const std::string& thread) {
    return R"({"ph": "X", "cat": "cpu_op", "name": "a}", "pid": 1, "ts": 5, "dur": 1, "tid": ")" + thread + "\"}";
  };
  ExpectTheSame({event("7"), event("8"), event("9x"), event("10"), event("stream 7")});
  ExpectTheSame({event("stream 7"), event("stream 8"), event("stream 9 }"), event("stream 7")});
}

TEST(TemplateMatcherTest, TheCategoryMayBeTheLastValueOrAbsent) {
  const auto event = [](const std::string& rest) {
    return R"({"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 5, "dur": 1)" + rest + "}";
  };
  ExpectTheSame({event(R"(, "cat": "cpu_op")"), event(R"(, "cat": "cpu_op")"), event(R"(, "cat": "python_function")"),
                 event(R"(, "cat": "overhead")"), event("")});
  ExpectTheSame({event(""), event(""), event(R"(, "cat": "cpu_op")"), event(R"(, "args": {"x": 1})"), event("")});
  ExpectTheSame({event(R"(, "args": {"cat": "kernel"}, "cat": "cpu_op")"),
                 event(R"(, "args": {"cat": "kernel"}, "cat": "python_function")"), event("")});
}

TEST(TemplateMatcherTest, ThePhaseMayBeTheLastValue) {
  const auto event = [](const std::string& phase) {
    return R"({"cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 5, "dur": 1, "ph": ")" + phase + "\"}";
  };
  ExpectTheSame({event("X"), event("X"), event("B"), event("i"), event("s"), event("X"), event("Xx")});
}

}  // namespace
}  // namespace lockstep::ingest
