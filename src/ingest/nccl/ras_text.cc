#include "ingest/nccl/ras_text.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "ingest/nccl/words.h"

namespace lockstep::ingest {
namespace {

using evidence::RasCommunicator;
using evidence::RasRank;
using evidence::RasReport;

constexpr size_t kParagraphLimit = 4096;  // Of one paragraph's message.
constexpr size_t kMessageLimit = 10000;   // Paragraphs.
constexpr int64_t kRankLimit = 1 << 20;

/// Reads the report line by line; a paragraph is a headline ("#0-0 (hash) MISMATCH", "DEAD") and indented lines.
class TextReader {
 public:
  explicit TextReader(RasReport& report) : report_(report) {}

  void Line(std::string_view line) {
    if (line.find_first_not_of(" \t") == std::string_view::npos) return;
    if (Heading(line) || Event(line)) return;
    if (line.front() != ' ') {
      Flush();
      OpenParagraph(line);
      return;
    }
    if (TableRow(line)) return;
    if (!message_.empty()) InParagraph(line);
  }

  bool Finish() {
    Flush();
    for (const auto& [group, row] : rows_) {
      if (named_groups_.count(group) != 0) continue;
      RasCommunicator communicator;
      communicator.hash = "group " + std::to_string(group);
      communicator.size = row.size;
      report_.communicators.push_back(std::move(communicator));
    }
    return recognised_;
  }

 private:
  struct Row {
    int64_t size = 0;
  };

  bool Heading(std::string_view line) {
    if (line.find("===") == 0) return true;
    Words words(line);
    if (words.Skip("NCCL version ")) {
      report_.nccl_version = words.TakeWord();
      return recognised_ = true;
    }
    for (const std::string_view section : {"Job summary", "Communicators...", "Group ", "RAS Monitor Mode"}) {
      if (!line.starts_with(section)) continue;
      Flush();
      in_errors_ = in_warnings_ = false;
      return recognised_ = true;
    }
    if (line != "Errors" && line != "Warnings") return false;
    Flush();
    in_errors_ = line == "Errors";
    in_warnings_ = !in_errors_;
    return recognised_ = true;
  }

  /// " [2025-12-19 13:07:07] PEER_DEAD: Process 1524345 on node 172.16.64.245 managing GPU 1"
  bool Event(std::string_view line) {
    Words words(line);
    words.SkipBlanks();
    if (!words.Skip("[") || !words.SkipPast("] PEER_")) return false;
    recognised_ = true;
    if (Words peer = words; peer.Skip("DEAD: Process ") && report_.dead_peers.size() < kMessageLimit) {
      evidence::RasPeer dead;
      dead.pid = ToInt32(peer.TakeNumber()).value_or(0);
      if (peer.SkipPast(" on node ")) dead.host = peer.TakeWord().substr(0, 255);
      report_.dead_peers.push_back(std::move(dead));
    }
    if (report_.errors.size() < kMessageLimit) {
      report_.errors.push_back(("PEER_" + std::string(words.rest())).substr(0, kParagraphLimit));
    }
    return true;
  }

  /// "    0         1         4         8        32        32   RUNNING  MISMATCH"
  bool TableRow(std::string_view line) {
    Words words(line);
    std::array<int64_t, 6> numbers{};
    for (int64_t& number : numbers) {
      if (number = -1; const auto read = words.TakeNumber()) number = *read;
      if (number < 0) return false;
    }
    words.SkipBlanks();
    const std::string_view status = words.TakeWord();
    if (status.empty() || status.front() < 'A' || status.front() > 'Z') return false;
    if (rows_.size() < kMessageLimit) rows_[numbers[0]] = Row{numbers[4]};
    if (numbers[5] > 0 && numbers[5] <= kRankLimit) {
      report_.rank_count = std::max(report_.rank_count.value_or(0), static_cast<int32_t>(numbers[5]));
    }
    recognised_ = true;
    return true;
  }

  void OpenParagraph(std::string_view line) {
    if (!in_errors_ && !in_warnings_) return;
    message_ = line.substr(0, kParagraphLimit);
    Words words(line);
    if (!words.Skip("#")) return;
    const auto group = words.TakeNumber();
    if (!group || !words.Skip("-") || !words.TakeNumber() || !words.Skip(" (")) return;
    const std::string hash(words.TakeUntil(")").substr(0, 64));
    for (size_t i = 0; i < report_.communicators.size() && communicator_ == kNone; ++i) {
      if (report_.communicators[i].hash == hash) communicator_ = i;
    }
    if (communicator_ != kNone) return;
    communicator_ = report_.communicators.size();
    report_.communicators.emplace_back().hash = hash;
    if (const auto row = rows_.find(*group); row != rows_.end()) report_.communicators.back().size = row->second.size;
    named_groups_[*group] = true;
  }

  void InParagraph(std::string_view line) {
    Words words(line);
    words.SkipBlanks();
    if (message_.size() < kParagraphLimit) {
      message_ += message_.find(": ") == std::string::npos ? ": " : "; ";
      message_ += words.rest().substr(0, kParagraphLimit);
    }
    if (words.Skip("Rank ")) return RankLine(words);
    if (words.Skip("The missing rank")) {
      words.SkipPast(":");
      while (const auto rank = ToInt32(words.TakeNumber())) {
        if (communicator_ != kNone) report_.communicators[communicator_].missing_ranks.push_back(*rank);
        words.Skip(",");
      }
      return;
    }
    const auto rank_count = words.TakeNumber();
    if (!rank_count) return;
    if (words.SkipPast("launched up to operation ")) {
      NoteUnlisted();
      operation_count_ = words.TakeNumber();
      counted_ranks_ = *rank_count;
      status_.clear();
    } else if (words.SkipPast(" status ")) {
      NoteUnlisted();
      status_ = words.TakeWord().substr(0, 32);
      operation_count_.reset();
    }
  }

  /// "0 -- GPU 0 managed by process 483072 on node 172.16.64.210": of the ranks that the line before it counts.
  void RankLine(Words words) {
    const auto number = ToInt32(words.TakeNumber());
    if (!number || communicator_ == kNone) return;
    RasRank rank;
    rank.rank = *number;
    if (words.SkipPast(" process ")) rank.pid = ToInt32(words.TakeNumber()).value_or(0);
    if (words.SkipPast(" on node ")) rank.host = words.TakeWord().substr(0, 255);
    rank.status = status_;
    if (operation_count_) rank.operation_counts.emplace_back("operations", *operation_count_);
    counted_ranks_ = 0;
    RasCommunicator& communicator = report_.communicators[communicator_];
    if (message_.find(" DEAD") != std::string::npos) communicator.dead_ranks.push_back(rank.rank);
    communicator.ranks.push_back(std::move(rank));
  }

  /// RAS lists the few; of the many it says how many they are.
  void NoteUnlisted() {
    if (operation_count_ && counted_ranks_ > 0 && communicator_ != kNone) {
      auto& unlisted = report_.communicators[communicator_].unlisted_counts;
      if (unlisted.size() < kMessageLimit) unlisted.emplace_back(counted_ranks_, *operation_count_);
    }
    counted_ranks_ = 0;
  }

  void Flush() {
    NoteUnlisted();
    if (!message_.empty()) {
      recognised_ = true;
      std::vector<std::string>& messages = in_errors_ ? report_.errors : report_.warnings;
      if (messages.size() < kMessageLimit) messages.push_back(message_);
    }
    message_.clear();
    status_.clear();
    operation_count_.reset();
    communicator_ = kNone;
  }

  static constexpr size_t kNone = SIZE_MAX;
  RasReport& report_;
  std::map<int64_t, Row> rows_;
  std::map<int64_t, bool> named_groups_;
  std::string message_;
  std::string status_;
  std::optional<int64_t> operation_count_;
  int64_t counted_ranks_ = 0;  ///< That `operation_count_` is of, while none of them was listed.
  size_t communicator_ = kNone;
  bool in_errors_ = false;
  bool in_warnings_ = false;
  bool recognised_ = false;
};

}  // namespace

bool ReadRasText(std::string_view text, RasReport& report) {
  TextReader reader(report);
  ForEachLine(text, [&](std::string_view line) { reader.Line(line); });
  return reader.Finish();
}

}  // namespace lockstep::ingest
