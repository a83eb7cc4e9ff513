#include "measure/nccl/nccl_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/split.h"

namespace lockstep::nccl_bench {
namespace {

constexpr const char* kName = "libnccl.so.2";
constexpr int kLeastVersion = 2700;  // The first with send and receive.

/// PREFIX/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2, of every Python there.
void AddWheels(const std::filesystem::path& prefix, std::vector<std::string>* paths) {
  std::error_code error;
  std::vector<std::string> found;
  for (std::filesystem::directory_iterator entry(prefix / "lib", error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->path().filename().string().starts_with("python3")) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      const std::filesystem::path path = entry->path() / packages / "nvidia" / "nccl" / "lib" / kName;
      std::error_code ignored;
      if (std::filesystem::exists(path, ignored)) found.push_back(path.string());
    }
  }
  std::sort(found.begin(), found.end());
  for (std::string& path : found) {
    if (std::find(paths->begin(), paths->end(), path) == paths->end()) paths->push_back(std::move(path));
  }
}

}  // namespace

std::vector<std::string> NcclCandidates(const std::string& chosen, const launch::Environment& environment) {
  if (!chosen.empty()) {
    // A name without a folder would be looked for elsewhere.
    return {chosen.find('/') == std::string::npos ? "./" + chosen : chosen};
  }
  std::vector<std::string> candidates = {kName};
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (!environment.Get(variable).empty()) AddWheels(environment.Get(variable), &candidates);
  }
  std::string_view path = environment.Get("PATH");
  while (!path.empty()) {
    const std::string_view folder = TakePart(&path, ':');
    std::error_code error;
    const std::filesystem::path python = std::filesystem::path(folder) / "python3";
    if (folder.empty() || !std::filesystem::exists(python, error)) continue;
    AddWheels(python.parent_path().parent_path(), &candidates);
    break;  // The others are not what `python3` starts.
  }
  return candidates;
}

std::string NcclVersionText(int version) {
  const int major_unit = version < 10000 ? 1000 : 10000;
  return fmt::format("{}.{}.{}", version / major_unit, version % major_unit / 100, version % 100);
}

Result<NcclLibrary> OpenNccl(const std::vector<std::string>& candidates) {
  NcclLibrary nccl;
  auto library = DynamicLibrary::Open(candidates);
  if (!library) {
    return Error{
        .code = library.error().code,
        .message = fmt::format("{}; install NCCL, start this in the environment of a PyTorch for CUDA, or name the "
                               "library with --nccl-library PATH",
                               library.error().message)};
  }
  nccl.library = std::move(*library);
  const DynamicLibrary& from = nccl.library;
  NcclInterface& call = nccl.call;
  RETURN_IF_ERROR(from.Find("ncclGetVersion", &call.get_version));
  int version = 0;
  if (call.get_version(&version) != kNcclSuccess) {
    return Error{
        .code = ErrorCode::kUnsupported, .message = "it does not say which version it is", .file = from.path()};
  }
  nccl.version = NcclVersionText(version);
  if (version < kLeastVersion) {
    return Error{.code = ErrorCode::kUnsupported,
                 .message = fmt::format("this is NCCL {}, which has no send and receive; 2.7 or later is needed: name "
                                        "another with --nccl-library PATH",
                                        nccl.version),
                 .file = from.path()};
  }
  RETURN_IF_ERROR(from.Find("ncclGetUniqueId", &call.get_unique_id));
  RETURN_IF_ERROR(from.Find("ncclCommInitRank", &call.comm_init_rank));
  RETURN_IF_ERROR(from.Find("ncclCommDestroy", &call.comm_destroy));
  RETURN_IF_ERROR(from.Find("ncclCommAbort", &call.comm_abort));
  RETURN_IF_ERROR(from.Find("ncclCommGetAsyncError", &call.comm_get_async_error));
  RETURN_IF_ERROR(from.Find("ncclGetErrorString", &call.get_error_string));
  if (!from.Find("ncclGetLastError", &call.get_last_error)) call.get_last_error = nullptr;
  RETURN_IF_ERROR(from.Find("ncclAllReduce", &call.all_reduce));
  RETURN_IF_ERROR(from.Find("ncclAllGather", &call.all_gather));
  RETURN_IF_ERROR(from.Find("ncclReduceScatter", &call.reduce_scatter));
  RETURN_IF_ERROR(from.Find("ncclBroadcast", &call.broadcast));
  RETURN_IF_ERROR(from.Find("ncclReduce", &call.reduce));
  RETURN_IF_ERROR(from.Find("ncclSend", &call.send));
  RETURN_IF_ERROR(from.Find("ncclRecv", &call.receive));
  RETURN_IF_ERROR(from.Find("ncclGroupStart", &call.group_start));
  RETURN_IF_ERROR(from.Find("ncclGroupEnd", &call.group_end));
  return nccl;
}

}  // namespace lockstep::nccl_bench
