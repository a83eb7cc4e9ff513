#include "present/live_site/action_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <set>
#include <utility>

#include "base/now.h"
#include "present/live_site/access.h"
#include "present/report/json_stream.h"

namespace lockstep::live_site {
namespace {

using report::JsonRow;

const char* FolderOf(ActionKind kind) { return kind == ActionKind::kCapture ? "captures/" : "hangs/"; }

void WriteAction(JsonRow& row, const Action& action) {
  row.StartObject().Key("id").Text(action.id).Key("job_id").Text(action.job_id);
  row.Key("state").Text(ActionStateName(action.state)).Key("reason").TextOrNull(action.reason);
  row.Key("asked_unix_ns").Int(action.asked_unix_ns).Key("finished_unix_ns").Optional(action.finished_unix_ns);
  row.Key("folder").TextOrNull(action.folder).Key("sentence").TextOrNull(action.sentence);
  row.Key("url");
  action.state == ActionState::kReady ? row.Text(FolderOf(action.kind) + action.id + "/") : row.Null();
  row.Key("is_partial").Bool(action.is_partial);
  if (action.kind == ActionKind::kCapture) {
    row.Key("iterations").Optional(action.iterations);
    row.Key("duration_ns").Optional(action.duration_ns).Key("ranks");
    if (action.ranks.empty()) {
      row.Null();
    } else {
      row.List(action.ranks);
    }
    row.Key("target_count").Uint(action.target_count).Key("kept_count").Uint(action.kept_count);
  } else {
    row.Key("done_count").Uint(action.done_count).Key("total_count").Uint(action.total_count);
    row.Key("kind").TextOrNull(action.verdict).Key("confidence").Optional(action.confidence);
  }
  row.EndObject();
}

}  // namespace

const char* ActionStateName(ActionState state) {
  constexpr std::array<const char*, 9> kNames = {"waiting", "running", "fetching",  "collecting", "analysing",
                                                 "ready",   "failed",  "cancelled", "dropped"};
  return kNames[static_cast<size_t>(state)];
}

struct ActionDesk::Entry {
  Action action;  // Guarded by the desk's mutex_, as the pages.
  std::shared_ptr<const Pages> pages;
  uint64_t page_bytes = 0;
  std::atomic<bool> cancelled = false;
  std::atomic<bool> is_over = false;  // The thread is about to end.
  std::jthread thread;

  void Drop() {
    pages = nullptr;
    action.state = ActionState::kDropped;
  }
};

class ActionDesk::EntryDesk : public ActionDesk::Desk {
 public:
  EntryDesk(ActionDesk& desk, Entry& entry) : desk_(desk), entry_(entry) {}

  void Change(const std::function<void(Action&)>& change) override {
    {
      const MutexLock lock(desk_.mutex_);
      const Action before = entry_.action;
      change(entry_.action);
      if (entry_.action == before) return;
    }
    desk_.on_change_();
  }
  const std::atomic<bool>& cancelled() const override { return entry_.cancelled; }
  void Hold(uint64_t bytes) override {
    const MutexLock lock(desk_.mutex_);
    entry_.page_bytes = bytes;
  }

