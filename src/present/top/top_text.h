#pragma once

#include <ostream>

#include "node/live/job_view.h"
#include "present/report/report.h"

namespace lockstep::top {

/// All jobs, worst ranks first, as plain text: what `lockstep top --once` prints. At most `options.top` ranks a job; 0:
/// all.
void WriteTopText(const live::View& view, const report::TextOptions& options, std::ostream& out);

/// The document lockstep.top/1 (docs/json.md). `one_line`: without line breaks inside, for one of many.
void WriteTopJson(const live::View& view, bool one_line, std::ostream& out);

}  // namespace lockstep::top
