#include "node/agent/daemon/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <cstdlib>
#include <utility>

#include "base/mutex.h"
#include "base/utf8.h"

namespace lockstep::agent {
namespace {

spdlog::level::level_enum LevelOf(const std::string& level) { return spdlog::level::from_str(level); }

class SpdLog : public Log {
 public:
  SpdLog(std::string file, const std::string& level) : file_(std::move(file)), logger_("lockstepd") {
    logger_.set_level(LevelOf(level));
    logger_.flush_on(spdlog::level::debug);  // A line that is said is there, whatever comes next.
    logger_.set_error_handler([](const std::string&) {});
  }

  Status OpenSink() {
    try {
      spdlog::sink_ptr sink;
      if (file_.empty()) {
        sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
      } else {
        sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file_);
      }
      // The journal has times of its own, and takes the level from the line's beginning. Source: sd-daemon(3).
      const bool is_journal = file_.empty() && std::getenv("JOURNAL_STREAM") != nullptr;
      sink->set_pattern(is_journal ? "%v" : "%Y-%m-%dT%H:%M:%S.%e%z %l %v");
      const MutexLock lock(mutex_);
      is_journal_ = is_journal;
      logger_.sinks() = {std::move(sink)};
    } catch (const spdlog::spdlog_ex& error) {
      return Error{ErrorCode::kIo, std::string("the log cannot be opened: ") + error.what(), file_};
    }
    return {};
  }

  void Write(LogLevel level, const std::string& line) override {
    constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                     spdlog::level::err};
    constexpr const char* kPriorities[] = {"<7>", "<6>", "<4>", "<3>"};
    const auto idx = static_cast<size_t>(level);
    const MutexLock lock(mutex_);
    logger_.log(kLevels[idx], (is_journal_ ? kPriorities[idx] : "") + Printable(line));
  }

  Status Reopen(const std::string& level) override {
    RETURN_IF_ERROR(OpenSink());
    logger_.set_level(LevelOf(level));
    return {};
  }

 private:
  const std::string file_;
  Mutex mutex_;  // Held while writing: sinks may be exchanged.
  spdlog::logger logger_;
  bool is_journal_ LOCKSTEP_GUARDED_BY(mutex_) = false;
};

}  // namespace

Result<std::unique_ptr<Log>> Log::Open(const std::string& file, const std::string& level) {
  auto log = std::make_unique<SpdLog>(file, level);
  RETURN_IF_ERROR(log->OpenSink());
  return std::unique_ptr<Log>(std::move(log));
}

}  // namespace lockstep::agent