 private:
  ActionDesk& desk_;
  Entry& entry_;
};

ActionDesk::ActionDesk(std::function<void()> on_change, std::function<void(const Action&)> on_end)
    : on_change_(std::move(on_change)), on_end_(std::move(on_end)) {}

ActionDesk::~ActionDesk() {
  End(0);
  for (const auto& entry : entries_) {
    if (entry->thread.joinable()) entry->thread.join();
  }
}

Result<std::string> ActionDesk::Begin(Action action, Work work) {
  std::vector<std::jthread> ended;  // Joined when the lock is free again, however this ends.
  const auto entry = std::make_shared<Entry>();
  {
    const MutexLock lock(mutex_);
    if (ends_) return Error{ErrorCode::kCancelled, "lockstep serve is ending"};
    size_t under_way = 0;
    for (const auto& other : entries_) {
      if (other->is_over && other->thread.joinable()) ended.push_back(std::move(other->thread));
      if (other->action.finished_unix_ns) continue;
      ++under_way;
      const bool is_same_job =
          other->action.job_id == action.job_id || other->action.job_id.empty() || action.job_id.empty();
      if (other->action.kind == action.kind && is_same_job) {
        return Error{ErrorCode::kFailedPrecondition,
                     action.kind == ActionKind::kCapture
                         ? "a capture of this job is under way: cancel it, or wait"
                         : "evidence of this job is being collected: wait for the result"};
      }
    }
    if (under_way >= kMostUnderWay) {
      return Error{ErrorCode::kLimitExceeded, "too many actions are running: wait until one has ended"};
    }
    action.id = RandomName();
    action.asked_unix_ns = UnixNow();
    entry->action = std::move(action);
    entries_.push_front(entry);
    DropOld();
    try {
      entry->thread = std::jthread([this, entry, work = std::move(work)] { Run(entry, work); });
    } catch (const std::exception& error) {  // Of a container's limit of pids, most likely.
      entries_.pop_front();
      return Error{ErrorCode::kLimitExceeded, fmt::format("no thread could be started: {}", error.what())};
    }
  }
  ended.clear();
  on_change_();
  return entry->action.id;  // Constant once it is there.
}

void ActionDesk::Run(const std::shared_ptr<Entry>& entry, const Work& work) {
  EntryDesk desk(*this, *entry);
  Result<Pages> pages = Error{ErrorCode::kCancelled, ""};
  try {
    pages = work(desk);
  } catch (const std::exception& error) {  // Memory, most likely: the others go on.
    pages = Error{ErrorCode::kLimitExceeded, error.what()};
  }
  Action action;
  {
    const MutexLock lock(mutex_);
    Action& now = entry->action;
    now.finished_unix_ns = UnixNow();
    if (pages) {
      now.state = ActionState::kReady;
      entry->pages = std::make_shared<const Pages>(std::move(*pages));
    } else {
      now.state = entry->cancelled ? ActionState::kCancelled : ActionState::kFailed;
      now.reason = pages.error().ToString();
    }
    DropOld();
    action = now;
  }
  on_change_();
  on_end_(action);
  entry->is_over = true;
}

/// What is under way stays.
void ActionDesk::DropOld() {
  uint64_t bytes = 0;  // Newest first, of both kinds.
  std::set<ActionKind> kept;
  for (const auto& entry : entries_) {
    if (entry->pages == nullptr) continue;
    if (kept.insert(entry->action.kind).second || bytes + entry->page_bytes <= kMostPageBytes) {
      bytes += entry->page_bytes;
    } else {
      entry->Drop();
    }
  }
  for (const ActionKind kind : {ActionKind::kCapture, ActionKind::kHang}) {
    size_t listed = 0;
    size_t pages = 0;
    for (auto at = entries_.begin(); at != entries_.end();) {
      Entry& entry = **at;
      const auto here = at++;
      if (entry.action.kind != kind) continue;
      if (entry.pages != nullptr && ++pages > kMostPages) entry.Drop();
      // A thread that has not been joined yet keeps its entry.
      if (++listed > kMostListed && entry.is_over && !entry.thread.joinable()) entries_.erase(here);
    }
  }
}

Status ActionDesk::Cancel(ActionKind kind, const std::string& id) {
  const MutexLock lock(mutex_);
  for (const auto& entry : entries_) {
    if (entry->action.kind != kind || entry->action.id != id) continue;
    if (entry->action.finished_unix_ns) return Error{ErrorCode::kFailedPrecondition, "it has ended already"};
    entry->cancelled = true;
    return {};
  }
  return Error{ErrorCode::kNotFound, "there is none of that id"};
}

bool ActionDesk::End(int64_t patience_ns) {
  std::vector<std::shared_ptr<Entry>> entries;
  {
    const MutexLock lock(mutex_);
    ends_ = true;
    entries.assign(entries_.begin(), entries_.end());
  }
  for (const auto& entry : entries) entry->cancelled = true;
  const int64_t until_ns = SteadyNow() + patience_ns;
  const auto all_over = [&] {
    return std::all_of(entries.begin(), entries.end(), [](const auto& entry) { return entry->is_over.load(); });
  };
  while (!all_over() && SteadyNow() < until_ns) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return all_over();
}

std::shared_ptr<const Pages> ActionDesk::FindPages(ActionKind kind, const std::string& id) const {
  const MutexLock lock(mutex_);
  for (const auto& entry : entries_) {
    if (entry->action.kind == kind && entry->action.id == id) return entry->pages;
  }
  return nullptr;
}

std::string ActionDesk::Json() const {
  const MutexLock lock(mutex_);
  JsonRow row;
  for (const ActionKind kind : {ActionKind::kCapture, ActionKind::kHang}) {
    row.Key(kind == ActionKind::kCapture ? "captures" : "hangs").StartArray();
    size_t listed = 0;
    for (const auto& entry : entries_) {
      if (entry->action.kind == kind && ++listed <= kMostListed) WriteAction(row, entry->action);
    }
    row.EndArray();
  }
  return std::string(row.Finish());
}

}  // namespace lockstep::live_site
