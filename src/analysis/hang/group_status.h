#pragma once

#include <cstdint>
#include <vector>

#include "analysis/hang/job_view.h"

namespace lockstep::hang {

/// A group's sequence numbers in pg_status; evidence::kNotRecorded if it has none.
struct GroupStatus {
  int64_t enqueued = evidence::kNotRecorded;
  int64_t started = evidence::kNotRecorded;
  int64_t completed = evidence::kNotRecorded;
};

/// The status of each of a record's groups. A group's place in pg_status is a local id, in pg_config a name; only an
/// entry links the two. A group without an entry is linked by order: both local ids and names count groups as they are
/// made. Only where that agrees with every link that entries prove, and where there are as many of one as of the other.
std::vector<GroupStatus> LinkStatus(const evidence::FlightRecord& record);

/// Sets what `track`'s status says. Negative numbers say that nothing was enqueued or completed yet.
void SetStatus(const GroupStatus& status, Track& track);

/// Marks calls that the status says are done, and sets what the track says of sequence numbers that it does not hold:
/// issued_upto and issued_exact. `status_is_of_collectives`: false where sends and receives are counted with them.
void SetProgress(const RankView& rank, bool status_is_of_collectives, Track& track);

}  // namespace lockstep::hang
