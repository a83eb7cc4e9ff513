#pragma once

#include <string>

#include "base/result.h"
#include "present/export/timeline/output_file.h"
#include "present/export/timeline/rank_writer.h"
#include "present/export/timeline/timeline.h"

namespace lockstep::timeline {

/// Writes a tar into `file`: "perfetto_manifest.json" first, then one Perfetto file per rank window, "rank3.pftrace".
/// The manifest says whose machine each is and that their clocks are one. Members are written to a file of their own
/// first, since a tar's header needs their size; disk holds one member more than the archive.
Status WriteArchive(const OutputFile& file, const std::string& path, const TimelineContent& content, Summary* summary);

}  // namespace lockstep::timeline
