#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/hang/job_view.h"
#include "analysis/hang/record_draft.h"

namespace lockstep::hang {

/// Gives texts, signatures and sites of all records numbers that compare between ranks.
class RecordMerger {
 public:
  /// Adds to `view`'s texts, signatures and sites, which have to be empty.
  explicit RecordMerger(JobView& view);

  /// JobView's number of each of the draft's signatures.
  std::vector<uint32_t> Signatures(const evidence::FlightRecord& record, const RecordDraft& draft);
  /// JobView's number of each of the draft's sites.
  std::vector<uint32_t> Sites(const RecordDraft& draft);

 private:
  struct SignatureHash {
    size_t operator()(const Signature& signature) const;
  };

  uint32_t Text(const std::string& text);

  JobView& view_;
  std::unordered_map<std::string, uint32_t> texts_;
  std::unordered_map<Signature, uint32_t, SignatureHash> signatures_;
  std::map<std::pair<std::string, int32_t>, uint32_t> sites_;
};

}  // namespace lockstep::hang
