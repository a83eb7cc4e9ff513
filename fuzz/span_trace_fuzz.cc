// Span traces, as liblockstep writes them, whole, cut and changed. The first byte sizes the windows. Columns must be
// whole and sorted, and windows of different sizes must give the same.
#include <algorithm>
#include <string_view>

#include "base/utf8.h"
#include "fuzz.h"
#include "ingest/span_trace/span_trace.h"

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

void CheckContent(const ingest::TraceContent& content, size_t input_bytes) {
  const model::RankTrace& trace = content.trace;
  uint64_t count = 0;
  for (const model::Track& track : trace.tracks) {
    const model::EventColumns& events = track.events;
    FUZZ_CHECK(track.lane == model::Lane::kOperators && track.thread_name.value < content.names.size());
    FUZZ_CHECK(events.duration_ns.size() == events.size() && events.name.size() == events.size());
    count += events.size();
    for (size_t i = 0; i < events.size(); ++i) {
      FUZZ_CHECK(events.duration_ns[i] >= 0 && events.end_ns(i) >= events.start_ns[i]);
      FUZZ_CHECK(events.name[i].value < content.names.size());
      FUZZ_CHECK(i == 0 || events.start_ns[i - 1] <= events.start_ns[i]);
    }
  }
  FUZZ_CHECK(count == trace.complete_event_count && count <= trace.event_count && count * 16 <= input_bytes);
  for (const model::CounterSeries& series : trace.counters) {
    FUZZ_CHECK(series.value.size() == series.size() && ValidUtf8(series.name) == series.name);
    FUZZ_CHECK(std::is_sorted(series.time_ns.begin(), series.time_ns.end()));
  }
  for (const model::RequestRecord& request : trace.requests) {
    FUZZ_CHECK(request.duration_ns >= 0 && request.name.value < content.names.size() && request.output_count >= 0);
    FUZZ_CHECK(!request.first_output_ns || *request.first_output_ns >= request.start_ns);
  }
  for (const model::LinkedSpan& span : trace.linked_spans) FUZZ_CHECK(span.duration_ns >= 0);
  for (uint32_t id = 0; id < content.names.size(); ++id) {
    const std::string_view name = content.names[NameId{id}];
    FUZZ_CHECK(ValidUtf8(name) == name);
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  (void)ingest::StartsSpanTrace(bytes);
  SlowSource whole(bytes, bytes.size() + 1);
  SlowSource pieces(bytes, size_t{data[0]} + 1);
  const auto one = ingest::ReadSpanTrace(whole, "spans", {});
  const auto two = ingest::ReadSpanTrace(pieces, "spans", {});
  FUZZ_CHECK(one.has_value() == two.has_value());
  if (!one) {
    FUZZ_CHECK(!one.error().message.empty());
    return 0;
  }
  CheckContent(*one, size);
  CheckContent(*two, size);
  FUZZ_CHECK(one->trace.event_count == two->trace.event_count && one->trace.first_ns == two->trace.first_ns);
  return 0;
}
