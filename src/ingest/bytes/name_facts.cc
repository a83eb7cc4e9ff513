#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/ascii.h"
#include "base/text_scan.h"
#include "ingest/bytes/file_names.h"
#include "ingest/bytes/trace_files.h"

namespace lockstep::ingest {
namespace {

// A name is cut into runs of letters (in lower case), runs of digits, and single other characters. Every habit is a
// short pattern of such tokens; no regular expressions, whose engines may recurse over a hostile name.
struct Token {
  enum class Kind { kWord, kNumber, kSeparator };
  Kind kind;
  std::string text;
};

// Names longer than this are read to here only: no file system has longer ones, archives may claim to.
constexpr size_t kMaxNameBytes = 1024;

std::vector<Token> Tokenise(std::string_view name) {
  const auto kind_of = [](char c) {
    if (IsDigit(c)) return Token::Kind::kNumber;
    if (IsLetter(c)) return Token::Kind::kWord;
    return Token::Kind::kSeparator;
  };
  std::vector<Token> tokens;
  for (const char c : name.substr(0, kMaxNameBytes)) {
    const Token::Kind kind = kind_of(c);
    if (tokens.empty() || kind == Token::Kind::kSeparator || tokens.back().kind != kind) tokens.push_back({kind, ""});
    tokens.back().text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return tokens;
}

class Tokens {
 public:
  explicit Tokens(std::string_view name) : tokens_(Tokenise(name)) {}

  size_t size() const { return tokens_.size(); }
  bool IsWord(size_t i) const { return i < size() && tokens_[i].kind == Token::Kind::kWord; }
  bool IsWord(size_t i, std::string_view word) const { return IsWord(i) && tokens_[i].text == word; }
  bool IsSeparator(size_t i, std::string_view any_of) const {
    return i < size() && tokens_[i].kind == Token::Kind::kSeparator &&
           any_of.find(tokens_[i].text[0]) != std::string_view::npos;
  }
  /// The number at `i`; nothing for one of more than nine digits (a time, a hash: no rank).
  std::optional<int32_t> Number(size_t i) const {
    if (i >= size() || tokens_[i].kind != Token::Kind::kNumber) return std::nullopt;
    std::string_view digits = tokens_[i].text;
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size() - 1));
    if (digits.size() > 9) return std::nullopt;
    return WholeNumber<int32_t>(digits);
  }
  /// The number that follows `i` directly or after one of "-_=", and is not itself followed by a letter ("rank3a1f").
  std::optional<int32_t> NumberAfter(size_t i) const {
    const size_t at = IsSeparator(i + 1, "-_=") ? i + 2 : i + 1;
    return IsWord(at + 1) ? std::nullopt : Number(at);
  }
  /// The word before `i`, directly or before one of "-_"; empty if there is none.
  std::string_view WordBefore(size_t i) const {
    if (i >= 1 && IsSeparator(i - 1, "-_")) --i;
    return i >= 1 && IsWord(i - 1) ? std::string_view(tokens_[i - 1].text) : std::string_view();
  }

 private:
  std::vector<Token> tokens_;
};

// "rank" after one of these counts something else than the whole job: local_rank3, tp_rank_1.
constexpr std::array<std::string_view, 12> kOtherRanks = {"local", "node", "group", "pp", "tp",   "dp",
                                                          "ep",    "cp",   "dcp",   "sp", "mesh", "shard"};
constexpr std::array<std::string_view, 6> kMeshWords = {"tp", "dp", "pp", "ep", "cp", "dcp"};

template <size_t N>
bool IsOneOf(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// "{rank}-of-{world}", "rank0of8".
void ReadRankOfWorld(const Tokens& tokens, NameFacts& facts) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto rank = tokens.Number(i);
    if (!rank) continue;
    const size_t of = tokens.IsSeparator(i + 1, "-_") ? i + 2 : i + 1;
    if (!tokens.IsWord(of, "of")) continue;
    const auto world = tokens.NumberAfter(of);
    if (!world || *rank >= *world) continue;
    facts.rank = rank;
    facts.world_size = world;
    return;
  }
}

