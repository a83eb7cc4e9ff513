// Operation traces: the study's table, however its bytes come, and Primus's JSON. The first byte sizes the windows.
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "base/utf8.h"
#include "fuzz.h"
#include "ingest/op_trace/op_trace.h"

namespace {

using namespace lockstep;

/// Gives at most `window` bytes at a time.
class SlowSource final : public ingest::ByteSource {
 public:
  SlowSource(std::string_view bytes, size_t window) : bytes_(bytes), window_(window) {}
  Result<size_t> Read(std::span<char> window) override {
    const size_t count = std::min({window.size(), window_, bytes_.size()});
    std::copy_n(bytes_.begin(), count, window.begin());
    bytes_.remove_prefix(count);
    return count;
  }
  uint64_t consumed_bytes() const override { return 0; }
  uint64_t total_bytes() const override { return 0; }

 private:
  std::string_view bytes_;
  size_t window_;
};

auto Fields(const model::Operation& o) {
  return std::tuple(o.step, o.data_rank, o.stage, o.type, o.sequence, o.start_ns, o.duration_ns, o.rank);
}

void CheckContent(const ingest::OperationContent& content, size_t input_bytes) {
  const model::OperationTrace& trace = content.trace;
  FUZZ_CHECK(trace.operations.size() + trace.iterations.size() <= input_bytes);
  for (const std::string& type : trace.types) FUZZ_CHECK(ValidUtf8(type) == type);
  for (size_t i = 0; i < trace.operations.size(); ++i) {
    const model::Operation& operation = trace.operations[i];
    FUZZ_CHECK(operation.type < trace.types.size());
    FUZZ_CHECK(operation.duration_ns >= 0);
    FUZZ_CHECK(operation.rank >= 0 && operation.stage >= 0 && operation.data_rank >= 0 && operation.sequence >= 0);
    FUZZ_CHECK(i == 0 || Fields(trace.operations[i - 1]) <= Fields(operation));
  }
  for (const model::Iteration& iteration : trace.iterations) FUZZ_CHECK(iteration.total_ns > 0);
  for (const model::LedgerEntry& entry : content.ledger.entries()) {
    FUZZ_CHECK(!entry.code.empty() && !entry.message.empty() && Printable(entry.message) == entry.message);
  }
}

void CheckTable(std::string_view text, size_t window) {
  SlowSource whole(text, text.size() + 1);
  SlowSource pieces(text, window);
  const auto one = ingest::ReadOperationTable(whole, "table");
  const auto two = ingest::ReadOperationTable(pieces, "table");
  FUZZ_CHECK(one.has_value() == two.has_value());
  if (!one) {
    FUZZ_CHECK(!one.error().message.empty() && one.error().message == two.error().message);
    return;
  }
  CheckContent(*one, text.size());
  FUZZ_CHECK(one->trace.types == two->trace.types);
  FUZZ_CHECK(one->trace.operations.size() == two->trace.operations.size());
  for (size_t i = 0; i < one->trace.operations.size(); ++i) {
    FUZZ_CHECK(Fields(one->trace.operations[i]) == Fields(two->trace.operations[i]));
  }
}

void CheckPrimus(std::string_view text) {
  ingest::OperationContent content;
  const auto status = ingest::ReadPrimusRank(std::string(text), 3, "rank", &content);
  if (!status) FUZZ_CHECK(!status.error().message.empty());
  ingest::SortOperations(&content.trace);
  CheckContent(content, text.size());
  const auto config = ingest::ReadPrimusConfig(std::string(text), "config");
  if (!config) FUZZ_CHECK(!config.error().message.empty());
  if (config) FUZZ_CHECK(config->stage_count.value_or(1) > 0 && config->micro_batch_count.value_or(1) > 0);
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  (void)ingest::SniffOperations(text.substr(0, 4096));
  CheckTable(text, size_t{data[0]} + 1);
  CheckPrimus(text);
  return 0;
}
