#include "programs/cli/run/python_site.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string_view>
#include <utility>

#include "base/output_file.h"

// The Python files themselves are part of the program: what a job imports is what belongs to this version.
#define LOCKSTEP_ASSEMBLE(name, path)       \
  asm(".pushsection .rodata.lockstep_" name \
      ", \"a\", @progbits\n"                \
      ".global lockstep_" name              \
      "_begin\n"                            \
      ".global lockstep_" name              \
      "_end\n"                              \
      "lockstep_" name                      \
      "_begin:\n"                           \
      ".incbin \"" path                     \
      "\"\n"                                \
      "lockstep_" name                      \
      "_end:\n"                             \
      ".byte 0\n"                           \
      ".popsection\n")

LOCKSTEP_ASSEMBLE("boundaries_helper", LOCKSTEP_PYTHON_FOLDER "_boundaries.py");
LOCKSTEP_ASSEMBLE("capture_helper", LOCKSTEP_PYTHON_FOLDER "_capture.py");
LOCKSTEP_ASSEMBLE("hang_helper", LOCKSTEP_PYTHON_FOLDER "_hang.py");
LOCKSTEP_ASSEMBLE("launchers_helper", LOCKSTEP_PYTHON_FOLDER "_launchers.py");
LOCKSTEP_ASSEMBLE("step_trace_helper", LOCKSTEP_PYTHON_FOLDER "_step_trace.py");
LOCKSTEP_ASSEMBLE("steps_helper", LOCKSTEP_PYTHON_FOLDER "_steps.py");
LOCKSTEP_ASSEMBLE("torch_memory_helper", LOCKSTEP_PYTHON_FOLDER "_torch_memory.py");

extern "C" {
extern const char lockstep_boundaries_helper_begin[];
extern const char lockstep_boundaries_helper_end[];
extern const char lockstep_capture_helper_begin[];
extern const char lockstep_capture_helper_end[];
extern const char lockstep_hang_helper_begin[];
extern const char lockstep_hang_helper_end[];
extern const char lockstep_launchers_helper_begin[];
extern const char lockstep_launchers_helper_end[];
extern const char lockstep_step_trace_helper_begin[];
extern const char lockstep_step_trace_helper_end[];
extern const char lockstep_steps_helper_begin[];
extern const char lockstep_steps_helper_end[];
extern const char lockstep_torch_memory_helper_begin[];
extern const char lockstep_torch_memory_helper_end[];
}

namespace lockstep::cli {
namespace {

constexpr const char* kHangDumps = "LOCKSTEP_RUN_HANG_DUMPS";
constexpr const char* kSteps = "LOCKSTEP_RUN_STEPS";
constexpr const char* kCaptures = "LOCKSTEP_RUN_CAPTURES";
constexpr const char* kMemoryFolder = "/dev/shm";
constexpr const char* kHooks = "_hooks.abi3.so";

constexpr std::string_view kSite = R"(# Written by `lockstep run`. Python imports it when it starts.
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _load(name):
    """By the name that it has in the package, where the job's own import finds it."""
    import importlib.util