std::optional<int32_t> FindWorldSize(const Tokens& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::optional<int32_t> world;
    if (tokens.IsWord(i, "world")) {
      const size_t size = tokens.IsSeparator(i + 1, "-_") ? i + 2 : i + 1;
      world = tokens.NumberAfter(tokens.IsWord(size, "size") ? size : i);
    } else if (tokens.IsWord(i, "worldsize") || tokens.IsWord(i, "ws") || tokens.IsWord(i, "nranks")) {
      world = tokens.NumberAfter(i);
    }
    if (world && *world > 0) return world;
  }
  return std::nullopt;
}

// "123-n1-rank3-pid4711-20261122T010623Z-500ms.json.gz", as `lockstep capture` writes it. Job and host may hold
// anything ("ws12", "rank7"), so that only what stands before the pid counts.
bool ReadCaptureName(const Tokens& tokens, NameFacts& facts) {
  for (size_t i = tokens.size(); i-- > 0;) {
    if (!tokens.IsWord(i, "rank") || !tokens.IsSeparator(i + 2, "-") || !tokens.IsWord(i + 3, "pid")) continue;
    const auto rank = tokens.Number(i + 1);
    if (!rank || !tokens.Number(i + 4) || !tokens.IsSeparator(i + 5, "-")) continue;
    facts.rank = rank;
    return true;
  }
  return false;
}

// "rank3", "rank-3", "rank_3", "globalrank3", anywhere in the name.
std::optional<int32_t> FindRankWord(const Tokens& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens.IsWord(i, "rank") && !tokens.IsWord(i, "globalrank")) continue;
    if (IsOneOf(tokens.WordBefore(i), kOtherRanks)) continue;
    if (const auto rank = tokens.NumberAfter(i)) return rank;
  }
  return std::nullopt;
}

// "proc3", "process_3"; a "worker_process_1234" carries a process id.
std::optional<int32_t> FindProcessWord(const Tokens& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens.IsWord(i, "proc") && !tokens.IsWord(i, "process")) continue;
    if (tokens.WordBefore(i) == "worker") continue;
    if (const auto rank = tokens.NumberAfter(i)) return rank;
  }
  return std::nullopt;
}

// "r3_trace", "trace.r3.json": the letter alone.
std::optional<int32_t> FindLetter(const Tokens& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens.IsWord(i, "r") || (i > 0 && !tokens.IsSeparator(i - 1, ".-_"))) continue;
    const auto rank = tokens.Number(i + 1);
    if (rank && (i + 2 == tokens.size() || tokens.IsSeparator(i + 2, ".-_"))) return rank;
  }
  return std::nullopt;
}

// "worker3", "worker_3"; but in "job-worker-3_17.1694....pt.trace.json" it is the host's name, and there worker 0 is
// not rank 0.
std::optional<int32_t> FindWorker(const Tokens& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens.IsWord(i, "worker") || (i > 0 && !tokens.IsSeparator(i - 1, "._"))) continue;
    if (const auto rank = tokens.NumberAfter(i)) return rank;
  }
  return std::nullopt;
}

// "{id}-TP-3.trace.json.gz": the rank, when it is the only axis that is named.
std::optional<int32_t> FindOnlyMeshAxis(const Tokens& tokens) {
  std::optional<int32_t> only;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!std::any_of(kMeshWords.begin(), kMeshWords.end(), [&](auto word) { return tokens.IsWord(i, word); })) continue;
    const auto place = tokens.NumberAfter(i);
    if (!place) continue;
    if (only) return std::nullopt;
    only = place;
  }
  return only;
}

// A folder that is named after one rank and nothing else: "rank3/trace.json".
std::optional<int32_t> FindRankFolder(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const Tokens tokens(BaseName(path.substr(0, slash)));
  if (!tokens.IsWord(0, "rank") || tokens.size() > 3) return std::nullopt;
  const auto rank = tokens.NumberAfter(0);
  const bool whole = tokens.size() == (tokens.IsSeparator(1, "-_=") ? 3 : 2);
  return whole ? rank : std::nullopt;
}

