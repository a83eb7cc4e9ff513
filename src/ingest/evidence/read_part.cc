#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/nanoseconds.h"
#include "base/now.h"
#include "base/text_scan.h"
#include "base/utf8.h"
#include "ingest/bytes/file_names.h"
#include "ingest/evidence/evidence_names.h"
#include "ingest/evidence/evidence_part.h"
#include "ingest/flight_recorder/flight_recorder.h"
#include "ingest/nccl/nccl_log.h"
#include "ingest/nccl/ras_report.h"
#include "ingest/nccl_ring/nccl_ring.h"
#include "ingest/stacks/stacks.h"
#include "model/evidence/parse_json.h"

namespace lockstep::ingest {
namespace {

constexpr size_t kHeadBytes = size_t{64} << 10;
constexpr size_t kWholeLimit = size_t{1} << 30;  ///< Of what is read at once: dumps, documents.
constexpr size_t kLogChunk = size_t{16} << 20;   ///< Logs may be of any length.
constexpr size_t kNcclLimit = size_t{256} << 20;
constexpr size_t kKeptBytes = size_t{16} << 20;  ///< Of memory that the next file is read into.

class PartReader {
 public:
  PartReader(ByteSource& source, EvidencePart* part, std::string& scratch)
      : source_(source), part_(part), bytes_(scratch) {
    bytes_.clear();
  }

  /// Dumps of more ranks than the part's.
  std::vector<RankedRecord> TakeOtherRecords() { return std::move(other_records_); }

  void Read() {
    bytes_.reserve(kHeadBytes);
    Fill(kHeadBytes);
    if (bytes_.empty()) {
      if (error_) Fail(*error_);
      return;
    }
    if (StartsNcclRing(bytes_)) {
      ReadRing();
    } else if (SniffFlightRecord(bytes_) != FlightFormat::kNone) {
      ReadRecord();
    } else if (const size_t first = bytes_.find_first_not_of(" \t\r\n"); first != std::string::npos) {
      const std::string_view head = bytes_;
      if (LooksLikeRasReport(head)) {
        ReadRas();
      } else if (head[first] == '{') {
        ReadDocument();
      } else if (SniffStacks(head) == StackFormat::kPySpyJson) {
        ReadStacksOnly();
      } else if (IsText(head)) {
        ReadText();
      } else if (part_->named_by_user) {
        Fail({.code = ErrorCode::kUnsupported,
              .message = "is neither a flight-recorder dump nor stacks, a log or RAS's answer"});
      }
    }
  }

 private:
  static bool IsText(std::string_view head) {
    if (head.find('\0') != std::string_view::npos) return false;
    const auto control = std::count_if(head.begin(), head.end(), [](unsigned char c) {
      return c < 32 && c != '\n' && c != '\r' && c != '\t' && c != 27 && c != '\b';
    });
    return static_cast<size_t>(control) * 50 < head.size();
  }

  /// Reads on until `bytes_` has `size` bytes, or the end.
  void Fill(size_t size) {
    while (bytes_.size() < size && !ended_) {
      const size_t before = bytes_.size();
      const size_t wanted = std::min(size - before, std::max(before, kHeadBytes));
      bytes_.resize(before + wanted);
      const Result<size_t> got = source_.Read(std::span(bytes_).subspan(before));
      bytes_.resize(before + (got ? *got : 0));
      if (!got) error_ = got.error();
      ended_ = !got || *got == 0;
    }
  }

  void Fail(const Error& error) {
    part_->problems.push_back(
        {.file = part_->file,
         .rank = part_->rank,
         .message = error.byte_offset ? fmt::format("byte {}: {}", *error.byte_offset, error.message) : error.message});
  }
  void NotWhole(std::string message) {
    part_->problems.push_back(
        {.file = part_->file, .rank = part_->rank, .message = std::move(message), .skipped = false});
  }

  /// All bytes; a file whose compression is damaged is used as far as it goes.
  void FillWhole(size_t limit) {
    Fill(limit);
    if (error_) NotWhole(fmt::format("{}; the part before it is used", error_->message));
    if (!ended_) NotWhole(fmt::format("is longer than {} bytes; the rest was not read", limit));
  }

