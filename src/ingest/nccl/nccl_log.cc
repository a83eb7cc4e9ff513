#include "ingest/nccl/nccl_log.h"

#include "base/text_scan.h"
#include "ingest/nccl/log_line.h"
#include "ingest/nccl/log_reader.h"

namespace lockstep::ingest {

bool LooksLikeNcclLog(std::string_view head) {
  constexpr size_t kHeadLimit = size_t{1} << 20;
  head = head.substr(0, kHeadLimit);
  std::string storage;
  LineScanner lines(head);
  for (std::string_view raw; lines.Next(&raw);) {
    const std::string_view line = WithoutColours(raw, storage);
    if (ParseNcclLogLine(line) || line.find("NCCL version 2.") != std::string_view::npos) return true;
  }
  return false;
}

evidence::NcclJob ReadNcclLog(std::string_view text, std::string_view file_name, std::optional<int32_t> rank) {
  NcclLogReader reader(file_name, rank);
  reader.Read(text);
  return reader.Finish();
}

}  // namespace lockstep::ingest
