#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "present/top/screen.h"

namespace lockstep::top {

/// The terminal as a screen, by ncurses, while this lives; as it was before afterwards, also when a signal ends the
/// process (SIGINT, SIGTERM, SIGHUP, SIGQUIT end it in order, SIGSEGV and its kin restore it first), an exception comes
/// by or Ctrl-Z stops it. One at a time; one thread.
class Terminal {
 public:
  struct Options {
    bool colour = true;
    bool unicode = true;  ///< Off: what is not ASCII becomes '?'.
  };
  /// Errors: kFailedPrecondition: no terminal, or none that can be drawn on (TERM).
  static Result<std::unique_ptr<Terminal>> Open(const Options& options);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  int width() const;
  int height() const;
  void Draw(const std::vector<ScreenLine>& lines);
  /// Waits for a key for so long. nullopt: none came, or one that means nothing. `resized` is set when the size changed
  /// or the process was stopped meanwhile: everything is to be drawn anew.
  std::optional<KeyPress> Wait(int64_t wait_ns, bool* resized);
  /// The signal that wants the process to end; 0: none came.
  static int ending_signal();

 private:
  struct State;
  explicit Terminal(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::top
