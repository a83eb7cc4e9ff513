#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "node/agent/gpu/gpu_helper.h"
#include "node/agent/gpu/nvml_reader.h"

namespace lockstep::agent {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kMisused = 2;

// What a library prints is not an answer: the pipes are moved away from the standard streams.
UniqueFd TakeStream(int stream) {
  UniqueFd taken(::fcntl(stream, F_DUPFD_CLOEXEC, 3));
  const UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ::dup2(nothing.get(), stream);
  return taken;
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return true;
}

}  // namespace

int GpuHelperMain(int argc, char** argv) {
  if (argc != 2) return kMisused;
  // With the daemon, also when it is killed; one that has gone already shows as the end of the requests.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "lockstep-gpu");
  const UniqueFd requests = TakeStream(STDIN_FILENO);
  const UniqueFd answers = TakeStream(STDOUT_FILENO);
  NvmlReader reader(argv[1],
                    [&](std::optional<uint32_t> gpu) { WriteAll(answers.get(), ToFrame(GpuMessage{.gpu = gpu})); });
  FrameReader frames;
  std::array<char, 4096> bytes;
  while (true) {
    const ssize_t got = ::read(requests.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0 ? kDone : kFailed;
    frames.Add({bytes.data(), static_cast<size_t>(got)});
    while (true) {
      const Result<std::optional<std::string>> frame = frames.Next();
      if (!frame) return kFailed;
      if (!*frame) break;
      const Result<GpuRequest> request = ParseRequest(**frame);
      if (!request) return kFailed;
      if (!WriteAll(answers.get(), ToFrame(GpuMessage{.reading = reader.Read(request->skipped)}))) return kDone;
    }
  }
}

}  // namespace lockstep::agent
