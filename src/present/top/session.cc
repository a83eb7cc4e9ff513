#include "present/top/session.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "present/report/style.h"
#include "present/top/terminal.h"

namespace lockstep::top {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kWaitNs = 50'000'000;
// A thread that waits for a node is not waited for any longer than a user would.
constexpr auto kPatience = std::chrono::milliseconds(300);

/// What came of a wish.
struct Answer {
  Screen::Wish wish;
  RankTarget target;
  std::vector<std::string> lines;
};

/// What the threads share; lives as long as the last of them.
struct Shared {
  explicit Shared(SessionOptions with) : options(std::move(with)) {}

  const SessionOptions options;
  Mutex mutex;
  std::condition_variable_any changed;
  bool ends LOCKSTEP_GUARDED_BY(mutex) = false;
  int running LOCKSTEP_GUARDED_BY(mutex) = 0;
  std::optional<live::View> view LOCKSTEP_GUARDED_BY(mutex);
  std::optional<Answer> answer LOCKSTEP_GUARDED_BY(mutex);
  bool is_asked LOCKSTEP_GUARDED_BY(mutex) = false;
};

/// Runs `work` on a thread of its own, which the end of the session need not wait for.
template <typename Work>
void Start(const std::shared_ptr<Shared>& shared, Work work) {
  {
    const MutexLock lock(shared->mutex);
    ++shared->running;
  }
  std::thread([shared, work = std::move(work)] {
    work(*shared);
    const MutexLock lock(shared->mutex);
    --shared->running;
    shared->changed.notify_all();
  }).detach();
}

void LookOnAndOn(Shared& shared) {
  const auto interval = std::chrono::nanoseconds(shared.options.interval_ns);
  auto next = Clock::now() + interval;
  while (true) {
    {
      MutexLock lock(shared.mutex);
      if (shared.changed.wait_until(lock, next, [&]() LOCKSTEP_REQUIRES(shared.mutex) { return shared.ends; })) return;
    }
    next = Clock::now() + interval;
    live::View view = shared.options.look();
    const MutexLock lock(shared.mutex);
    shared.view = std::move(view);
  }
}

void Fulfil(Shared& shared, Screen::Wish wish, const RankTarget& target) {
  std::vector<std::string> lines = wish == Screen::Wish::kStacks
                                       ? shared.options.stacks(target)
                                       : shared.options.capture(target, wish == Screen::Wish::kCaptureJob);
  const MutexLock lock(shared.mutex);
  shared.answer = Answer{wish, target, std::move(lines)};
  shared.is_asked = false;
}

class Session {
 public:
  Session(std::shared_ptr<Shared> shared, live::View first)
      : shared_(std::move(shared)),
        screen_(report::Style{.colour = true, .unicode = shared_->options.unicode}),
        last_(std::move(first)) {
    screen_.Show(last_);
  }

  /// Until the user leaves or a signal comes.
  void Run(Terminal& terminal) {
    bool redraw = true;
    while (Terminal::ending_signal() == 0) {
      redraw = TakeNews() || redraw;
      if (redraw) terminal.Draw(screen_.Compose(terminal.width(), terminal.height()));
      redraw = false;
      const std::optional<KeyPress> press = terminal.Wait(kWaitNs, &redraw);
      if (!press) continue;
      redraw = true;
      const Screen::Wish wish = screen_.Press(*press);
      if (wish == Screen::Wish::kQuit) return;
      if (wish != Screen::Wish::kNothing) Ask(wish);
    }
  }

  live::View TakeLast() { return std::move(last_); }

 private:
  bool TakeNews() {
    std::optional<live::View> view;
    std::optional<Answer> answer;
    {
      const MutexLock lock(shared_->mutex);
      view = std::exchange(shared_->view, std::nullopt);
      answer = std::exchange(shared_->answer, std::nullopt);
    }
    if (answer) screen_.ShowAnswer(answer->wish, answer->target, std::move(answer->lines));
    if (view) {
      last_ = *view;
      screen_.Show(std::move(*view));
    }
    return view.has_value() || answer.has_value();
  }

  void Ask(Screen::Wish wish) {
    {
      const MutexLock lock(shared_->mutex);
      // One at a time: nodes answer one after the other anyway.
      if (std::exchange(shared_->is_asked, true)) {
        shared_->answer =
            Answer{wish, screen_.target(), {"something is asked of a rank already: ask again when that is done"}};
        return;
      }
    }
    Start(shared_, [wish, target = screen_.target()](Shared& shared) { Fulfil(shared, wish, target); });
  }

  const std::shared_ptr<Shared> shared_;
  Screen screen_;
  live::View last_;
};

}  // namespace

Result<SessionResult> RunSession(const SessionOptions& options, live::View first) {
  const auto shared = std::make_shared<Shared>(options);
  SessionResult result;
  {
    ASSIGN_OR_RETURN(const std::unique_ptr<Terminal> terminal,
                     Terminal::Open({.colour = options.colour, .unicode = options.unicode}));
    Start(shared, LookOnAndOn);
    Session session(shared, std::move(first));
    session.Run(*terminal);
    result.last = session.TakeLast();
    result.signal = Terminal::ending_signal();
  }
  MutexLock lock(shared->mutex);
  shared->ends = true;
  shared->changed.notify_all();
  result.must_leave = !shared->changed.wait_for(
      lock, kPatience, [&]() LOCKSTEP_REQUIRES(shared->mutex) { return shared->running == 0; });
  return result;
}

}  // namespace lockstep::top
