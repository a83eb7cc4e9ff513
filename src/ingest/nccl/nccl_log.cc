#include "ingest/nccl/nccl_log.h"

#include "ingest/nccl/log_line.h"
#include "ingest/nccl/log_reader.h"

namespace lockstep::ingest {

bool LooksLikeNcclLog(std::string_view head) {
  constexpr size_t kHeadLimit = size_t{1} << 20;
  head = head.substr(0, kHeadLimit);
  std::string storage;
  while (!head.empty()) {
    const size_t end = head.find('\n');
    const std::string_view line = WithoutColours(head.substr(0, end), storage);
    if (ParseNcclLogLine(line) || line.find("NCCL version 2.") != std::string_view::npos) return true;
    if (end == std::string_view::npos) break;
    head.remove_prefix(end + 1);
  }
  return false;
}

evidence::NcclJob ReadNcclLog(std::string_view text, std::string_view file_name, std::optional<int32_t> rank) {
  NcclLogReader reader(file_name, rank);
  reader.Read(text);
  return reader.Finish();
}

}  // namespace lockstep::ingest
