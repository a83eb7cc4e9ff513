#include "inside/logger/rank_sink.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <vector>

#include "inside/launch/environment.h"
#include "inside/launch/job_id.h"
#include "model/log_line/log_name.h"

namespace lockstep {
namespace {

constexpr size_t kMostWaitingBytes = size_t{64} << 10;

logs::Level LevelOf(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace: return logs::Level::kTrace;
    case spdlog::level::debug: return logs::Level::kDebug;
    case spdlog::level::warn: return logs::Level::kWarning;
    case spdlog::level::err: return logs::Level::kError;
    case spdlog::level::critical: return logs::Level::kFatal;
    default: return logs::Level::kInfo;
  }
}

/// The message's own wall clock; the monotonic one is read now.
logs::LineTime TimeOf(const spdlog::details::log_msg& message) {
  logs::LineTime time = logs::LineTime::Now();
  time.unix_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(message.time.time_since_epoch()).count();
  return time;
}

std::string SourceOf(const spdlog::details::log_msg& message) {
  return logs::CleanWord({message.logger_name.data(), message.logger_name.size()});
}

void Tell(const std::string& text) {
  const std::string line = "lockstep: " + text + "\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

/// All sinks of the process: none may be in the middle of a line when it forks. Never destroyed: threads may log while
/// the process ends.
struct AllSinks {
  Mutex mutex;
  std::vector<RankFileSink*> sinks LOCKSTEP_GUARDED_BY(mutex);

  static AllSinks& Get() {
    static AllSinks* all = [] {
      // Any number of mutexes, held from one of these functions to the next: the analysis can follow neither.
      ::pthread_atfork(
          []() LOCKSTEP_NO_THREAD_SAFETY_ANALYSIS {
            Get().mutex.lock();
            for (RankFileSink* sink : Get().sinks) sink->Lock();
          },
          []() LOCKSTEP_NO_THREAD_SAFETY_ANALYSIS {
            for (RankFileSink* sink : Get().sinks) sink->Unlock();
            Get().mutex.unlock();
          },
          []() LOCKSTEP_NO_THREAD_SAFETY_ANALYSIS {
            for (RankFileSink* sink : Get().sinks) {
              sink->BecomeChild();
              sink->Unlock();
            }
            Get().mutex.unlock();
          });
      return new AllSinks;
    }();
    return *all;
  }
};

}  // namespace

RankFileSink::RankFileSink(const LoggerOptions& options) : options_(options) {
  const MutexLock lock(AllSinks::Get().mutex);
  AllSinks::Get().sinks.push_back(this);
}

RankFileSink::~RankFileSink() {
  {
    const MutexLock lock(AllSinks::Get().mutex);
    std::erase(AllSinks::Get().sinks, this);
  }
  RankFileSink::flush();
}

void RankFileSink::BecomeChild() {
  sink_.reset();
  is_child_ = true;
  has_failed_ = false;
  waiting_bytes_ = 0;
}

bool RankFileSink::Open() {
  if (sink_) return true;
  if (has_failed_) return false;
  const logs::LogName name = {.rank = options_.rank,
                              .host = logs::HostName(),
                              .job = launch::JobId(launch::Environment::Own()),
                              .start_unix_ns = logs::LineTime::Now().unix_ns,
                              .pid = ::getpid(),
                              .form = options_.is_json ? logs::LineForm::kJson : logs::LineForm::kText};
  auto file = logs::RotatingFile::Create({.path = (std::filesystem::path(options_.folder) / name.ToText()).string(),
                                          .max_bytes = options_.max_bytes,
                                          .file_count = options_.file_count,
                                          .compresses = options_.compresses && !is_child_});
  if (!file) {
    has_failed_ = true;
    Tell(fmt::format("no log is written: {}; the job goes on", file.error().ToString()));
    return false;
  }
  sink_.emplace(std::move(*file), logs::LineWriter(name.form, name.rank, name.host), Tell);
  return true;
}

void RankFileSink::log(const spdlog::details::log_msg& message) {
  const MutexLock lock(mutex_);
  if (!Open()) return;
  const logs::LineTime time = TimeOf(message);
  sink_->Append(time, LevelOf(message.level), SourceOf(message), {message.payload.data(), message.payload.size()});
  waiting_bytes_ += message.payload.size() + 80;
  const bool waits = options_.is_buffered && message.level < spdlog::level::warn && waiting_bytes_ < kMostWaitingBytes;
  if (waits) return;
  sink_->Flush(time);
  waiting_bytes_ = 0;
}

void RankFileSink::flush() {
  const MutexLock lock(mutex_);
  if (!sink_) return;
  sink_->Flush(logs::LineTime::Now());
  waiting_bytes_ = 0;
}

std::string RankFileSink::path() {
  const MutexLock lock(mutex_);
  return Open() ? sink_->path() : "";
}

RankConsoleSink::RankConsoleSink(std::optional<int32_t> rank)
    : writer_(logs::LineForm::kText, rank, logs::HostName()) {}

void RankConsoleSink::log(const spdlog::details::log_msg& message) {
  const MutexLock lock(mutex_);
  line_.clear();
  writer_.Append(TimeOf(message), LevelOf(message.level), SourceOf(message),
                 {message.payload.data(), message.payload.size()}, &line_);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line_.data(), line_.size());
}

}  // namespace lockstep
