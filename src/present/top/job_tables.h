#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "node/live/job_view.h"
#include "present/report/style.h"
#include "present/report/text_table.h"

namespace lockstep::top {

/// Pieces of text that the terminal view and --once share. All texts from outside are made printable here.

/// With how it is to be painted.
struct Line {
  std::string text;
  report::Paint paint = report::Paint::kPlain;
};

/// "job 4711 · 4 of 8 ranks · 12.3 steps/s · step 81.2 ms · compute 42 % · exposed communication 31 % · ..."
std::string JobHeadline(const live::JobView& job, const report::Style& style);

/// Who holds a stuck job up, and which rank and stage cost its steps time, where that is known: a sentence each.
std::vector<Line> AnswerLines(const live::JobView& job);

/// A row each, in the order given; what does not fit into a width is left out by the table.
report::TextTable RankTable(const std::vector<const live::RankView*>& ranks, const report::Style& style);
/// Into View::nodes: those that do not answer first, then by their worst rank.
std::vector<size_t> NodesWorstFirst(const live::View& view);
/// A row for each of `nodes`: whether it answers, how many ranks it has, which is the worst, its clock and GPUs.
report::TextTable NodeTable(const live::View& view, const std::vector<size_t>& nodes);

/// "critical: ...", worst first, devices' after the job's.
std::vector<Line> AlarmLines(const live::View& view, const live::JobView* job);
/// What the figures lack: nodes that do not answer, records that were dropped, collectors that fail, ranks that record
/// nothing. Empty: nothing.
std::vector<Line> QualityLines(const live::View& view);

/// "12.3"; "-" where there is none.
std::string RateText(const std::optional<double>& per_s);
report::Paint PaintOf(live::RankState state);

}  // namespace lockstep::top
