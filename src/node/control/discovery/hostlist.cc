#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/ascii.h"
#include "node/control/discovery/hosts.h"

namespace lockstep::control {

namespace {

constexpr size_t kMostNames = 65536;
constexpr size_t kMostNameBytes = 1024;
constexpr size_t kMostDigits = 18;  // What an uint64_t surely holds.

Error InvalidHostlist(std::string_view text, size_t at, std::string_view why) {
  constexpr size_t kShown = 80;
  return Error{.code = ErrorCode::kInvalidArgument,
               .message = fmt::format("host list \"{}{}\": character {}: {}", text.substr(0, kShown),
                                      text.size() > kShown ? "..." : "", at + 1, why)};
}

Error TooMany() {
  return Error{.code = ErrorCode::kLimitExceeded,
               .message = fmt::format("host list: names more than {} hosts", kMostNames)};
}

// The numbers of one bracket, such as "001-003,007".
struct Group {
  struct Range {
    uint64_t first = 0;
    uint64_t last = 0;
    size_t width = 0;  // Digits of the lower bound: smaller numbers are padded with zeros.
  };
  std::vector<Range> ranges;
  uint64_t count = 0;
};

// Reads one list from the front of `text_` on; an instance per call.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<std::string>> Run() {
    while (at_ < text_.size()) {
      RETURN_IF_ERROR(ReadExpression());
      if (at_ < text_.size()) ++at_;  // The comma.
    }
    return std::move(names_);
  }

 private:
  // Text and brackets up to a comma outside brackets, or the end. Empty ones are passed over ("a,,b").
  Status ReadExpression() {
    std::vector<std::string> texts(1);  // One more than groups: texts[i] stands before groups[i].
    std::vector<Group> groups;
    for (; at_ < text_.size() && text_[at_] != ','; ++at_) {
      const char c = text_[at_];
      if (c == '[') {
        ASSIGN_OR_RETURN(Group group, ReadGroup());
        groups.push_back(std::move(group));
        texts.emplace_back();
      } else if (c == ']') {
        return InvalidHostlist(text_, at_, "\"]\" without \"[\"");
      } else if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f) {
        return InvalidHostlist(text_, at_, "a space or control character in a host's name");
      } else {
        texts.back() += c;
      }
    }
    if (groups.empty() && texts[0].empty()) return {};
    return Expand(texts, groups);
  }

  // At "["; leaves `at_` at its "]".
  Result<Group> ReadGroup() {
    const size_t opened = at_++;
    Group group;
    while (true) {
      Group::Range range;
      ASSIGN_OR_RETURN(range.first, ReadNumber(&range.width));
      range.last = range.first;
      if (at_ < text_.size() && text_[at_] == '-') {
        const size_t dash = at_++;
        ASSIGN_OR_RETURN(range.last, ReadNumber(nullptr));
        if (range.last < range.first) return InvalidHostlist(text_, dash, "a range that runs backwards");
      }
      // No overflow: both bounds have at most 18 digits, and the sum stops at the limit.
      group.count += range.last - range.first + 1;
      if (group.count > kMostNames) return TooMany();
      group.ranges.push_back(range);
      if (at_ >= text_.size()) return InvalidHostlist(text_, opened, "\"[\" without \"]\"");
      if (text_[at_] == ']') return group;
      if (text_[at_] != ',') return InvalidHostlist(text_, at_, "not a number, \"-\", \",\" or \"]\"");
      ++at_;
    }
  }

  Result<uint64_t> ReadNumber(size_t* width) {
    const size_t begin = at_;
    while (at_ < text_.size() && IsDigit(text_[at_])) ++at_;
    if (at_ == begin) {
      return at_ >= text_.size() ? InvalidHostlist(text_, begin == 0 ? 0 : begin - 1, "\"[\" without \"]\"")
                                 : InvalidHostlist(text_, at_, "not a number");
    }
    if (at_ - begin > kMostDigits) return InvalidHostlist(text_, begin, "a number of over 18 digits");
    if (width != nullptr) *width = at_ - begin;
    uint64_t value = 0;
    std::from_chars(text_.data() + begin, text_.data() + at_, value);
    return value;
  }

  // The last group runs fastest.
  Status Expand(const std::vector<std::string>& texts, const std::vector<Group>& groups) {
    size_t name_bytes = groups.size() * kMostDigits;
    for (const std::string& text : texts) name_bytes += text.size();
    if (name_bytes > kMostNameBytes) {
      return Error{.code = ErrorCode::kLimitExceeded,
                   .message = fmt::format("host list: a name of over {} bytes", kMostNameBytes)};
    }
    std::vector<std::string> grown = {texts[0]};
    for (size_t i = 0; i < groups.size(); ++i) {
      if (grown.size() * groups[i].count > kMostNames) return TooMany();
      std::vector<std::string> next;
      next.reserve(grown.size() * groups[i].count);
      for (const std::string& front : grown) {
        for (const Group::Range& range : groups[i].ranges) {
          for (uint64_t number = range.first; number <= range.last; ++number) {
            next.push_back(fmt::format("{}{:0{}}{}", front, number, range.width, texts[i + 1]));
          }
        }
      }
      grown = std::move(next);
    }
    // Duplicates count, or a short text could keep this busy for long.
    expanded_count_ += grown.size();
    if (expanded_count_ > kMostNames) return TooMany();
    for (std::string& name : grown) {
      if (seen_.insert(name).second) names_.push_back(std::move(name));
    }
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t expanded_count_ = 0;
  std::vector<std::string> names_;
  std::unordered_set<std::string> seen_;
};

}  // namespace

Result<std::vector<std::string>> ExpandHostlist(std::string_view text) { return Parser(text).Run(); }

}  // namespace lockstep::control
