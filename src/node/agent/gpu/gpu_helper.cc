#include "node/agent/gpu/gpu_helper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "base/subprocess.h"

namespace lockstep::agent {
namespace {

using Clock = std::chrono::steady_clock;

// A killed process is gone that soon, or sleeps where no signal reaches it.
constexpr auto kDiesWithin = std::chrono::milliseconds(200);

Result<std::pair<UniqueFd, UniqueFd>> MakePipe() {
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error{ErrorCode::kIo, fmt::format("no pipe for the GPU helper: {}", std::strerror(errno))};
  }
  return std::pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

GpuHelper::GpuHelper(std::string program, std::string library, std::chrono::milliseconds deadline)
    : program_(std::move(program)),
      library_(std::move(library)),
      deadline_(deadline),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

GpuHelper::~GpuHelper() { End(); }

void GpuHelper::Stop() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = ::write(stop_.get(), &one, sizeof(one));
}

bool GpuHelper::Reap(pid_t pid) {
  pid_t got = 0;
  do {
    got = ::waitpid(pid, nullptr, WNOHANG);
  } while (got < 0 && errno == EINTR);
  return got == 0;
}

size_t GpuHelper::CountStuck() {
  std::erase_if(stuck_, [this](pid_t pid) { return !Reap(pid); });
  return stuck_.size();
}

Status GpuHelper::Start() {
  End();
  ASSIGN_OR_RETURN(auto requests, MakePipe());
  ASSIGN_OR_RETURN(auto answers, MakePipe());
  ASSIGN_OR_RETURN(ChildProcess child,
                   ChildProcess::Start({program_, "--gpu-helper", library_},
                                       {.input = requests.first.get(), .output = answers.second.get()}));
  pid_ = child.Release();
  requests_ = std::move(requests.second);
  answers_ = std::move(answers.first);
  ::fcntl(answers_.get(), F_SETFL, O_NONBLOCK);
  frames_ = {};
  return {};
}

void GpuHelper::End() {
  if (pid_ <= 0) return;
  requests_ = UniqueFd();
  answers_ = UniqueFd();
  ::kill(pid_, SIGKILL);
  const Clock::time_point until = Clock::now() + kDiesWithin;
  bool is_there = Reap(pid_);
  while (is_there && Clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    is_there = Reap(pid_);
  }
  if (is_there) stuck_.push_back(pid_);
  pid_ = -1;
}

GpuAnswer GpuHelper::Ask(const GpuRequest& request) {
  const Clock::time_point until = Clock::now() + deadline_;
  const std::string frame = ToFrame(request);
  // Far less than a pipe holds: it does not block. The daemon ignores SIGPIPE.
  const ssize_t put = ::write(requests_.get(), frame.data(), frame.size());
  GpuAnswer answer;
  if (put != static_cast<ssize_t>(frame.size())) {
    answer.trouble = "the GPU helper has ended";
  } else {
    answer = Wait(until);
  }
  if (answer.kind != GpuAnswer::Kind::kReading) End();
  return answer;
}

GpuAnswer GpuHelper::Wait(Clock::time_point until) {
  GpuAnswer answer;
  while (true) {
    Result<std::optional<std::string>> frame = frames_.Next();
    if (frame && *frame) {
      Result<GpuMessage> message = ParseMessage(**frame);
      if (!message) frame = message.error();
      if (message && !message->reading) answer.gpu = message->gpu;
      if (message && message->reading) {
        answer.kind = GpuAnswer::Kind::kReading;
        answer.reading = std::move(*message->reading);
        return answer;
      }
    }
    if (!frame) {
      answer.trouble = frame.error().ToString();
      return answer;
    }
    if (*frame) continue;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) {
      answer.kind = GpuAnswer::Kind::kHung;
      answer.trouble = answer.gpu ? fmt::format("GPU {}: a driver call does not return", *answer.gpu)
                                  : "a call to the GPU driver does not return";
      return answer;
    }
    pollfd waited[] = {{answers_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    ::poll(waited, 2, static_cast<int>(left));
    if (waited[1].revents != 0) {
      answer.kind = GpuAnswer::Kind::kStopped;
      return answer;
    }
    if (waited[0].revents == 0) continue;
    std::array<char, 16384> bytes;
    const ssize_t got = ::read(answers_.get(), bytes.data(), bytes.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) {
      answer.trouble = answer.gpu ? fmt::format("the GPU helper died while it read GPU {}", *answer.gpu)
                                  : "the GPU helper died while it called the driver";
      return answer;
    }
    frames_.Add({bytes.data(), static_cast<size_t>(got)});
  }
}

}  // namespace lockstep::agent
