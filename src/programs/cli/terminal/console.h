#pragma once

#include <chrono>
#include <ostream>
#include <string>

namespace lockstep::ingest {
class TeamEvidence;
class TeamIngest;
}  // namespace lockstep::ingest

namespace lockstep::cli {

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
