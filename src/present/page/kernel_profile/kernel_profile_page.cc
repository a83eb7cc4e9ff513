#include "present/page/kernel_profile/kernel_profile_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "analysis/kernel_profile/kernel_bounds.h"
#include "present/page/answer_page.h"
#include "present/report/format.h"
#include "present/report/kernel_profile/kernel_profile_report.h"

namespace lockstep::page {
namespace {

std::string Lead(const model::KernelProfiles& profiles) {
  const auto longest = std::max_element(
      profiles.launches.begin(), profiles.launches.end(),
      [](const auto& a, const auto& b) { return a.duration_ns.value_or(0) < b.duration_ns.value_or(0); });
  if (longest == profiles.launches.end()) return "No launch was measured by Nsight Compute.";
  return fmt::format("{} launches; the longest, {}, takes {} and is bound by {}.", profiles.launches.size(),
                     longest->kernel, report::FormatDuration(longest->duration_ns),
                     analysis::KernelBoundName(analysis::BoundOf(*longest)));
}

}  // namespace

std::string KernelProfilePage(const model::KernelProfiles& profiles) {
  std::ostringstream text;
  report::WriteKernelText(profiles, {.colour = false, .columns = 120, .unicode = true, .all = true}, text);
  return ComposeAnswerPage({.kind = PageKind::kKernels,
                            .title = "What bounds the kernels - lockstep",
                            .lead_html = LeadHtml(Lead(profiles)),
                            .text = text.str(),
                            .partial = report::IsPartial(profiles),
                            .ledger = profiles.ledger,
                            .data_json = report::KernelDataJson(profiles)});
}

}  // namespace lockstep::page
