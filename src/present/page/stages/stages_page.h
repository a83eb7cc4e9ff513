#pragma once

#include <string>

#include "analysis/frontier/job_stages.h"

namespace lockstep::page {

/// A self-contained HTML page without scripts: the verdict, why and what to do next; stages; steps over time, drawn as
/// stacked increments and as what each rank cost in each window; memory; each with its table. Light and dark by the
/// reader's choice.
std::string StagesPage(const frontier::JobStages& job);

}  // namespace lockstep::page
