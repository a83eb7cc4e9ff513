#pragma once

#include <spdlog/sinks/sink.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

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
  void Lock() { mutex_.lock(); }
  void Unlock() { mutex_.unlock(); }
  /// In the child, locked: what waits is the parent's.
  void BecomeChild();

 private:
  bool Open();

  const LoggerOptions options_;
  std::mutex mutex_;
  std::optional<logs::LogSink> sink_;  ///< Guarded by `mutex_`, as is all below.
  bool has_failed_ = false;
  bool is_child_ = false;  ///< Of a fork: it is given no thread.
  size_t waiting_bytes_ = 0;
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
  std::mutex mutex_;
  logs::LineWriter writer_;  ///< Guarded by `mutex_`.
  std::string line_;
};

}  // namespace lockstep
