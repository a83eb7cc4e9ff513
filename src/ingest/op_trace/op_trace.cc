#include "ingest/op_trace/op_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/ascii.h"
#include "base/utf8.h"
#include "ingest/op_trace/study_table.h"

namespace lockstep::ingest {
namespace {

constexpr size_t kWindowBytes = size_t{1} << 20;
constexpr size_t kMaxLineBytes = size_t{64} << 10;

/// Cuts a stream into lines; what is longer than a line can be is told apart, so that memory stays bounded.
class LineReader {
 public:
  explicit LineReader(ByteSource& source) : source_(source) { window_.resize(kWindowBytes); }

  struct Line {
    std::string_view text;
    uint64_t byte_offset = 0;
    bool too_long = false;
  };

  /// False at the end and behind an error (see `error`).
  bool Next(Line* line) {
    bool too_long = false;
    while (true) {
      const char* const begin = window_.data() + begin_;
      const void* const newline = std::char_traits<char>::find(begin, end_ - begin_, '\n');
      if (newline != nullptr) {
        const auto length = static_cast<size_t>(static_cast<const char*>(newline) - begin);
        *line = {{begin, length}, offset_, too_long || length > kMaxLineBytes};
        begin_ += length + 1;
        offset_ += length + 1;
        return true;
      }
      if (end_ - begin_ > kMaxLineBytes) {  // Drop it; its end is still to come.
        too_long = true;
        offset_ += end_ - begin_;
        begin_ = end_;
      }
      if (at_end_) {
        *line = {{begin, end_ - begin_}, offset_, too_long};
        const bool any = end_ > begin_ || too_long;
        begin_ = end_;
        return any && !error;
      }
      Refill();
    }
  }

  std::optional<Error> error;

 private:
  void Refill() {
    std::copy(window_.begin() + static_cast<ptrdiff_t>(begin_), window_.begin() + static_cast<ptrdiff_t>(end_),
              window_.begin());
    end_ -= begin_;
    begin_ = 0;
    auto got = source_.Read({window_.data() + end_, window_.size() - end_});
    if (!got) {
      error = std::move(got).error();
      at_end_ = true;
    } else {
      at_end_ = *got == 0;
      end_ += *got;
    }
  }

  ByteSource& source_;
  std::string window_;
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t offset_ = 0;
  bool at_end_ = false;
};

std::string_view WithoutBlanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

/// The key of a JSON object's first member, as it is written.
std::string_view FirstKey(std::string_view text) {
  text = WithoutBlanks(text);
  if (!text.starts_with('{')) return {};
  text = WithoutBlanks(text.substr(1));
  if (!text.starts_with('"')) return {};
  const size_t end = text.find('"', 1);
  return end == std::string_view::npos ? std::string_view() : text.substr(1, end - 1);
}

}  // namespace

OperationFormat SniffOperations(std::string_view head) {
  const std::string_view key = FirstKey(head);
  if (IsNumber(key) && head.find("\"fwd_start\"") != std::string_view::npos) return OperationFormat::kPrimusRank;
  if (!key.empty() && head.find("\"pp_size\"") != std::string_view::npos &&
      head.find("\"num_mbs\"") != std::string_view::npos && head.find("\"traceEvents\"") == std::string_view::npos) {
    return OperationFormat::kPrimusConfig;
  }
  if (key.empty() && IsStudyHeader(head.substr(0, head.find('\n')))) return OperationFormat::kStudyTable;
  return OperationFormat::kNone;
}

Result<OperationContent> ReadOperationTable(ByteSource& source, const std::string& name) {
  LineReader lines(source);
  StudyTable table(name);
  LineReader::Line line;
  if (!lines.Next(&line)) {
    if (lines.error) return *std::move(lines.error);
    return Error{.code = ErrorCode::kCorruptData, .message = "is empty; check how it was written", .file = name};
  }
  RETURN_IF_ERROR(table.TakeHeader(line.text));
  for (uint64_t number = 2; lines.Next(&line); ++number) {
    if (line.too_long) {
      table.Skip("is longer than any line of a table", number, line.byte_offset);
    } else {
      table.TakeLine(line.text, number, line.byte_offset);
    }
  }
  if (lines.error) {
    model::LedgerEntry entry;
    entry.code = lines.error->code == ErrorCode::kLimitExceeded ? "limit_exceeded" : "truncated_file";
    entry.severity = model::Severity::kError;
    entry.source = name;
    entry.message = lines.error->message;
    entry.advice = "the part before it is used; copy the file again";
    table.ledger().Add(std::move(entry));
  }
  return table.Finish();
}

void SortOperations(model::OperationTrace* trace) {
  const auto key = [](const model::Operation& o) {
    return std::tuple(o.step, o.data_rank, o.stage, o.type, o.sequence, o.start_ns, o.duration_ns, o.rank);
  };
  std::sort(trace->operations.begin(), trace->operations.end(),
            [&](const model::Operation& a, const model::Operation& b) { return key(a) < key(b); });
  std::sort(trace->iterations.begin(), trace->iterations.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.step, a.stage, a.total_ns) < std::tuple(b.step, b.stage, b.total_ns);
  });
}

}  // namespace lockstep::ingest
