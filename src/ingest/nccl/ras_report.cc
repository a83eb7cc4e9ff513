#include "ingest/nccl/ras_report.h"

namespace lockstep::ingest {

Result<evidence::RasReport> ReadRasReport(std::string_view) {
  return Error{ErrorCode::kUnsupported, "answers of NCCL's RAS are not read yet"};
}

}  // namespace lockstep::ingest
