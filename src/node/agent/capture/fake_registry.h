#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/small_file.h"
#include "node/agent/kineto/config_text.h"
#include "node/agent/kineto/registry.h"

namespace lockstep::agent {

inline constexpr uint32_t kJobUid = 12345;  ///< Of a job of somebody else.

/// For tests: a child that sleeps until it is ended.
class TestChild {
 public:
  explicit TestChild(uint32_t uid = geteuid()) {
    pid_ = fork();
    if (pid_ == 0) {
      if (uid != geteuid() && (setgid(uid) != 0 || setuid(uid) != 0)) _exit(1);
      execl("/bin/sleep", "sleep", "600", static_cast<char*>(nullptr));
      _exit(1);
    }
    // Until it is that program: its user and its dumpability are set then.
    for (int i = 0; i < 60'000; ++i) {
      char path[64];
      const ssize_t length = readlink(fmt::format("/proc/{}/exe", pid_).c_str(), path, sizeof(path));
      if (length > 5 && std::string(path, length).find("/sleep") != std::string::npos) break;
      if (length > 7 && std::string(path, length).find("coreutils") != std::string::npos) break;
      usleep(1000);
    }
  }
  TestChild(const TestChild&) = delete;
  TestChild& operator=(const TestChild&) = delete;
  ~TestChild() { End(); }
  void End() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

/// For tests: what a Kineto endpoint knows, driven by hand. Real files: a "process" writes where its text says.
class FakeRegistry : public Registry {
 public:
  static control::Process ProcessOf(pid_t pid, std::optional<int32_t> rank = std::nullopt) {
    control::Process process;
    process.pid = pid;
    const std::string text = ReadSmallFile(fmt::format("/proc/{}/stat", pid)).value_or("");
    std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
    std::string field;
    for (int i = 3; i <= 22 && fields >> field; ++i) {
      if (i == 22) process.start_ticks = std::strtoull(field.c_str(), nullptr, 10);
    }
    struct ::stat entry = {};
    if (::stat(fmt::format("/proc/{}", pid).c_str(), &entry) == 0) process.uid = entry.st_uid;
    process.id = fmt::format("{}-{}", pid, process.start_ticks);
    process.client_pids = {pid};
    process.rank = rank;
    process.job_id = "77";
    process.device = "cpu";
    process.torch_version = "2.13.0+cpu";
    process.last_poll_unix_ns = 1;
    return process;
  }

  void Register(const control::Process& process) {
    {
      const MutexLock lock(mutex_);
      processes_[process.id] = process;
    }
    Tell({.kind = RegistryEvent::Kind::kRegistered, .process_id = process.id});
  }
  void Forget(const std::string& id) {
    const MutexLock lock(mutex_);
    processes_.erase(id);
    offers_.erase(id);
  }
  /// It ends, as the event says.
  void End(const std::string& id, const control::ProcessEnd& end) {
    Tell({.kind = RegistryEvent::Kind::kEnded, .process_id = id, .unix_ns = end.unix_ns, .end = end});
    Forget(id);
  }
  void Change(const std::string& id, const std::function<void(control::Process*)>& change) {
    const MutexLock lock(mutex_);
    change(&processes_.at(id));
  }
  /// The process polls: its offer's text, after the event was told.
  std::optional<std::string> Deliver(const std::string& id, int64_t unix_ns) {
    Offer offer;
    {
      const MutexLock lock(mutex_);
      const auto found = offers_.find(id);
      if (found == offers_.end()) return std::nullopt;
      offer = found->second;
      offers_.erase(found);
    }
    Tell({.kind = RegistryEvent::Kind::kDelivered, .process_id = id, .token = offer.token, .unix_ns = unix_ns});
    return offer.text;
  }
  bool HasOffer(const std::string& id) const {
    const MutexLock lock(mutex_);
    return offers_.count(id) > 0;
  }
  std::optional<Offer> OfferOf(const std::string& id) const {
    const MutexLock lock(mutex_);
    const auto found = offers_.find(id);
    return found == offers_.end() ? std::nullopt : std::optional(found->second);
  }
  size_t placed_count() const {
    const MutexLock lock(mutex_);
    return placed_count_;
  }
  size_t withdrawn_count() const {
    const MutexLock lock(mutex_);
    return withdrawn_count_;
  }

