#include "ingest/job/any_trace.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "ingest/nccl_ring/nccl_ring.h"
#include "ingest/nccl_trace/nccl_trace.h"
#include "ingest/nsight/json_export/json_export.h"
#include "ingest/nsight/launch_manifest.h"
#include "ingest/nsight/nsys_export.h"
#include "ingest/nsight/nsys_report.h"
#include "ingest/perfetto/packet_stream.h"
#include "ingest/perfetto/perfetto_reader.h"
#include "ingest/span_trace/span_trace.h"

namespace lockstep::ingest {
namespace {

/// A source whose first bytes were looked at and are given out again.
class PeekedSource final : public ByteSource {
 public:
  explicit PeekedSource(ByteSource& source) : source_(source) {
    auto got = source_.Read(head_);
    if (got) {
      size_ = *got;
    } else {
      error_ = std::move(got).error();
    }
  }

  std::string_view head() const { return {head_.data(), size_}; }

  Result<size_t> Read(std::span<char> window) override {
    const size_t taken = std::min(window.size(), size_ - given_);
    std::memcpy(window.data(), head_.data() + given_, taken);
    given_ += taken;
    if (taken == window.size()) return taken;
    if (error_) {
      if (taken > 0) return taken;
      return *error_;
    }
    auto rest = source_.Read(window.subspan(taken));
    if (rest) return taken + *rest;
    if (taken == 0) return rest;
    error_ = std::move(rest).error();
    return taken;
  }
  uint64_t consumed_bytes() const override { return source_.consumed_bytes(); }
  uint64_t total_bytes() const override { return source_.total_bytes(); }
  Compression compression() const override { return source_.compression(); }

 private:
  ByteSource& source_;
  std::array<char, kNsysJsonHeadBytes> head_ = {};
  size_t size_ = 0;
  size_t given_ = 0;
  std::optional<Error> error_;
};

/// A format with one rank in a file.
struct Format {
  bool (*starts)(std::string_view head);
  Result<TraceContent> (*read)(ByteSource& source, const std::string& display_name, const TraceReaderOptions& options);
};
/// Recognised by their first bytes. All else is Chrome's JSON, which may begin in many ways.
constexpr Format kFormats[] = {
    {StartsSpanTrace, ReadSpanTrace},
    {StartsNcclRing, ReadNcclTrace},
};

/// What else a file may be that people have beside their traces, with what to do; or nothing.
const char* OtherFormat(std::string_view head) {
  using namespace std::string_view_literals;
  if (head.starts_with("version https://git-lfs"sv)) return "is a Git LFS pointer, not the data; run git lfs pull";
  if (head.starts_with("NVR\0"sv)) {
    return "is an Nsight Compute report, which is not a trace; write its kernels as a table: ncu --import FILE --csv "
           "--page "
           "raw";
  }
  constexpr const char* kOtherForm =
      "may be an Nsight Systems export in a form that is not read (Parquet, Arrow, HDF5); export the report with nsys "
      "export -t sqlite, which holds the same";
  if (head.starts_with("PAR1"sv) || head.starts_with("\x89HDF"sv) || head.starts_with("ARROW1"sv)) return kOtherForm;
  // An Arrow stream: a mark, the length of its schema, which begins with a small offset.
  if (head.size() >= 12 && head.starts_with("\xff\xff\xff\xff"sv) && head[7] == 0 && head[9] == 0 && head[10] == 0) {
    return kOtherForm;
  }
  return nullptr;
}

}  // namespace

Result<std::vector<TraceContent>> ReadAnyTrace(ByteSource& source, const std::string& path,
                                               const std::string& display_name, const TraceReaderOptions& options) {
  PeekedSource peeked(source);
  const bool is_export = StartsNsysExport(peeked.head());
  if (is_export || StartsNsysReport(peeked.head())) {
    auto contents = is_export ? ReadNsysExport(peeked, path, display_name, options)
                              : ReadNsysReport(peeked.head(), path, display_name, options);
    if (contents) nsight::TakeLaunchManifest(path, &*contents);
    return contents;
  }
  if (StartsNsysJson(peeked.head())) return ReadNsysJson(peeked, display_name, options);
  if (const char* what = OtherFormat(peeked.head())) {
    return Error{.code = ErrorCode::kUnsupported, .message = what, .file = display_name};
  }
  if (perfetto::StartsPerfettoTrace(peeked.head())) return ReadPerfettoTrace(peeked, display_name, options);
  const auto* format = std::ranges::find_if(kFormats, [&](const Format& each) { return each.starts(peeked.head()); });
  auto content = (format != std::end(kFormats) ? format->read : ReadTrace)(peeked, display_name, options);
  if (!content) return std::move(content).error();
  std::vector<TraceContent> contents;
  contents.push_back(std::move(*content));
  return contents;
}

}  // namespace lockstep::ingest
