#pragma once

#include <chrono>
#include <functional>
#include <ostream>
#include <string>

#include "ingest/job/ingest_run.h"

namespace lockstep::cli {

/// "reading  3/8 files  412 MB/s  2.1 M events/s  4.2 s left": how far an ingest is, `elapsed_s` after its start.
/// Remaining time is from the compressed bytes read so far; left out while unknown.
std::string ProgressText(const ingest::IngestProgress& progress, double elapsed_s);

/// Shows how far an ingest or other work is on standard error: nothing in the first second; then, on a terminal, one
/// line rewritten at most ten times a second and wiped at the end, elsewhere a line every ten seconds. Calls come one
/// at a time (IngestOptions). While the line stands, SIGINT ends it with a line break before the program dies of it.
class Progress {
 public:
  Progress(std::ostream& err, bool is_terminal, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void Update(const ingest::IngestProgress& progress);
  /// The same for any other work: `text` says how far it is, given the seconds since the start.
  void Show(const std::function<std::string(double)>& text);
  /// Wipes the line; nothing is shown after it.
  void Finish();

 private:
  using Clock = std::chrono::steady_clock;
  std::ostream& err_;
  const bool is_terminal_;
  bool done_;
  bool shown_ = false;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point next_;
};

/// Makes SIGINT end a standing progress line before the program dies of the signal, and SIGPIPE an error of write().
void InstallSignalHandlers();

}  // namespace lockstep::cli
