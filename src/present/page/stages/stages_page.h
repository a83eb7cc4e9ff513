#pragma once

#include <string>

#include "analysis/frontier/job_stages.h"

namespace lockstep::page {

/// The page (answer_page.h): the verdict, why and what to do next; stages; steps over time, as stacked increments and
/// as what each rank cost in each window; memory. Its data is StagesDataJson() and lines of memory.
std::string StagesPage(const frontier::JobStages& job);

}  // namespace lockstep::page
