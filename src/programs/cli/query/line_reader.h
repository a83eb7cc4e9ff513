#pragma once

#include <memory>
#include <optional>
#include <string>

namespace lockstep::cli {

/// Reads lines that a person types, or a script pipes in.
class LineReader {
 public:
  virtual ~LineReader() = default;
  /// Without the line break; no value at the end of input. An interrupt ends the line and sets interrupted().
  virtual std::optional<std::string> Read(const std::string& prompt) = 0;
  virtual bool interrupted() const { return false; }
  /// Remembers what was asked, for the arrow keys.
  virtual void Remember(const std::string&) {}
};

/// On a terminal with editing, and a history kept in `history_file` (empty: not kept); else plain lines, no prompt.
std::unique_ptr<LineReader> MakeLineReader(bool terminal, const std::string& history_file);

/// Where prompts keep their history: $XDG_STATE_HOME/lockstep/NAME, else ~/.local/state/lockstep/NAME; the folder is
/// made, for its owner alone. Empty where neither is known.
std::string HistoryFile(const std::string& name);

}  // namespace lockstep::cli
