#include "node/agent/daemon/inspection_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/nanoseconds.h"
#include "base/now.h"
#include "node/agent/capture/random_name.h"
#include "node/control/api/json.h"

namespace lockstep::agent {
namespace {

using control::Inspection;
using control::InspectionSpec;
using control::InspectionState;

constexpr size_t kIdLength = 16;

bool IsSame(const Caller& a, const Caller& b) { return a.uid == b.uid && a.name == b.name; }

}  // namespace

InspectionDesk::InspectionDesk(Look look, std::function<int64_t()> now_ns)
    : look_(std::move(look)), now_ns_(std::move(now_ns)), thread_([this](const std::stop_token& stop) { Run(stop); }) {}

InspectionDesk::~InspectionDesk() {
  thread_.request_stop();
  changed_.notify_all();
}

void InspectionDesk::DropOld() {
  const int64_t now = now_ns_();
  std::erase_if(entries_, [&](const auto& entry) {
    return entry->inspection.state == InspectionState::kDone && now - entry->done_ns > kKeptNs;
  });
  const auto is_done = [](const auto& entry) { return entry->inspection.state == InspectionState::kDone; };
  while (static_cast<size_t>(std::count_if(entries_.begin(), entries_.end(), is_done)) > kKept) {
    entries_.erase(std::find_if(entries_.begin(), entries_.end(), is_done));
  }
}

Result<Inspection> InspectionDesk::Start(const InspectionSpec& spec, const Caller& caller) {
  auto entry = std::make_shared<Entry>();
  entry->spec = spec;
  entry->caller = caller;
  entry->inspection.id = RandomName(kIdLength);
  const MutexLock lock(mutex_);
  DropOld();
  const auto waiting = std::count_if(entries_.begin(), entries_.end(), [](const auto& other) {
    return other->inspection.state == InspectionState::kQueued;
  });
  if (static_cast<size_t>(waiting) >= kWaiting) {
    return Error{ErrorCode::kLimitExceeded, "too many inspections are waiting on this node: try again later"};
  }
  entries_.push_back(entry);
  changed_.notify_all();
  return entry->inspection;
}

Result<std::string> InspectionDesk::Get(const std::string& id, const Caller& caller, bool* is_done) {
  const MutexLock lock(mutex_);
  DropOld();
  for (const auto& entry : entries_) {
    if (entry->inspection.id != id || !IsSame(entry->caller, caller)) continue;
    *is_done = entry->inspection.state == InspectionState::kDone;
    if (entry->error) return *entry->error;
    if (*is_done) return entry->result;
    Inspection state = entry->inspection;
    state.now_unix_ns = UnixNow();
    return ToJson(state);
  }
  return Error{ErrorCode::kNotFound,
               fmt::format("you have no inspection {} on this node: an answer is kept for {} s, or until it is fetched",
                           id, kKeptNs / kSecondNs)};
}

void InspectionDesk::Forget(const std::string& id) {
  const MutexLock lock(mutex_);
  std::erase_if(entries_, [&](const auto& entry) { return entry->inspection.id == id; });
}

void InspectionDesk::Run(const std::stop_token& stop) {
  const auto next = [this]() LOCKSTEP_REQUIRES(mutex_) -> std::shared_ptr<Entry> {
    for (const auto& entry : entries_) {
      if (entry->inspection.state == InspectionState::kQueued) return entry;
    }
    return nullptr;
  };
  while (!stop.stop_requested()) {
    std::shared_ptr<Entry> entry;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock, stop, [&]() LOCKSTEP_REQUIRES(mutex_) { return (entry = next()) != nullptr; });
      if (stop.stop_requested() || entry == nullptr) return;
      entry->inspection.state = InspectionState::kRunning;
    }
    // Only this thread touches spec and caller from here on.
    Result<Inspection> looked = look_(entry->spec, [&](uint32_t uid) {
      return entry->caller.may_trace_all || (entry->caller.uid && *entry->caller.uid == uid);
    });
    std::string result;
    if (looked) {
      looked->id = entry->inspection.id;
      looked->state = InspectionState::kDone;
      looked->now_unix_ns = UnixNow();
      result = ToJson(*looked);
    }
    const MutexLock lock(mutex_);
    entry->inspection.state = InspectionState::kDone;
    entry->done_ns = now_ns_();
    if (looked) {
      entry->result = std::move(result);
    } else {
      entry->error = looked.error();
    }
    DropOld();
  }
}

}  // namespace lockstep::agent
