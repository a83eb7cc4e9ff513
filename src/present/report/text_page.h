#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/analysis_result.h"
#include "model/run.h"
#include "present/report/report.h"
#include "present/report/style.h"
#include "present/report/text_table.h"

namespace lockstep::report {

/// What every part of the text is written from, and onto.
struct TextPage {
  const model::Run& run;
  const analysis::AnalysisResult& result;
  const TextOptions& options;
  Style style;
  std::ostream& out;

  /// Is this rank asked for?
  bool Shows(size_t rank_index) const { return !options.rank || run.ranks[rank_index].rank.value == *options.rank; }
  /// Does the job have several windows of some rank?
  bool HasWindows() const;
  /// "7", or "7 w1" for the second window of a job that has several.
  std::string RankLabel(size_t rank_index) const;
  /// A blank line, the heading in capitals, and a remark behind it.
  void Heading(std::string_view title, std::string_view note = {}) const;
  /// The table's rows up to --top, and a line that says how many were left out.
  void Write(TextTable& table, size_t row_count) const;
  void Paragraph(std::string_view text, Paint paint = Paint::kPlain) const;
};

/// "0-3, 7": ranks in the order given, neighbours that follow each other joined; after `limit` pieces "and 12 more".
std::string RankList(const std::vector<int32_t>& ranks, size_t limit);

/// "1 rank", "8 ranks".
std::string Plural(uint64_t count, std::string_view singular, std::string_view plural = {});

void WriteFirstScreen(const TextPage& page);

/// What a run of operations has in place of the screen's job, verdict, time split and ranks.
void WriteOperationScreen(const TextPage& page);

/// The findings of the verdict, a headline each, with what each saves.
void WriteHeadlines(const TextPage& page);

/// Findings at full length: all evidence, all advice. The first screen shows `limit` of them, briefly.
void WriteFindings(const TextPage& page, size_t limit, bool brief);

/// Of the first screen: what stages recorded beside the traces say; nothing where there are none.
void WriteStagesBrief(const TextPage& page);

/// Ledger: by severity and code; `brief` leaves out notes and advice beyond the first lines.
void WriteLedger(const TextPage& page, bool brief);

// Sections, each named as in --section; they print a heading and at least one line.
void WriteBreakdownSection(const TextPage& page);
void WriteStepsSection(const TextPage& page);
void WriteIdleSection(const TextPage& page);
void WriteKernelsSection(const TextPage& page);
void WriteOperatorsSection(const TextPage& page);
void WriteCollectivesSection(const TextPage& page);
void WriteStragglersSection(const TextPage& page);
void WriteWaitStatesSection(const TextPage& page);
void WriteImbalanceSection(const TextPage& page);
void WriteCriticalPathSection(const TextPage& page);
void WriteMemorySection(const TextPage& page);
void WriteLaunchSection(const TextPage& page);
void WriteGroupsSection(const TextPage& page);
void WriteDdpSection(const TextPage& page);
void WriteFsdpSection(const TextPage& page);
void WritePipelineSection(const TextPage& page);
void WriteMoeSection(const TextPage& page);
void WriteInferenceSection(const TextPage& page);
void WriteRegionSection(const TextPage& page);
void WriteCounterSection(const TextPage& page);
void WriteFabricSection(const TextPage& page);
void WriteFlopsSection(const TextPage& page);
void WriteKernelProfileSection(const TextPage& page);
void WriteStagesSection(const TextPage& page);
void WriteWhatIfSection(const TextPage& page);
void WriteBubblesSection(const TextPage& page);
void WriteClocksSection(const TextPage& page);

/// The declared tables of a pass that has no section of its own.
void WriteDeclaredSection(const TextPage& page, std::string_view pass);

}  // namespace lockstep::report