  void ReadRecord() {
    FillWhole(kWholeLimit);
    auto records = ReadFlightRecords(bytes_);
    if (!records) return Fail(records.error());
    if (records->back().record.truncated) NotWhole("the dump ends early; the part before it is used");
    // A dump's name ends in the rank and in nothing else; if a file holds several dumps, its name gives no rank.
    const auto named = RankOfDumpName(part_->path);
    if (records->front().rank || records->size() > 1) {
      part_->rank = records->front().rank;
      part_->rank_is_stated = true;
    } else if (named) {
      part_->rank = named;
    }
    part_->record = std::move(records->front().record);
    records->erase(records->begin());
    other_records_ = std::move(*records);
  }

  static bool LivesHere(const NcclRing& ring) {
    std::array<char, 256> host = {};
    if (::gethostname(host.data(), host.size() - 1) != 0 || ring.host != host.data() || ring.pid <= 0) return false;
    return ::kill(ring.pid, 0) == 0 || errno == EPERM;
  }

  void ReadRing() {
    FillWhole(kWholeLimit);
    auto ring = ReadNcclRing(bytes_);
    if (!ring) return Fail(ring.error());
    if (ring->rank) part_->rank = ring->rank;
    part_->rank_is_stated = ring->rank.has_value();
    if (ring->dropped_count > 0) {
      NotWhole(fmt::format("there was no room for {} operations, steps or communicators", ring->dropped_count));
    }
    part_->is_written_in_place = true;
    if (LivesHere(*ring)) part_->modified_unix_ns = UnixNow();
    part_->record = ToFlightRecord(*ring);
  }

  void ReadRas() {
    FillWhole(size_t{64} << 20);
    auto report = ReadRasReport(bytes_);
    if (!report) return Fail(report.error());
    report->source = part_->file;
    part_->ras = std::move(*report);
  }

  /// A JSON object: one of ours, an error file of torchrun's, or none of our business.
  void ReadDocument() {
    const std::string_view head = bytes_;
    if (head.find("\"lockstep.inspection/") != std::string_view::npos) {
      FillWhole(evidence::kMaxJsonBytes);
      auto process = evidence::ReadInspectedProcess(bytes_);
      if (!process) return Fail(process.error());
      part_->process = std::move(*process);
    } else if (head.find("\"lockstep.evidence/") != std::string_view::npos) {
      FillWhole(evidence::kMaxJsonBytes);
      auto header = ReadFolderHeader(bytes_);
      if (!header) return Fail(header.error());
      part_->header = std::move(*header);
    } else if (head.find("\"py_callstack\"") != std::string_view::npos) {
      ReadErrorFile();
    } else if (part_->named_by_user) {
      Fail({.code = ErrorCode::kUnsupported, .message = "is JSON, but no dump, stacks, RAS answer or evidence"});
    }
  }

