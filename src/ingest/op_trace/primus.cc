#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/utf8.h"
#include "ingest/op_trace/op_trace.h"
#include "ingest/torch_trace/decimal.h"

namespace lockstep::ingest {
namespace {

using simdjson::ondemand::object;
using simdjson::ondemand::value;

constexpr int64_t kMaxTimeNs = 500'000'000'000'000'000;  // 16 years
constexpr size_t kMaxWork = 1 << 20;                     // Micro-batches of one iteration.

Error NoPrimus(const std::string& name, const char* what) {
  return {.code = ErrorCode::kCorruptData,
          .message = fmt::format("is not a Primus pipeline trace ({}); check how it was written", what),
          .file = name};
}

/// A number as it is written, so that it can be taken exactly.
std::optional<int64_t> Milliseconds(value number) {
  std::string_view text = number.raw_json_token();
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\r' || text.back() == '\t')) {
    text.remove_suffix(1);
  }
  const auto time_ns = DecimalToInt(text, 6);
  return time_ns && *time_ns <= kMaxTimeNs && *time_ns >= -kMaxTimeNs ? time_ns : std::nullopt;
}

/// One iteration's lists; absent when something in it is not as it should be.
struct IterationLists {
  std::optional<int64_t> total_ns;
  std::optional<int64_t> memory_bytes;
  std::vector<int64_t> times_ns[4];  // kLists
};
constexpr const char* kLists[4] = {"fwd_start", "fwd_end", "bwd_start", "bwd_end"};

bool ReadTimes(value from, std::vector<int64_t>* times_ns) {
  simdjson::ondemand::array list;
  if (from.get_array().get(list) || !times_ns->empty()) return false;
  for (auto item : list) {
    value number;
    if (item.get(number) || times_ns->size() == kMaxWork) return false;
    const auto time_ns = Milliseconds(number);
    if (!time_ns) return false;
    times_ns->push_back(*time_ns);
  }
  return true;
}

std::optional<IterationLists> ReadIteration(object from) {
  IterationLists lists;
  for (auto item : from) {
    simdjson::ondemand::field field;
    std::string_view key;
    if (std::move(item).get(field) || field.unescaped_key().get(key)) return std::nullopt;
    if (key == "total") {
      lists.total_ns = Milliseconds(field.value());
    } else if (key == "memory") {
      // "GB" of torch.cuda's bytes divided by 1024 three times.
      double gigabytes = 0;
      if (!field.value().get_double().get(gigabytes) && gigabytes >= 0 && gigabytes < 1e6) {
        lists.memory_bytes = static_cast<int64_t>(gigabytes * 1073741824.0);
      }
    } else {
      for (int i = 0; i < 4; ++i) {
        if (key == kLists[i] && !ReadTimes(field.value(), &lists.times_ns[i])) return std::nullopt;
      }
    }
  }
  if (!lists.total_ns || *lists.total_ns <= 0) return std::nullopt;
  for (int i = 0; i < 4; i += 2) {
    if (lists.times_ns[i].size() != lists.times_ns[i + 1].size()) return std::nullopt;
    for (size_t k = 0; k < lists.times_ns[i].size(); ++k) {
      if (lists.times_ns[i + 1][k] < lists.times_ns[i][k]) return std::nullopt;
    }
  }
  return lists;
}

void AddIteration(const IterationLists& lists, int64_t step, int32_t stage, model::OperationTrace* trace) {
  trace->iterations.push_back(
      {.step = step, .stage = stage, .total_ns = *lists.total_ns, .memory_bytes = lists.memory_bytes});
  for (int i = 0; i < 4; i += 2) {
    for (size_t k = 0; k < lists.times_ns[i].size(); ++k) {
      model::Operation operation;
      operation.step = step;
      operation.rank = operation.stage = stage;
      operation.start_ns = lists.times_ns[i][k];
      operation.duration_ns = lists.times_ns[i + 1][k] - lists.times_ns[i][k];
      operation.sequence = static_cast<int32_t>(k);
      operation.type = i == 0 ? 1 : 0;
      trace->operations.push_back(operation);
    }
  }
}

}  // namespace

Result<PrimusConfig> ReadPrimusConfig(std::string text, const std::string& name) {
  simdjson::dom::parser parser;
  simdjson::dom::object config;
  if (parser.parse(text).get(config)) return NoPrimus(name, "no JSON object");
  const auto count = [&](const char* key) -> std::optional<int32_t> {
    int64_t number = 0;
    if (config[key].get(number) || number < 1 || number > 1 << 20) return std::nullopt;
    return static_cast<int32_t>(number);
  };
  return PrimusConfig{.stage_count = count("pp_size"), .micro_batch_count = count("num_mbs")};
}

Status ReadPrimusRank(std::string text, int32_t stage, const std::string& name, OperationContent* content) {
  content->trace.source = model::OperationSource::kPrimus;
  content->trace.types = {model::kBackwardCompute, model::kForwardCompute};
  simdjson::ondemand::parser parser;
  const simdjson::padded_string padded(text);
  simdjson::ondemand::document document;
  object iterations;
  if (parser.iterate(padded).get(document) || document.get_object().get(iterations)) {
    return NoPrimus(name, "no JSON object");
  }
  size_t read = 0;
  const auto skip = [&](std::string_view key) {
    model::LedgerEntry entry;
    entry.code = "operation_skipped";
    entry.severity = model::Severity::kError;
    entry.source = name;
    entry.rank = stage;
    entry.message = fmt::format("iteration '{}' is not sound and was skipped", Printable(key.substr(0, 40)));
    entry.advice = "starts and ends must be lists of numbers of one length, with no end before its start";
    content->ledger.Add(std::move(entry));
  };
  for (auto item : iterations) {
    simdjson::ondemand::field field;
    std::string_view key;
    if (std::move(item).get(field) || field.unescaped_key().get(key)) {
      if (read == 0) return NoPrimus(name, "damaged JSON");
      model::LedgerEntry entry;
      entry.code = "truncated_file";
      entry.severity = model::Severity::kError;
      entry.source = name;
      entry.rank = stage;
      entry.message = fmt::format("its JSON is damaged behind {} iterations", read);
      entry.advice = "the part before it is used; copy the file again";
      content->ledger.Add(std::move(entry));
      break;
    }
    const std::string label(key);
    const auto step = ParseInt64(label);
    object iteration;
    std::optional<IterationLists> lists;
    if (step && !field.value().get_object().get(iteration)) lists = ReadIteration(iteration);
    if (!lists) {
      skip(label);
      continue;
    }
    AddIteration(*lists, *step, stage, &content->trace);
    ++read;
  }
  if (read == 0) return NoPrimus(name, "no sound iteration");
  return {};
}

}  // namespace lockstep::ingest
