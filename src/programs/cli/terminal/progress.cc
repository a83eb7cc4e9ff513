#include "programs/cli/terminal/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>

#include "programs/cli/terminal/console.h"

namespace lockstep::cli {
namespace {

constexpr auto kSilence = std::chrono::seconds(1);
constexpr auto kLogPeriod = std::chrono::seconds(10);

volatile std::sig_atomic_t line_stands = 0;  // read by the signal handler

void EndLineAndDie(int signal_number) {
  if (line_stands != 0) {
    const ssize_t ignored = ::write(STDERR_FILENO, "\n", 1);
    static_cast<void>(ignored);
  }
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

std::string TimeLeftText(double seconds) {
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  return fmt::format("{:.0f} min", seconds / 60);
}

}  // namespace

std::string ProgressText(const ingest::IngestProgress& progress, double elapsed_s) {
  std::string text = fmt::format("reading  {}/{} files", progress.finished_file_count, progress.file_count);
  if (elapsed_s <= 0) return text;
  const double rate = static_cast<double>(progress.json_bytes) / elapsed_s;
  text += rate >= 1e9 ? fmt::format("  {:.2f} GB/s", rate / 1e9) : fmt::format("  {:.0f} MB/s", rate / 1e6);
  text += fmt::format("  {:.1f} M events/s", static_cast<double>(progress.event_count) / elapsed_s / 1e6);
  if (progress.consumed_bytes > 0 && progress.total_bytes >= progress.consumed_bytes) {
    const double left = static_cast<double>(progress.total_bytes - progress.consumed_bytes);
    text += fmt::format("  {} left", TimeLeftText(left * elapsed_s / static_cast<double>(progress.consumed_bytes)));
  }
  return text;
}

Progress::Progress(std::ostream& err, bool is_terminal, bool quiet)
    : err_(err), is_terminal_(is_terminal), done_(quiet), next_(start_ + (is_terminal ? kSilence : kLogPeriod)) {}

Progress::~Progress() { Finish(); }

void Progress::Update(const ingest::IngestProgress& progress) {
  Show([&progress](double elapsed_s) { return ProgressText(progress, elapsed_s); });
}

void Progress::Show(const std::function<std::string(double)>& make_text) {
  const auto now = Clock::now();
  if (done_ || now < next_) return;
  const std::string text = make_text(std::chrono::duration<double>(now - start_).count());
  if (is_terminal_) {
    line_stands = 1;
    err_ << '\r' << text << "\x1b[K" << std::flush;
    shown_ = true;
    next_ = now + kTerminalPeriod;
  } else {
    err_ << text << std::endl;
    next_ = now + kLogPeriod;
  }
}

void Progress::Finish() {
  if (shown_) err_ << "\r\x1b[K" << std::flush;
  line_stands = 0;
  shown_ = false;
  done_ = true;
}

void InstallSignalHandlers() {
  std::signal(SIGPIPE, SIG_IGN);
  for (const int signal_number : {SIGINT, SIGTERM}) {
    // What we were started with ignored stays so: a shell's background job, `nohup`.
    if (std::signal(signal_number, EndLineAndDie) == SIG_IGN) std::signal(signal_number, SIG_IGN);
  }
}

}  // namespace lockstep::cli
