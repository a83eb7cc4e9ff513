#pragma once

#include <spdlog/sinks/sink.h>

#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "inside/log_write/log_sink.h"
#include "inside/logger/logger.h"
#include "model/log_line/line.h"

namespace lockstep {

/// One file for each process, made with its first line. Patterns and formatters of spdlog have no effect.
class RankFileSink : public spdlog::sinks::sink {
 public:
  explicit RankFileSink(const LoggerOptions& options);
  ~RankFileSink() override;

  void log(const spdlog::details::log_msg& message) override;
  void flush() override;
  void set_pattern(const std::string& /*pattern*/) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter> /*formatter*/) override {}

  std::string path();

  /// Around fork.
  void Lock() LOCKSTEP_ACQUIRE(mutex_) { mutex_.lock(); }
  void Unlock() LOCKSTEP_RELEASE(mutex_) { mutex_.unlock(); }
  /// In the child: what waits is the parent's.
  void BecomeChild() LOCKSTEP_REQUIRES(mutex_);

 private:
  bool Open() LOCKSTEP_REQUIRES(mutex_);

  const LoggerOptions options_;
  Mutex mutex_;
  std::optional<logs::LogSink> sink_ LOCKSTEP_GUARDED_BY(mutex_);
  bool has_failed_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  bool is_child_ LOCKSTEP_GUARDED_BY(mutex_) = false;  ///< Of a fork: it is given no thread.
  size_t waiting_bytes_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
};

/// The same lines on standard error.
class RankConsoleSink : public spdlog::sinks::sink {
 public:
  explicit RankConsoleSink(std::optional<int32_t> rank);
  void log(const spdlog::details::log_msg& message) override;
  void flush() override {}
  void set_pattern(const std::string& /*pattern*/) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter> /*formatter*/) override {}

 private:
  Mutex mutex_;
  logs::LineWriter writer_ LOCKSTEP_GUARDED_BY(mutex_);
  std::string line_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep
