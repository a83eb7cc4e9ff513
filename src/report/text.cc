#include <algorithm>
#include <array>
#include <utility>

#include "report/report.h"
#include "report/text_page.h"

namespace lockstep::report {
namespace {

struct Section {
  const char* name;
  const char* pass;  // "" = always there
  void (*write)(const TextPage&);
};

constexpr size_t kAll = SIZE_MAX;

const std::array<Section, 20> kSections = {{
    {"findings", "", [](const TextPage& page) { WriteFindings(page, kAll, false); }},
    {"breakdown", "breakdown", WriteBreakdownSection},
    {"steps", "breakdown", WriteStepsSection},
    {"idle", "idle", WriteIdleSection},
    {"kernels", "kernels", WriteKernelsSection},
    {"operators", "operators", WriteOperatorsSection},
    {"collectives", "collectives", WriteCollectivesSection},
    {"stragglers", "stragglers", WriteStragglersSection},
    {"wait_states", "wait_states", WriteWaitStatesSection},
    {"imbalance", "imbalance", WriteImbalanceSection},
    {"memory", "memory", WriteMemorySection},
    {"launch", "launch", WriteLaunchSection},
    {"critical_path", "critical_path", WriteCriticalPathSection},
    {"groups", "groups", WriteGroupsSection},
    {"ddp", "ddp", WriteDdpSection},
    {"fsdp", "fsdp", WriteFsdpSection},
    {"pipeline", "pipeline", WritePipelineSection},
    {"flops", "flops", WriteFlopsSection},
    {"clocks", "", WriteClocksSection},
    {"ledger", "", [](const TextPage& page) { WriteLedger(page, false); }},
}};

bool Wanted(const TextOptions& options, const std::string& name) {
  return std::any_of(options.sections.begin(), options.sections.end(),
                     [&](const std::string& section) { return section == "all" || section == name; });
}

}  // namespace

const std::vector<std::string>& SectionNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Section& section : kSections) list.emplace_back(section.name);
    return list;
  }();
  return names;
}

std::string PassOfSection(const std::string& section) {
  for (const Section& known : kSections) {
    if (section == known.name) return known.pass;
  }
  return {};
}

void WriteText(const model::Run& run, const analysis::AnalysisResult& result, const TextOptions& options,
               std::ostream& out) {
  TextOptions fitted = options;
  fitted.width = std::max(40, options.width);
  const TextPage page{run, result, fitted, Style{options.colour, options.unicode}, out};
  WriteFirstScreen(page);
  for (const Section& section : kSections) {
    if (!Wanted(options, section.name)) continue;
    if (*section.pass != '\0' && !result.Has(section.pass)) {
      page.Heading(section.name, "not computed: its pass was left out by --pass");
      continue;
    }
    section.write(page);
  }
  out.flush();
}

}  // namespace lockstep::report
