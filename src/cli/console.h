#pragma once

#include <chrono>
#include <ostream>
#include <streambuf>
#include <string>
#include <vector>

namespace lockstep::ingest {
class TeamEvidence;
class TeamIngest;
}  // namespace lockstep::ingest

namespace lockstep::cli {

/// Buffered writing to a file descriptor that remembers the first error and then swallows everything: a report whose
/// reader has gone (`| head`) ends quietly, a full disk is told once at the end. Not thread-safe.
class FdBuffer : public std::streambuf {
 public:
  explicit FdBuffer(int fd);
  ~FdBuffer() override;
  FdBuffer(const FdBuffer&) = delete;
  FdBuffer& operator=(const FdBuffer&) = delete;
  /// errno of the first failed write; 0 = none.
  int error() const { return error_; }

 protected:
  int_type overflow(int_type c) override;
  int sync() override;

 private:
  int fd_;
  int error_ = 0;
  std::vector<char> buffer_;
};

/// How often a line on a terminal that says how far something is is rewritten at most.
inline constexpr auto kTerminalPeriod = std::chrono::milliseconds(100);

/// When to use colour: --color, with the environment's word where it says `auto`.
enum class ColourMode : unsigned char { kAuto, kAlways, kNever };

/// Standard output and error of the program, and what is known of what is behind them.
struct Console {
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  /// `lockstep-mpi`: the processes that read traces and evidence. Null: this one alone.
  ingest::TeamIngest* team = nullptr;
  ingest::TeamEvidence* team_evidence = nullptr;

  /// kAuto: on a terminal unless NO_COLOR is set or TERM is dumb; CLICOLOR_FORCE other than 0 forces it.
  bool UseColour(ColourMode mode) const;
  /// Columns of the terminal on standard output, at most 120; 80 elsewhere.
  int Width() const;
  /// Columns of the terminal on standard output, at least 40; 80 elsewhere.
  int TerminalWidth() const;
};

/// True when the locale's character set is UTF-8 (setlocale was called before).
bool LocaleIsUtf8();

}  // namespace lockstep::cli
