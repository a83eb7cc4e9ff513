#include "analysis/pass_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/findings.h"
#include "base/nearest.h"

namespace lockstep::analysis {

// Each stands in the file of its name.
Pass BreakdownPass();
Pass CollectivesPass();
Pass CountersPass();
Pass CriticalPathPass();
Pass DdpPass();
Pass FabricPass();
Pass FlopsPass();
Pass FsdpPass();
Pass IdlePass();
Pass ImbalancePass();
Pass InferencePass();
Pass JobLeversPass();
Pass KernelsPass();
Pass LaunchPass();
Pass MeasuredKernelsPass();
Pass MemoryPass();
Pass MoePass();
Pass OperatorsPass();
Pass PipelineBubblesPass();
Pass PipelinePass();
Pass ProcessGroupsPass();
Pass RankGraphPass();
Pass RankTrafficPass();
Pass RegionsPass();
Pass StagesPass();
Pass StragglersPass();
Pass WaitStatesPass();

const std::vector<Pass>& AllPasses() {
  static const std::vector<Pass> kPasses = {
      BreakdownPass(),
      IdlePass(),
      KernelsPass(),
      OperatorsPass(),
      CollectivesPass(),
      WaitStatesPass(),
      StragglersPass(),
      ImbalancePass(),
      MemoryPass(),
      LaunchPass(),
      RankGraphPass(),
      CriticalPathPass(),
      RankTrafficPass(),
      ProcessGroupsPass(),
      DdpPass(),
      FsdpPass(),
      PipelinePass(),
      MoePass(),
      InferencePass(),
      RegionsPass(),
      CountersPass(),
      FlopsPass(),
      MeasuredKernelsPass(),
      StagesPass(),
      JobLeversPass(),
      PipelineBubblesPass(),
      FabricPass(),
  };
  return kPasses;
}

const std::vector<PassInfo>& Passes() {
  static const std::vector<PassInfo> kInfos = [] {
    std::vector<PassInfo> infos;
    for (const Pass& pass : AllPasses()) {
      if (pass.info.kind != PassKind::kInternal) infos.push_back(pass.info);
    }
    return infos;
  }();
  return kInfos;
}

const Pass* FindPass(std::string_view name) {
  for (const Pass& pass : AllPasses()) {
    if (pass.info.name == name) return &pass;
  }
  return nullptr;
}

const std::vector<const Table*>& Tables() {
  static const std::vector<const Table*> kTables = [] {
    std::vector<const Table*> tables;
    for (const Pass& pass : AllPasses()) {
      for (const Table& table : pass.info.tables) tables.push_back(&table);
    }
    static const Table kFindings = FindingTable();
    tables.push_back(&kFindings);
    std::stable_sort(tables.begin(), tables.end(),
                     [](const Table* a, const Table* b) { return a->place.order < b->place.order; });
    return tables;
  }();
  return kTables;
}

const Table* FindTable(std::string_view name) {
  for (const Table* table : Tables()) {
    if (table->name == name) return table;
  }
  return nullptr;
}

std::vector<std::string> PassesOf(const AnalysisResult& result) {
  std::vector<std::string> names;
  for (const PassInfo& pass : Passes()) {
    if (result.Has(pass.name)) names.emplace_back(pass.name);
  }
  return names;
}

namespace {

void Require(const Pass& pass, std::set<std::string_view>* wanted) {
  if (!wanted->insert(pass.info.name).second) return;
  for (const std::string_view need : pass.info.needs) Require(*FindPass(need), wanted);
}

}  // namespace

Result<std::vector<const Pass*>> ResolvePasses(const std::vector<std::string>& only, std::string_view also) {
  std::set<std::string_view> wanted;
  if (!also.empty()) Require(*FindPass(also), &wanted);
  for (const std::string& name : only) {
    const Pass* pass = FindPass(name);
    if (pass == nullptr || pass->info.kind == PassKind::kInternal) {
      std::vector<std::string> names;
      for (const PassInfo& known : Passes()) names.emplace_back(known.name);
      return Error{ErrorCode::kInvalidArgument, fmt::format("no pass is named '{}'{}", name, DidYouMean(name, names))};
    }
    Require(*pass, &wanted);
  }
  if (only.empty()) {
    for (const Pass& pass : AllPasses()) {
      if (pass.info.kind == PassKind::kUsual) Require(pass, &wanted);
    }
  }
  std::vector<const Pass*> resolved;
  for (const Pass& pass : AllPasses()) {
    if (wanted.contains(pass.info.name)) resolved.push_back(&pass);
  }
  return resolved;
}

}  // namespace lockstep::analysis
