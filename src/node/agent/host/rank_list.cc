#include "node/agent/host/rank_list.h"

namespace lockstep::agent {

std::vector<proc::JobProcess> RankList::Get() {
  const MutexLock lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (!found_at_ || now - *found_at_ >= fresh_for_) {
    found_ = find_();
    found_at_ = now;
  }
  return found_;
}

}  // namespace lockstep::agent