  static std::string LogFileOf(const std::string& text) {
    const std::string key = "ACTIVITIES_LOG_FILE=";
    const size_t begin = text.find(key);
    return begin == std::string::npos ? ""
                                      : text.substr(begin + key.size(), text.find('\n', begin) - begin - key.size());
  }
  static std::string FinalOf(const std::string& text, const control::Process& process) {
    return FinalTracePath(LogFileOf(text), process.client_pids.front());
  }
  /// As Kineto does: under the temporary name, then renamed.
  static void WriteTrace(const std::string& text, const control::Process& process, const std::string& content) {
    const std::string path = FinalOf(text, process);
    std::ofstream(path + ".tmp") << content;
    if (geteuid() != process.uid && chown((path + ".tmp").c_str(), process.uid, process.uid) != 0) return;
    rename((path + ".tmp").c_str(), path.c_str());
  }

  std::vector<control::Process> Processes() const override {
    const MutexLock lock(mutex_);
    std::vector<control::Process> processes;
    for (const auto& [id, process] : processes_) processes.push_back(process);
    return processes;
  }
  std::optional<control::Process> Find(const std::string& id) const override {
    const MutexLock lock(mutex_);
    const auto found = processes_.find(id);
    return found == processes_.end() ? std::nullopt : std::optional(found->second);
  }
  Status Place(const std::string& id, Offer offer) override {
    const MutexLock lock(mutex_);
    if (processes_.count(id) == 0) return Error{.code = ErrorCode::kNotFound, .message = "not registered"};
    if (offers_.count(id) > 0) return Error{.code = ErrorCode::kFailedPrecondition, .message = "one is queued"};
    offers_[id] = std::move(offer);
    ++placed_count_;
    return {};
  }
  bool Withdraw(const std::string& id, const std::string& token) override {
    const MutexLock lock(mutex_);
    ++withdrawn_count_;
    const auto found = offers_.find(id);
    if (found == offers_.end() || found->second.token != token) return false;
    offers_.erase(found);
    return true;
  }
  void Stop(const std::string& id, const std::string& trace_id) override {
    const MutexLock lock(mutex_);
    stopped_[id] = trace_id;
  }
  std::string StoppedOf(const std::string& id) const {
    const MutexLock lock(mutex_);
    const auto found = stopped_.find(id);
    return found == stopped_.end() ? "" : found->second;
  }
  std::string Note(const std::string& id) const override {
    const MutexLock lock(mutex_);
    const auto found = notes_.find(id);
    return found == notes_.end() ? "" : found->second;
  }
  void SetNote(const std::string& id, const std::string& note) {
    const MutexLock lock(mutex_);
    notes_[id] = note;
  }
  void Listen(std::function<void(const RegistryEvent&)> listener) override {
    const MutexLock lock(listener_mutex_);
    listener_ = std::move(listener);
  }

 private:
  void Tell(const RegistryEvent& event) {
    const MutexLock lock(listener_mutex_);
    if (listener_) listener_(event);
  }
  mutable Mutex mutex_;
  std::map<std::string, control::Process> processes_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<std::string, Offer> offers_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<std::string, std::string> stopped_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<std::string, std::string> notes_ LOCKSTEP_GUARDED_BY(mutex_);
  size_t placed_count_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  size_t withdrawn_count_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  Mutex listener_mutex_;
  std::function<void(const RegistryEvent&)> listener_ LOCKSTEP_GUARDED_BY(listener_mutex_);
};

}  // namespace lockstep::agent
