#include "programs/cli/terminal/interrupt.h"

#include <csignal>

namespace lockstep::cli {
namespace {

std::atomic<bool> was_interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void NoteInterrupt(int signal_number) {
  was_interrupted = true;
  std::signal(signal_number, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  was_interrupted = false;
  int_ = std::signal(SIGINT, NoteInterrupt);
  term_ = std::signal(SIGTERM, NoteInterrupt);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, int_);
  std::signal(SIGTERM, term_);
}

const std::atomic<bool>& InterruptGuard::interrupted() { return was_interrupted; }

}  // namespace lockstep::cli
