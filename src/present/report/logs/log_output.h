#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "ingest/logs/log_fold.h"
#include "present/report/style.h"

namespace lockstep::report {

struct LogSummary {
  logs::LogCounts counts;  ///< Over all logs.
  size_t log_count = 0;
  bool is_aligned = false;  ///< Clocks were corrected; else they are the hosts' own.
};

/// Writes lines as `lockstep logs` shows them. Buffers until Flush.
class LogOutput {
 public:
  explicit LogOutput(std::ostream& out) : out_(out) {}
  virtual ~LogOutput() { LogOutput::Flush(); }
  LogOutput(const LogOutput&) = delete;
  LogOutput& operator=(const LogOutput&) = delete;

  virtual void Line(const logs::FoldedLine& line) = 0;
  virtual void FirstError(const logs::FoldedLine& line) { Line(line); }
  /// What JSON ends with; text says it on standard error.
  virtual void End(const LogSummary& /*summary*/) {}
  void Flush();

 protected:
  void WriteFull();

  std::string buffer_;

 private:
  std::ostream& out_;
};

/// "2026-11-23T02:15:03.123456Z E ranks 0-6: text". Text that is no UTF-8, control characters and terminals' commands
/// are taken out. A line without time has '-' there.
class LogText : public LogOutput {
 public:
  LogText(std::ostream& out, bool colour) : LogOutput(out), colour_(colour) {}
  void Line(const logs::FoldedLine& line) override;

 private:
  void AppendTime(const logs::FoldedLine& line);
  void AppendText(const logs::FoldedLine& line);

  bool colour_;
  std::string date_;
  int64_t second_ = INT64_MIN;
};

/// lockstep.logs/1: an object a line (docs/json.md).
class LogJson : public LogOutput {
 public:
  using LogOutput::LogOutput;
  void Line(const logs::FoldedLine& line) override { Write("line", line); }
  void FirstError(const logs::FoldedLine& line) override { Write("first_error", line); }
  void End(const LogSummary& summary) override;

 private:
  void Write(const char* event, const logs::FoldedLine& line);
};

/// "0-6,9"
void AppendRanks(const std::vector<int32_t>& ranks, std::string* out);

}  // namespace lockstep::report
