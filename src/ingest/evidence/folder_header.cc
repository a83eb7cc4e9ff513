#include "base/json_object.h"
#include "ingest/evidence/evidence_part.h"
#include "model/evidence/parse_json.h"

namespace lockstep::ingest {

Result<FolderHeader> ReadFolderHeader(std::string_view json) {
  constexpr size_t kMaxRows = 1 << 20;
  ASSIGN_OR_RETURN(const JsonTree document, evidence::ParseObject(json));
  JsonObject object(document.root(), "");
  FolderHeader header;
  object.Inner("job", [&](JsonObject& job) { job.Read("id", &header.job_id); });
  object.Read("collected_unix_ns", &header.collected_unix_ns);
  object.Read("world_size", &header.world_size);
  object.Objects("nodes", kMaxRows, [&](JsonObject& node) {
    evidence::MissingEvidence missing;
    missing.what = "node";
    node.Read("host", &missing.host);
    node.Read("problem", &missing.reason);
    if (!missing.reason.empty()) header.missing.push_back(std::move(missing));
  });
  object.Objects("ras", kMaxRows, [&](JsonObject& ras) {
    std::string file;
    std::optional<int64_t> asked_ns;
    ras.Read("file", &file);
    ras.Read("asked_unix_ns", &asked_ns);
    if (!file.empty() && asked_ns && *asked_ns > 0) header.ras_asked_unix_ns[file] = *asked_ns;
  });
  object.Objects("missing", kMaxRows, [&](JsonObject& row) {
    evidence::MissingEvidence& missing = header.missing.emplace_back();
    row.Read("rank", &missing.rank);
    row.Read("host", &missing.host);
    row.Read("what", &missing.what);
    row.Read("reason", &missing.reason);
    row.Read("remedy", &missing.remedy);
  });
  RETURN_IF_ERROR(object.status());
  if (header.world_size && *header.world_size <= 0) header.world_size.reset();
  return header;
}

}  // namespace lockstep::ingest
