#include "model/ledger.h"

#include <algorithm>
#include <utility>

namespace lockstep::model {

const char* SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kInfo: return "info";
    case Severity::kWarning: return "warning";
    case Severity::kError: return "error";
  }
  return "error";
}

void Ledger::Add(LedgerEntry entry) {
  const auto same = std::find_if(entries_.begin(), entries_.end(), [&](const LedgerEntry& known) {
    return known.code == entry.code && known.source == entry.source && known.rank == entry.rank;
  });
  if (same == entries_.end()) {
    entries_.push_back(std::move(entry));
  } else {
    same->count += entry.count;
    same->severity = std::max(same->severity, entry.severity);
  }
}

void Ledger::Append(Ledger&& other) {
  for (LedgerEntry& entry : other.entries_) Add(std::move(entry));
  other.entries_.clear();
}

bool Ledger::Has(Severity at_least) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const LedgerEntry& e) { return e.severity >= at_least; });
}

}  // namespace lockstep::model
