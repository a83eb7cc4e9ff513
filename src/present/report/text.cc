#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/pass_registry.h"
#include "present/report/report.h"
#include "present/report/text_page.h"

namespace lockstep::report {
namespace {

struct Section {
  std::string_view name;
  std::string_view pass;  // empty = always there
  std::function<void(const TextPage&)> write;
};

constexpr size_t kAll = SIZE_MAX;

/// Sections as they are written; a pass with tables and without a line here gets one of its tables.
std::vector<Section> MakeSections() {
  std::vector<Section> sections = {
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
      {"moe", "moe", WriteMoeSection},
      {"inference", "inference", WriteInferenceSection},
      {"regions", "regions", WriteRegionSection},
      {"counters", "counters", WriteCounterSection},
      {"flops", "flops", WriteFlopsSection},
      {"measured_kernels", "measured_kernels", WriteKernelProfileSection},
      {"stages", "stages", WriteStagesSection},
      {"what_if", "what_if", WriteWhatIfSection},
      {"bubbles", "bubbles", WriteBubblesSection},
      {"fabric", "fabric", WriteFabricSection},
      {"clocks", "", WriteClocksSection},
      {"ledger", "", [](const TextPage& page) { WriteLedger(page, false); }},
  };
  for (const analysis::PassInfo& pass : analysis::Passes()) {
    const bool is_there =
        std::any_of(sections.begin(), sections.end(), [&](const Section& s) { return s.pass == pass.name; });
    if (is_there || pass.tables.empty()) continue;
    sections.push_back(
        {pass.name, pass.name, [&pass](const TextPage& page) { WriteDeclaredSection(page, pass.name); }});
  }
  return sections;
}

const std::vector<Section>& Sections() {
  static const std::vector<Section> kSections = MakeSections();
  return kSections;
}

bool Wanted(const TextOptions& options, std::string_view name) {
  return std::any_of(options.sections.begin(), options.sections.end(),
                     [&](const std::string& section) { return section == "all" || section == name; });
}

bool Named(const TextOptions& options, std::string_view name) {
  return std::find(options.sections.begin(), options.sections.end(), name) != options.sections.end();
}

/// Sections that "all" leaves out: those that were not requested, and those that a run of operations cannot have.
bool Pointless(const model::Run& run, const Section& section, bool computed) {
  const std::string_view name = section.name;
  if (run.operations) return !computed || name == "clocks";
  return !computed && (name == "what_if" || name == "bubbles" || name == "fabric");
}

const char* NotComputed(const model::Run& run, std::string_view section) {
  if (section == "fabric") return "not computed: give what was measured of the fabric with --fabric";
  if (section == "bubbles") return "not computed: it needs a pipeline's operation trace";
  if (run.operations) return "not computed: an operation trace does not tell it";
  if (section == "what_if") return "not computed: ask for it with --what-if";
  return "not computed: its pass was left out by --pass";
}

}  // namespace

const std::vector<std::string>& SectionNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Section& section : Sections()) list.emplace_back(section.name);
    return list;
  }();
  return names;
}

std::string PassOfSection(const std::string& section) {
  for (const Section& known : Sections()) {
    if (section == known.name) return std::string(known.pass);
  }
  return {};
}

void WriteText(const model::Run& run, const analysis::AnalysisResult& result, const TextOptions& options,
               std::ostream& out) {
  TextOptions fitted = options;
  fitted.width = std::max(40, options.width);
  const TextPage page{run, result, fitted, Style{options.colour, options.unicode}, out};
  WriteFirstScreen(page);
  for (const Section& section : Sections()) {
    if (!Wanted(options, section.name)) continue;
    const bool computed = section.pass.empty() || result.Has(section.pass);
    if (!Named(options, section.name) && Pointless(run, section, computed)) continue;
    if (!computed) {
      page.Heading(section.name, NotComputed(run, section.name));
      continue;
    }
    section.write(page);
  }
  out.flush();
}

}  // namespace lockstep::report
