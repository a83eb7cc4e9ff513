#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace lockstep::ingest {

/// A number in a file's name, and what stands before it.
struct NameNumber {
  enum class Label : uint8_t {
    kNone,   ///< Anything else: it may be a rank.
    kRank,   ///< "rank", of the whole job.
    kDump,   ///< "trace", "dump".
    kOther,  ///< "local_rank", "node", "pid", ...: never a rank.
  };
  int32_t value = 0;
  Label label = Label::kNone;
  bool at_end = false;  ///< Nothing follows but endings such as ".json.gz".
};

/// The numbers of at most seven digits, in their order; longer ones are times or processes. `path`: its last part
/// counts.
std::vector<NameNumber> NumbersOfName(std::string_view path);

/// A name without its folder and endings: equal of one dump in two forms.
std::string_view StemOfName(std::string_view path);

}  // namespace lockstep::ingest