  /// torchrun's error.json: {"message": {"message", "extraInfo": {"py_callstack", "timestamp"}}}.
  void ReadErrorFile() {
    FillWhole(size_t{16} << 20);
    const auto document = evidence::ParseJson(bytes_);
    if (!document) return Fail(document.error());
    const JsonValue extra = document->root().At({"message", "extraInfo"});
    const std::string stack = ValidUtf8(extra["py_callstack"].TextOrEmpty());
    const std::string timestamp = extra["timestamp"].TextOrEmpty();
    if (stack.empty()) return;
    part_->log = ReadRankLog(stack, part_->file);
    const auto seconds = WholeNumber(timestamp);
    for (evidence::LogEvent& event : part_->log->events) {
      if (seconds && *seconds > 0 && *seconds < 9'000'000'000) event.time_unix_ns = *seconds * kSecondNs;
    }
  }

  void ReadStacksOnly() {
    FillWhole(evidence::kMaxJsonBytes);
    TakeStacks(true);
  }

  void TakeStacks(bool must) {
    auto stacks = ReadStacks(bytes_);
    if (stacks) {
      part_->stacks = std::move(*stacks);
    } else if (must) {
      Fail(stacks.error());
    }
  }

  void ReadText() {
    // A stack dump begins as one; in a log one may stand anywhere.
    const size_t first = bytes_.find_first_not_of(" \t\r\n");
    const std::string_view head = std::string_view(bytes_).substr(first);
    const StackFormat format = SniffStacks(head.substr(0, head.find('\n') + 1));
    if (format != StackFormat::kNone || head.starts_with("PID ") || head.starts_with("Process ")) {
      if (SniffStacks(head) != StackFormat::kNone) {
        FillWhole(kWholeLimit);
        return TakeStacks(true);
      }
    }
    Fill(kLogChunk);
    if (LooksLikeNcclLog(bytes_) || bytes_.find(" NCCL ") != std::string::npos) ReadNccl();
    ReadLogChunks();
  }

  void ReadNccl() {
    Fill(kNcclLimit);
    if (!ended_) NotWhole(fmt::format("is longer than {} bytes; NCCL's lines behind that were not read", kNcclLimit));
    evidence::NcclJob job = ReadNcclLog(bytes_, part_->file, part_->rank);
    if (job.lines.nccl > 0) part_->nccl.push_back(std::move(job));
  }

  /// Piece by piece at ends of lines, in memory for one piece.
  void ReadLogChunks() {
    RankLogEvents all;
    while (true) {
      Fill(kLogChunk);
      size_t end = bytes_.size();
      if (!ended_) {
        const size_t last = bytes_.rfind('\n');
        if (last != std::string::npos) end = last + 1;
      }
      const std::string_view chunk = std::string_view(bytes_).substr(0, end);
      if (chunk.find("(most recent call first)") != std::string_view::npos ||
          chunk.find("\n#0 ") != std::string_view::npos) {
        TakeStacks(false);
      }
      Append(ReadRankLog(chunk, part_->file), &all);
      if (ended_ && end == bytes_.size()) break;
      bytes_.erase(0, end);
    }
    if (error_) NotWhole(fmt::format("{}; the part before it is used", error_->message));
    if (all.events.empty() && !part_->named_by_user && !part_->rank && all.prefixed_ranks.empty()) return;
    if (all.dropped_count > 0) {
      part_->problems.push_back(
          {.file = part_->file,
           .rank = part_->rank,
           .message = fmt::format("{} more lines report failures; the first and last of each kind are used",
                                  all.dropped_count),
           .skipped = false,
           .is_note = true});
    }
    part_->log = std::move(all);
  }

  static void Append(RankLogEvents&& more, RankLogEvents* all) {
    constexpr size_t kMaxEvents = 4'000;
    for (evidence::LogEvent& event : more.events) {
      event.line += all->line_count;
      if (all->events.size() < kMaxEvents) {
        all->events.push_back(std::move(event));
      } else {
        ++all->dropped_count;
      }
    }
    all->line_count += more.line_count;
    all->dropped_count += more.dropped_count;
    if (more.world_size) all->world_size = std::max(all->world_size.value_or(0), *more.world_size);
    for (const int32_t rank : more.prefixed_ranks) {
      const auto place = std::lower_bound(all->prefixed_ranks.begin(), all->prefixed_ranks.end(), rank);
      if (place == all->prefixed_ranks.end() || *place != rank) all->prefixed_ranks.insert(place, rank);
    }
  }

  ByteSource& source_;
  EvidencePart* part_;
  std::string& bytes_;
  std::vector<RankedRecord> other_records_;
  bool ended_ = false;
  std::optional<Error> error_;
};

}  // namespace

std::vector<EvidencePart> ReadEvidenceParts(ByteSource& source, const std::string& path, bool named_by_user,
                                            std::string& scratch) {
  std::vector<EvidencePart> parts;
  const auto add = [&]() -> EvidencePart& {
    EvidencePart& part = parts.emplace_back();
    part.file = PrintableName(path);
    part.path = path;
    part.named_by_user = named_by_user;
    return part;
  };
  EvidencePart& first = add();
  first.rank = RankOfEvidencePath(path);
  PartReader reader(source, &first, scratch);
  reader.Read();
  if (scratch.capacity() > kKeptBytes) std::string().swap(scratch);
  for (RankedRecord& other : reader.TakeOtherRecords()) {
    EvidencePart& part = add();
    part.rank = other.rank;
    part.rank_is_stated = true;
    part.record = std::move(other.record);
  }
  return parts;
}

}  // namespace lockstep::ingest
