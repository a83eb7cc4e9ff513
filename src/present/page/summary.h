#pragma once

#include <string>

#include "present/page/page_model.h"

namespace lockstep::page {

/// The part of the page that needs no script: verdict, job, findings by gain, a row per rank, data quality. Plain HTML
/// elements with everything from the files escaped.
std::string SummaryHtml(const PageModel& model, const std::vector<Reduction>& reductions);

}  // namespace lockstep::page