// "{host}_{pid}.{time}.pt.trace.json": what torch's tensorboard_trace_handler writes when no worker name is given.
void ReadHostAndProcess(std::string_view name, NameFacts& facts) {
  const size_t end = name.find(".pt.trace.json");
  if (end == std::string_view::npos) return;
  name = name.substr(0, end);
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || name.size() - dot - 1 < 10 || !IsNumber(name.substr(dot + 1))) return;
  name = name.substr(0, dot);
  const size_t underscore = name.rfind('_');
  if (underscore == std::string_view::npos || underscore == 0) return;
  const std::string_view host = name.substr(0, underscore), process = name.substr(underscore + 1);
  const bool is_host = host.size() <= 253 && std::all_of(host.begin(), host.end(), [](char c) {
                         return IsAlphanumeric(c) || c == '-' || c == '.';
                       });
  if (!is_host || !IsNumber(process) || process.size() > 10) return;
  facts.host = std::string(host);
  facts.process_id = WholeNumber(process);
}

// "rank3-{host}-pid{pid}.spans", "norank-{host}-pid{pid}.2.spans": what liblockstep writes. The host may hold anything.
bool ReadSpanTraceName(std::string_view name, const Tokens& tokens, NameFacts& facts) {
  constexpr std::string_view kEnd = ".spans";
  const size_t host = name.find('-') + 1, pid = name.rfind("-pid");
  if (!name.ends_with(kEnd) || host == 0 || pid == std::string_view::npos || pid < host) return false;
  const std::string_view digits = name.substr(pid + 4, name.find('.', pid) - pid - 4);
  if (!IsNumber(digits) || digits.size() > 10) return false;
  if (tokens.IsWord(0, "rank") && tokens.IsSeparator(2, "-")) {
    facts.rank = tokens.Number(1);
  } else if (!name.starts_with("norank-")) {
    return false;
  }
  facts.host = std::string(name.substr(host, pid - host));
  facts.process_id = WholeNumber(digits);
  return true;
}

// "lockstep-nccl.rank3.{host}.{pid}.ring", "lockstep-nccl.{host}.{pid}.2.ring": what the NCCL profiler plugin writes.
bool ReadNcclRingName(std::string_view name, NameFacts& facts) {
  constexpr std::string_view kBegin = "lockstep-nccl.", kEnd = ".ring";
  const size_t end = name.rfind(kEnd);
  if (!name.starts_with(kBegin) || end == std::string_view::npos || end < kBegin.size()) return false;
  std::string_view rest = name.substr(kBegin.size(), end - kBegin.size());
  if (const size_t dot = rest.find('.'); dot != std::string_view::npos && rest.starts_with("rank")) {
    const Tokens tokens(rest.substr(0, dot));
    if (tokens.size() == 2 && tokens.Number(1)) {
      facts.rank = tokens.Number(1);
      rest.remove_prefix(dot + 1);
    }
  }
  size_t dot = rest.rfind('.');
  // Behind the pid there may be the number of the process's second ring; a host that ends in digits is told from that
  // by the number's size alone.
  if (dot != std::string_view::npos && rest.size() - dot - 1 <= 2) {
    const size_t before = rest.rfind('.', dot - 1);
    if (before != std::string_view::npos && dot > 0 && IsNumber(rest.substr(before + 1, dot - before - 1))) {
      rest = rest.substr(0, dot);
      dot = before;
    }
  }
  if (dot == std::string_view::npos || dot == 0) return facts.rank.has_value();
  const std::string_view digits = rest.substr(dot + 1);
  if (!IsNumber(digits) || digits.size() > 10) return facts.rank.has_value();
  facts.host = std::string(rest.substr(0, dot));
  facts.process_id = WholeNumber(digits);
  return true;
}

}  // namespace

NameFacts ReadNameFacts(std::string_view path) {
  const std::string_view name = BaseName(path);
  const Tokens tokens(name);
  NameFacts facts;
  if (ReadCaptureName(tokens, facts) || ReadSpanTraceName(name, tokens, facts) || ReadNcclRingName(name, facts)) {
    return facts;
  }
  ReadRankOfWorld(tokens, facts);
  if (!facts.world_size) facts.world_size = FindWorldSize(tokens);
  for (const auto find : {FindRankWord, FindProcessWord, FindLetter, FindWorker, FindOnlyMeshAxis}) {
    if (!facts.rank) facts.rank = find(tokens);
  }
  if (!facts.rank) ReadHostAndProcess(name, facts);
  if (!facts.rank && !facts.host) facts.rank = FindRankFolder(path);
  return facts;
}

}  // namespace lockstep::ingest