    full = "lockstep." + name
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, os.path.join(_HERE, name + ".py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[full] = module
    return sys.modules[full]


def _enable(name, function, beside):
    is_on = False
    try:
        for each in beside:
            _load(each)
        is_on = getattr(_load(name), function)()
    except Exception:
        pass
    if not is_on:
        sys.modules.pop("lockstep." + name, None)  # The job's own call may fare better.


def _enable_with_torch(name, function, beside):
    """Most of a job's Python processes never import it."""
    try:
        _load("_boundaries").when_imported("torch", lambda _: _enable(name, function, beside))
    except Exception:
        pass


def _has_rank():
    try:
        return _load("_launchers").find_rank(os.environ)[0] is not None
    except Exception:
        return False


def _run_hidden():
    """The sitecustomize that would have been found without this one."""
    import importlib.machinery
    import importlib.util

    paths = [path for path in sys.path if os.path.abspath(path or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if sys.version_info >= (3, 8):
    if os.environ.get("LOCKSTEP_RUN_HANG_DUMPS") and _has_rank():
        _enable("_hang", "enable_hang_dumps", [])
    if os.environ.get("LOCKSTEP_RUN_STEPS"):
        _enable("_steps", "enable", ["_boundaries", "_launchers", "_torch_memory"])
    if os.environ.get("LOCKSTEP_RUN_CAPTURES"):
        _enable_with_torch("_capture", "enable_captures", ["_step_trace"])
if sys.version_info >= (3, 4):
    _run_hidden()
)";

std::string_view Bytes(const char* begin, const char* end) { return {begin, static_cast<size_t>(end - begin)}; }

bool IsSet(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

/// The module that marks steps as it lies beside this program and liblockstep, built or installed.
Result<std::string> FindHooks() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path folder = program.parent_path();
  for (const char* place : {"../lib", ".", "../lib64", "../lib/lockstep"}) {
    const std::filesystem::path path = (folder / place / kHooks).lexically_normal();
    if (std::filesystem::is_regular_file(path, error)) return path.string();
  }
  return Error{
      ErrorCode::kNotFound,
      fmt::format("{} is not beside {}; this lockstep may have been built without Python", kHooks, program.string())};
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> MakePythonSite(const std::string& runtime_folder,
                                                                        const PythonSite& site) {
  const std::pair<const char*, std::string_view> files[] = {
      {"_boundaries.py", Bytes(lockstep_boundaries_helper_begin, lockstep_boundaries_helper_end)},
      {"_capture.py", Bytes(lockstep_capture_helper_begin, lockstep_capture_helper_end)},
      {"_hang.py", Bytes(lockstep_hang_helper_begin, lockstep_hang_helper_end)},
      {"_launchers.py", Bytes(lockstep_launchers_helper_begin, lockstep_launchers_helper_end)},
      {"_step_trace.py", Bytes(lockstep_step_trace_helper_begin, lockstep_step_trace_helper_end)},
      {"_steps.py", Bytes(lockstep_steps_helper_begin, lockstep_steps_helper_end)},
      {"_torch_memory.py", Bytes(lockstep_torch_memory_helper_begin, lockstep_torch_memory_helper_end)},
      {"sitecustomize.py", kSite},
  };
  // Named by what is in it: jobs of another version may start while this one's do.
  size_t digest = 0;
  for (const auto& [name, bytes] : files) digest = digest * 31 + std::hash<std::string_view>()(bytes);
  const std::string folder = fmt::format("{}/python-{:016x}", runtime_folder, digest);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return Error{
        .code = ErrorCode::kIo, .message = fmt::format("cannot be made: {}", std::strerror(errno)), .file = folder};
  }
  for (const auto& [name, bytes] : files) {
    RETURN_IF_ERROR(WriteOutputFile(fmt::format("{}/{}", folder, name), bytes));
  }
  std::vector<std::pair<std::string, std::string>> variables;
  variables.emplace_back("PYTHONPATH",
                         IsSet("PYTHONPATH") ? fmt::format("{}:{}", folder, std::getenv("PYTHONPATH")) : folder);
  if (site.marks_steps) variables.emplace_back(kSteps, "1");
  if (site.has_captures) variables.emplace_back(kCaptures, "1");
  if (!site.has_hang_dumps) return variables;
  variables.emplace_back(kHangDumps, "1");
  if (std::getenv("TORCH_FR_BUFFER_SIZE") == nullptr && std::getenv("TORCH_NCCL_TRACE_BUFFER_SIZE") == nullptr)
    variables.emplace_back("TORCH_FR_BUFFER_SIZE", "2000");
  return variables;
}

Result<StepRecording> MakeStepRecording(const std::string& kept) {
  StepRecording recording;
  ASSIGN_OR_RETURN(std::string hooks, FindHooks());
  recording.variables.emplace_back("LOCKSTEP_STEPS_HOOKS", std::move(hooks));
  if (!kept.empty()) {
    std::error_code failed;
    std::filesystem::create_directories(kept, failed);
    recording.path = std::filesystem::absolute(kept, failed).string();  // CMD may go elsewhere.
    if (failed) return Error{.code = ErrorCode::kIo, .message = failed.message(), .file = kept};
    recording.variables.emplace_back("LOCKSTEP_TRACE", recording.path);
    return recording;
  }
  if (IsSet("LOCKSTEP_TRACE")) {
    recording.path = std::getenv("LOCKSTEP_TRACE");
    return recording;
  }
  // Read while it is written, and when the job ends: it need not reach a disk.
  const bool has_memory = ::access(kMemoryFolder, W_OK | X_OK) == 0;
  recording.folder = std::make_unique<TemporaryFolder>("lockstep-steps", has_memory ? kMemoryFolder : "");
  if (!recording.folder->made()) {
    return Error{ErrorCode::kIo, fmt::format("no folder to record into: {}", std::strerror(errno))};
  }
  recording.path = recording.folder->path();
  recording.variables.emplace_back("LOCKSTEP_TRACE", recording.path);
  if (!IsSet("LOCKSTEP_TRACE_LIMIT_MIB")) recording.variables.emplace_back("LOCKSTEP_TRACE_LIMIT_MIB", "32");
  if (!IsSet("LOCKSTEP_TRACE_RING")) recording.variables.emplace_back("LOCKSTEP_TRACE_RING", "1");
  return recording;
}

}  // namespace lockstep::cli
