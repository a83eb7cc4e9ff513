#pragma once

#include <ostream>
#include <string>

#include "analysis/comparison/scaling.h"
#include "present/report/report.h"

namespace lockstep::report {

/// Verdict first, then the table of runs, the curve with the ideal line, the fit and what bounds the next doubling.
void WriteScalingText(const comparison::ScalingCurve& curve, const TextOptions& options, std::ostream& out);

/// `lockstep.scaling/1` as docs/json.md describes it.
void WriteScalingJson(const comparison::ScalingCurve& curve, std::ostream& out);
/// Its `data` alone, for the page.
std::string ScalingDataJson(const comparison::ScalingCurve& curve);

/// scaling.csv and no_sync.csv into `folder` (made if missing).
Status WriteScalingCsv(const comparison::ScalingCurve& curve, const std::string& folder);

}  // namespace lockstep::report
