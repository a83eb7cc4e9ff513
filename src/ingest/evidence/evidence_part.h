#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ingest/bytes/byte_source.h"
#include "ingest/rank_log/rank_log.h"
#include "model/evidence/flight_record.h"
#include "model/evidence/inspected_process.h"
#include "model/evidence/job_evidence.h"
#include "model/evidence/nccl_job.h"

namespace lockstep::ingest {

/// `evidence.json` of an evidence folder.
struct FolderHeader {
  std::string job_id;
  std::optional<int64_t> collected_unix_ns;
  std::optional<int32_t> world_size;
  std::vector<evidence::MissingEvidence> missing;
  std::map<std::string, int64_t> ras_asked_unix_ns;  ///< By the file's name in the folder.
};

/// What one file gave. Its bytes are gone.
struct EvidencePart {
  std::string file;  ///< For people.
  std::string path;  ///< Of the file, or of the archive and the member: for names.
  size_t root = 0;
  bool named_by_user = false;
  std::optional<int32_t> rank;
  bool rank_is_stated = false;  ///< By the content; else `rank` is what the path tells.
  std::optional<evidence::FlightRecord> record;
  std::optional<int64_t> modified_unix_ns;  ///< Of the file; not of a member of an archive.
  /// Its process writes it in place, so the file's time means nothing: modified_unix_ns is when it was read, if the
  /// process is alive, else absent.
  bool is_written_in_place = false;
  std::vector<evidence::ThreadStack> stacks;
  std::optional<RankLogEvents> log;
  std::optional<evidence::RasReport> ras;
  std::vector<evidence::NcclJob> nccl;
  std::optional<evidence::InspectedProcess> process;
  std::optional<FolderHeader> header;
  std::vector<evidence::EvidenceProblem> problems;

  bool IsEvidence() const {
    return record || !stacks.empty() || log || ras || !nccl.empty() || process || header || !problems.empty();
  }
};

/// Tells what the bytes are and reads them: one part, or one for each rank whose dump the file holds. Never fails: what
/// cannot be read is in the first part's problems.
/// `scratch`: memory that is used again for file after file; its content is of no meaning.
std::vector<EvidencePart> ReadEvidenceParts(ByteSource& source, const std::string& path, bool named_by_user,
                                            std::string& scratch);

/// Errors: kCorruptData.
Result<FolderHeader> ReadFolderHeader(std::string_view json);

/// All parts as one job's evidence. Errors: those of ReadEvidence.
Result<evidence::JobEvidence> MergeEvidence(std::vector<EvidencePart> parts);

}  // namespace lockstep::ingest
