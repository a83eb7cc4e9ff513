#include "node/local/torch_processes.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>

#include "base/proc_stat.h"
#include "base/small_file.h"
#include "base/text_scan.h"

namespace lockstep::local {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxProcesses = 4096;
constexpr std::string_view kTorchLibrary = "libtorch_cpu.so";
constexpr std::string_view kClientSocket = "dynoconfigclient";

std::optional<std::string> Contents(const std::string& path) { return ReadSmallFile(path, size_t{1} << 20); }

// Sockets of Kineto's clients in a network namespace, by their inodes. `list`: such as /proc/net/unix.
std::set<std::string> ClientSockets(const std::string& list) {
  std::set<std::string> inodes;
  std::ifstream sockets(list);
  for (std::string line; std::getline(sockets, line);) {
    if (line.find(kClientSocket) == std::string::npos) continue;
    std::istringstream words(line);
    std::string word;
    for (int i = 0; i < 7; ++i) words >> word;
    inodes.insert(fmt::format("socket:[{}]", word));
  }
  return inodes;
}

bool HoldsOneOf(const fs::path& folder, const std::set<std::string>& links) {
  if (links.empty()) return false;
  std::error_code error;
  fs::directory_iterator descriptors(folder, error);
  for (; !error && descriptors != fs::directory_iterator(); descriptors.increment(error)) {
    std::error_code gone;
    if (links.count(fs::read_symlink(descriptors->path(), gone).string()) != 0) return true;
  }
  return false;
}

// Path of the mapped library, as the process sees it; empty: it has none. `device`: one for CUDA or ROCm is mapped too.
std::string MappedTorch(const std::string& path, bool* device) {
  std::ifstream maps(path);
  std::string found;
  for (std::string line; std::getline(maps, line);) {
    const size_t slash = line.find('/');
    if (slash == std::string::npos) continue;
    const std::string_view file = std::string_view(line).substr(slash);
    const std::string_view name = file.substr(file.rfind('/') + 1);
    if (name.starts_with("libtorch_cuda") || name.starts_with("libtorch_hip") || name.starts_with("libc10_cuda")) {
      *device = true;
    }
    if (found.empty() && name.starts_with(kTorchLibrary)) found = file;
  }
  return found;
}

// Beside the library lies version.py; Debian's own packages have the version at the end of the library's name.
TorchVersion VersionOf(const std::string& root, const std::string& library) {
  const fs::path folder = fs::path(library).parent_path().parent_path();
  if (const auto text = Contents(root + (folder / "version.py").string())) {
    const size_t at = text->find("__version__ =");
    const size_t open = at == std::string::npos ? at : text->find_first_of("'\"", at);
    const size_t close = open == std::string::npos ? open : text->find_first_of("'\"", open + 1);
    if (close != std::string::npos && close - open < 60)
      return ParseTorchVersion(text->substr(open + 1, close - open - 1));
  }
  const size_t at = library.rfind(".so.");
  return at == std::string::npos ? TorchVersion() : ParseTorchVersion(library.substr(at + 4));
}

// Parent, start time.
void ReadStat(const std::string& text, TorchProcess* process) {
  const auto stat = ParseProcStat(text);
  if (!stat) return;
  process->parent = stat->parent_pid;
  process->start_ticks = stat->start_ticks;
  std::ifstream uptime("/proc/uptime");
  double now_s = 0;
  uptime >> now_s;
  process->age_s = now_s - static_cast<double>(process->start_ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

void ReadEnvironment(const std::string& path, TorchProcess* process) {
  const auto text = Contents(path);
  if (!text) return;
  process->environment_is_readable = true;
  std::istringstream entries(*text);
  for (std::string entry; std::getline(entries, entry, '\0');) {
    const size_t equals = entry.find('=');
    if (equals != std::string::npos && entry.starts_with("KINETO_")) {
      process->kineto[entry.substr(0, equals)] = entry.substr(equals + 1);
    }
  }
}

std::string Link(const std::string& path) {
  std::error_code error;
  return fs::read_symlink(path, error).string();
}

// A debugger of a process maps the process's libraries, too, to read their symbols.
bool IsLockstep(const std::string& folder) {
  const std::string name = fs::path(Link(folder + "/exe")).filename().string();
  return name == "lockstep" || name == "lockstepd";
}

std::optional<TorchProcess> LookAtProcess(pid_t pid, const std::set<std::string>& client_sockets) {
  const std::string folder = fmt::format("/proc/{}", pid);
  TorchProcess process;
  process.pid = pid;
  process.root = folder + "/root";
  const std::string library = MappedTorch(folder + "/maps", &process.has_device_build);
  struct stat info = {};
  if (library.empty() || ::stat(folder.c_str(), &info) != 0 || IsLockstep(folder)) return std::nullopt;
  process.uid = info.st_uid;
  process.torch = VersionOf(process.root, library);
  ReadStat(Contents(folder + "/stat").value_or(""), &process);
  process.command = Contents(folder + "/cmdline").value_or("");
  std::ranges::replace(process.command, '\0', ' ');
  process.command = process.command.substr(0, 120);
  while (process.command.ends_with(' ')) process.command.pop_back();
  ReadEnvironment(folder + "/environ", &process);
  process.same_network = Link(folder + "/ns/net") == Link("/proc/self/ns/net");
  process.has_endpoint =
      HoldsOneOf(folder + "/fd", process.same_network ? client_sockets : ClientSockets(folder + "/net/unix"));
  return process;
}

}  // namespace

TorchVersion ParseTorchVersion(const std::string& text) {
  TorchVersion version;
  TextCursor cursor(text);
  const auto major = cursor.Number<decltype(version.major)>();
  const auto minor = major && cursor.Skip(".") ? cursor.Number<decltype(version.minor)>() : std::nullopt;
  if (!minor) return {};
  version = {.major = *major, .minor = *minor, .text = text};
  return version;
}

std::vector<TorchProcess> FindTorchProcesses() {
  const std::set<std::string> client_sockets = ClientSockets("/proc/net/unix");
  std::vector<TorchProcess> processes;
  std::error_code error;
  fs::directory_iterator entries("/proc", error);
  for (; !error && entries != fs::directory_iterator() && processes.size() < kMaxProcesses; entries.increment(error)) {
    const auto pid = WholeNumber<pid_t>(entries->path().filename().string());
    if (!pid) continue;
    if (auto process = LookAtProcess(*pid, client_sockets)) processes.push_back(std::move(*process));
  }
  std::ranges::sort(processes, {}, &TorchProcess::pid);
  return processes;
}

}  // namespace lockstep::local
