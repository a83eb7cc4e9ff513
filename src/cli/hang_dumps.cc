#include "cli/hang_dumps.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "cli/output_file.h"

// The Python file itself is part of the program: what a job imports is what belongs to this version.
asm(".pushsection .rodata.lockstep_hang_helper, \"a\", @progbits\n"
    ".global lockstep_hang_helper_begin\n"
    ".global lockstep_hang_helper_end\n"
    "lockstep_hang_helper_begin:\n"
    ".incbin \"" LOCKSTEP_HANG_HELPER
    "\"\n"
    "lockstep_hang_helper_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" {
extern const char lockstep_hang_helper_begin[];
extern const char lockstep_hang_helper_end[];
}

namespace lockstep::cli {
namespace {

constexpr std::string_view kSite = R"(# Written by `lockstep run --hang-dumps`. Python imports it when it starts.
import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "PALS_RANKID", "SLURM_PROCID",
          "FLUX_TASK_RANK", "JSM_NAMESPACE_RANK")


def _enable():
    if not any(name in os.environ for name in _RANKS):
        return
    try:
        spec = importlib.util.spec_from_file_location("lockstep._hang", os.path.join(_HERE, "_hang.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        if module.enable_hang_dumps():
            sys.modules.setdefault("lockstep._hang", module)  # So that the job's own call finds it done.
    except Exception:
        pass


def _run_hidden():
    """The sitecustomize that would have been found without this one."""
    paths = [path for path in sys.path if os.path.abspath(path or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_enable()
_run_hidden()
)";

std::string_view Helper() {
  return {lockstep_hang_helper_begin, static_cast<size_t>(lockstep_hang_helper_end - lockstep_hang_helper_begin)};
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> MakeHangDumpEnvironment(const std::string& runtime_folder) {
  const std::string folder = runtime_folder + "/hang-dumps";
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return Error{
        .code = ErrorCode::kIo, .message = fmt::format("cannot be made: {}", std::strerror(errno)), .file = folder};
  }
  RETURN_IF_ERROR(WriteOutputFile(folder + "/_hang.py", [](std::ostream& out) { out << Helper(); }));
  RETURN_IF_ERROR(WriteOutputFile(folder + "/sitecustomize.py", [](std::ostream& out) { out << kSite; }));
  std::vector<std::pair<std::string, std::string>> variables;
  const char* path = std::getenv("PYTHONPATH");
  variables.emplace_back("PYTHONPATH", path != nullptr && *path != '\0' ? fmt::format("{}:{}", folder, path) : folder);
  if (std::getenv("TORCH_FR_BUFFER_SIZE") == nullptr && std::getenv("TORCH_NCCL_TRACE_BUFFER_SIZE") == nullptr)
    variables.emplace_back("TORCH_FR_BUFFER_SIZE", "2000");
  return variables;
}

}  // namespace lockstep::cli
