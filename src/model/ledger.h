#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::model {

enum class Severity : uint8_t { kInfo, kWarning, kError };
const char* SeverityName(Severity severity);

/// One thing that was repaired, skipped, guessed or refused. Missing is not 0: every output that prints a number prints
/// the ledger too.
struct LedgerEntry {
  std::string code;  ///< Stable snake_case name, such as "truncated_file" (docs/json.md lists them).
  Severity severity = Severity::kWarning;
  std::string source = {};  ///< File (and member) it concerns, or empty for the whole run.
  std::optional<int32_t> rank = {};
  std::optional<uint64_t> byte_offset = {};  ///< Where it was seen first, in decompressed bytes.
  uint64_t count = 1;                        ///< How often.
  std::string message;                       ///< What was seen.
  std::string advice = {};                   ///< What the reader can do; may be empty.
};

/// Entries in order of appearance; equal (code, source, rank) are counted together, the first offset and message are
/// kept.
class Ledger {
 public:
  void Add(LedgerEntry entry);
  void Append(Ledger&& other);
  const std::vector<LedgerEntry>& entries() const { return entries_; }
  bool Has(Severity at_least) const;

 private:
  std::vector<LedgerEntry> entries_;
};

}  // namespace lockstep::model
