#pragma once

#include <cstdint>
#include <vector>

#include "analysis/hang/job_view.h"

namespace lockstep::hang {

/// One record's calls by its own group indices, signatures and sites numbered within the record.
struct GroupDraft {
  std::vector<Call> calls;
  std::vector<P2pCall> p2p;  ///< Peers as group ranks.
  bool on_device = false;
  bool has_native = false;
  bool has_hook = false;
  bool sorted = true;
  int64_t newest_operation_id = evidence::kNotRecorded;
};

struct SignatureDraft {
  Signature signature;  ///< name and dtype are indices into FlightRecord::texts; `name` of all kinds.
};

struct RecordDraft {
  std::vector<GroupDraft> groups;
  std::vector<SignatureDraft> signatures;  ///< [0] is of no call.
  std::vector<UserSite> sites;             ///< [0] is empty.
  bool active_only = false;
  bool ring_wrapped = false;
  std::optional<int64_t> oldest_created_ns;
  std::optional<int64_t> newest_created_ns;
  uint32_t newest_entry = kNone;
};

/// Cost: O(entries).
RecordDraft DraftRecord(const evidence::FlightRecord& record);

}  // namespace lockstep::hang
