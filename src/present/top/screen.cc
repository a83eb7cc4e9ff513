#include "present/top/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <tuple>
#include <utility>

#include "base/ascii.h"
#include "base/letter_case.h"
#include "base/text_scan.h"
#include "base/utf8.h"
#include "present/report/format.h"
#include "present/report/sparkline.h"
#include "present/report/text_table.h"
#include "present/report/utf8.h"
#include "present/top/device_table.h"
#include "present/top/job_tables.h"
#include "present/top/rank_page.h"
#include "present/top/serving_tables.h"

namespace lockstep::top {
namespace {

using live::JobView;
using live::RankView;
using report::Paint;

constexpr size_t kMostAlarms = 4;
constexpr size_t kMostServingRows = 4;
constexpr size_t kMostQualityLines = 3;
constexpr size_t kMostFilterBytes = 64;
constexpr int kPaceWidth = 60;

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  LineScanner scanner(text);
  std::string_view line;
  while (scanner.Next(&line)) lines.emplace_back(line);
  return lines;
}

std::vector<std::string> TableLines(const report::TextTable& table, const report::Style& style, int width) {
  std::ostringstream out;
  table.Write(style, width, out);
  return LinesOf(out.str());
}

std::vector<std::string> Wrapped(const std::string& text, const std::string& first, const std::string& next, int width,
                                 Paint paint, const report::Style& style) {
  std::ostringstream out;
  report::WriteWrapped(text, first, next, width, out, paint, style);
  return LinesOf(out.str());
}

constexpr std::string_view kHelp[] = {
    "q            quit",
    "up, down     choose a rank; also k and j, page up and down, home and end",
    "Enter        the chosen rank's page; Esc goes back",
    "s            sort: worst first, rank, own time, communication, input, age",
    "/            filter: part of a rank's host, state or user, or its number;",
    "             Enter keeps it, Esc takes it away",
    "d            stacks of the chosen rank: asks first",
    "c            a trace of the chosen rank, or of all ranks of its job: asks first",
    "n            nodes, worst first: Enter shows the ranks of one; n or Esc goes back",
    "Tab          the next job",
    "p            pause: figures stand still until p is pressed again",
    "h, ?         this help; any key goes back",
    "",
    "state        runs; waits: for the rank beside it; slow: the others wait for it;",
    "             stuck: no step has ended for ten times the job's step; silent: records",
    "             no steps; unheard: its node does not answer",
    "time, own    mean step, and without exposed communication: what the rank itself takes",
    "comp, comm   shares of the step: forward, backward, optimizer; exposed communication",
    "pace         step times of the last looks, between the least and the most of them",
    "-            not measured; 0 was measured",
    "",
    "No other key affects a job: docs/top.md",
};

}  // namespace

void Screen::Show(live::View view) {
  if (is_paused_) return;
  view_ = std::move(view);
}

const JobView* Screen::Job() const {
  for (const JobView& job : view_.jobs) {
    if (job.job_id == job_id_) return &job;
  }
  // The one with most ranks goes before those that happen to come first.
  const auto most = std::max_element(view_.jobs.begin(), view_.jobs.end(), [](const JobView& a, const JobView& b) {
    return a.ranks.size() < b.ranks.size();
  });
  return most == view_.jobs.end() ? nullptr : &*most;
}

bool Screen::Matches(const RankView& rank) const {
  if (node_ && rank.node_idx != *node_) return false;
  if (filter_.empty()) return true;
  if (std::all_of(filter_.begin(), filter_.end(), IsDigit)) {
    return rank.rank == filter_;
  }
  const std::string text = fmt::format("rank {}\n{}\n{}\n{}\n{}", rank.rank, rank.host, live::RankStateName(rank.state),
                                       rank.user, rank.device);
  return ContainsIgnoringCase(text, Lowered(filter_));
}

std::string Screen::FilterText() const {
  std::string text = node_ && *node_ < view_.nodes.size() ? "node " + Printable(view_.nodes[*node_].host) : "";
  if (!filter_.empty()) text += (text.empty() ? "" : ", ") + Printable(filter_);
  return text;
}

std::vector<const RankView*> Screen::SortedRanks(const JobView& job) const {
  std::vector<const RankView*> ranks;
  for (const RankView& rank : job.ranks) {
    if (Matches(rank)) ranks.push_back(&rank);
  }
  // Those of a job come by number; what is equal stays so.
  const auto by = [&](auto figure) {
    std::stable_sort(ranks.begin(), ranks.end(),
                     [&](const RankView* a, const RankView* b) { return figure(*a) > figure(*b); });
  };
  switch (sort_) {
    case Sort::kWorst:
      std::sort(ranks.begin(), ranks.end(), [](const RankView* a, const RankView* b) { return live::IsWorse(*a, *b); });
      break;
    case Sort::kRank: break;
    case Sort::kOwn: by([](const RankView& rank) { return rank.own_ns.value_or(-1); }); break;
    case Sort::kCommunication: by([](const RankView& rank) { return rank.communication_ratio.value_or(-1); }); break;
    case Sort::kInput: by([](const RankView& rank) { return rank.input_ratio.value_or(-1); }); break;
    case Sort::kAge: by([](const RankView& rank) { return rank.progress_age_ns.value_or(-1); }); break;
  }
  return ranks;
}

const RankView* Screen::Selected() const {
  const JobView* job = Job();
  if (job == nullptr || !selected_) return nullptr;
  for (const RankView& rank : job->ranks) {
    if (rank.rank == selected_->first && rank.host == selected_->second) return &rank;
  }
  return nullptr;
}

void Screen::Go(Page page) {
  if (page == Page::kHelp) page_before_help_ = page_;
  page_ = page;
  scroll_ = 0;
}

void Screen::NextJob() {
  const JobView* job = Job();
  if (job == nullptr) return;
  const auto idx = static_cast<size_t>(job - view_.jobs.data());
  job_id_ = view_.jobs[(idx + 1) % view_.jobs.size()].job_id;
  ChooseNone();
}

void Screen::Move(int64_t rows) {
  if (page_ == Page::kNodes) {
    const auto last_node = std::max<int64_t>(static_cast<int64_t>(view_.nodes.size()) - 1, 0);
    selected_node_ =
        static_cast<size_t>(std::clamp<int64_t>(static_cast<int64_t>(selected_node_) + rows, 0, last_node));
    return;
  }
  if (page_ != Page::kRanks) {
    scroll_ = static_cast<size_t>(std::max<int64_t>(static_cast<int64_t>(scroll_) + rows, 0));
    return;
  }
  const JobView* job = Job();
  const std::vector<const RankView*> ranks = job == nullptr ? std::vector<const RankView*>() : SortedRanks(*job);
  if (ranks.empty()) return;
  const auto last = static_cast<int64_t>(ranks.size()) - 1;
  selected_row_ = static_cast<size_t>(std::clamp<int64_t>(static_cast<int64_t>(selected_row_) + rows, 0, last));
  selected_ = {ranks[selected_row_]->rank, ranks[selected_row_]->host};
  is_chosen_ = true;
}

void Screen::ChooseNone() {
  selected_.reset();
  is_chosen_ = false;
  selected_row_ = first_row_ = 0;
}

void Screen::AskFor(Prompt prompt) {
  const JobView* job = Job();
  const RankView* rank = Selected();
  if (job == nullptr || rank == nullptr || page_ == Page::kNodes) return;
  target_ = {job->job_id, rank->rank, rank->host, rank->pid, rank->node_idx};
  prompt_ = prompt;
}

/// What comes of it stands on the rank's page.
Screen::Wish Screen::Ask(Wish wish) {
  is_chosen_ = true;
  Go(Page::kRank);
  ShowAnswer(wish, target_, {wish == Wish::kStacks ? "looking ..." : "capturing ..."});
  return wish;
}

Screen::Wish Screen::PressInPrompt(const KeyPress& press) {
  if (prompt_ == Prompt::kStacks || prompt_ == Prompt::kCapture) {
    const bool is_capture = std::exchange(prompt_, Prompt::kNone) == Prompt::kCapture;
    const std::string answer = press.key == Key::kText ? Lowered(press.text) : "";
    if (answer == "y") return Ask(is_capture ? Wish::kCaptureRank : Wish::kStacks);
    return answer == "a" && is_capture ? Ask(Wish::kCaptureJob) : Wish::kNothing;
  }
  switch (press.key) {
    case Key::kEnter: prompt_ = Prompt::kNone; break;
    case Key::kEscape:
      prompt_ = Prompt::kNone;
      filter_.clear();
      break;
    case Key::kBackspace: {
      // A character, not a byte.
      while (!filter_.empty() && (static_cast<unsigned char>(filter_.back()) & 0xC0) == 0x80) filter_.pop_back();
      if (!filter_.empty()) filter_.pop_back();
      break;
    }
    case Key::kText:
      if (filter_.size() + press.text.size() <= kMostFilterBytes) filter_ += press.text;
      break;
    default: break;
  }
  ChooseNone();
  return Wish::kNothing;
}

Screen::Wish Screen::PressLetter(char letter) {
  switch (letter) {
    case 'q': return Wish::kQuit;
    case 'h':
    case '?': Go(Page::kHelp); break;
    case 'n': Go(page_ == Page::kNodes ? Page::kRanks : Page::kNodes); break;
    case 's':
      sort_ = static_cast<Sort>((static_cast<int>(sort_) + 1) % (static_cast<int>(Sort::kAge) + 1));
      ChooseNone();
      break;
    case '/':
      Go(Page::kRanks);
      prompt_ = Prompt::kFilter;
      break;
    case 'd': AskFor(Prompt::kStacks); break;
    case 'c': AskFor(Prompt::kCapture); break;
    case 'p': is_paused_ = !is_paused_; break;
    case 'j': Move(1); break;
    case 'k': Move(-1); break;
    case '\t': NextJob(); break;
    default: break;
  }
  return Wish::kNothing;
}

Screen::Wish Screen::Press(const KeyPress& press) {
  if (prompt_ != Prompt::kNone) return PressInPrompt(press);
  if (page_ == Page::kHelp) {
    Go(page_before_help_);
    return press.text == "q" ? Wish::kQuit : Wish::kNothing;
  }
  const auto page = static_cast<int64_t>(page_rows_);
  switch (press.key) {
    case Key::kUp: Move(-1); break;
    case Key::kDown: Move(1); break;
    case Key::kPageUp: Move(-page); break;
    case Key::kPageDown: Move(page); break;
    case Key::kHome: Move(-(int64_t{1} << 40)); break;
    case Key::kEnd: Move(int64_t{1} << 40); break;
    case Key::kEnter:
      if (page_ == Page::kNodes && selected_node_ < view_.nodes.size()) {
        node_ = NodesWorstFirst(view_)[selected_node_];
        filter_.clear();
        ChooseNone();
        Go(Page::kRanks);
        break;
      }
      if (page_ != Page::kRanks || Selected() == nullptr) break;
      is_chosen_ = true;
      Go(Page::kRank);
      break;
    case Key::kEscape:
    case Key::kBackspace:
      if (page_ != Page::kRanks) {
        Go(Page::kRanks);
      } else {
        filter_.clear();
        node_.reset();
      }
      break;
    case Key::kText: return press.text.size() == 1 ? PressLetter(press.text[0]) : Wish::kNothing;
  }
  return Wish::kNothing;
}

void Screen::ShowAnswer(Wish wish, const RankTarget& target, std::vector<std::string> lines) {
  answered_ = wish;
  answer_target_ = target;
  answer_.clear();
  for (const std::string& line : lines) answer_.push_back(Printable(line));
}

void Screen::AddHeader(int width, std::vector<ScreenLine>* lines) const {
  const JobView* job = Job();
  const size_t answered = view_.answered_count();
  std::string title = style_(Paint::kStrong, "lockstep top");
  const std::string nodes =
      fmt::format("{} of {} node{}", answered, view_.nodes.size(), view_.nodes.size() == 1 ? "" : "s");
  title += std::string(style_.Dot()) + (answered < view_.nodes.size() ? style_(Paint::kBad, nodes) : nodes);
  if (job != nullptr && view_.jobs.size() > 1) {
    title += fmt::format("{}job {} of {}", style_.Dot(), job - view_.jobs.data() + 1, view_.jobs.size());
  }
  title += fmt::format("{}over {}", style_.Dot(), report::FormatDuration(view_.window_ns));
  if (is_paused_) title += std::string(style_.Dot()) + style_(Paint::kWarn, "PAUSED");
  lines->push_back({title});
  if (job == nullptr) {
    lines->push_back({"No rank of a job runs there: ranks are processes whose launcher says so (RANK, ...)."});
    return;
  }
  for (const std::string& line : Wrapped(JobHeadline(*job, style_), "", "  ", width, Paint::kPlain, style_)) {
    lines->push_back({line});
  }
  for (const Line& line : AnswerLines(*job)) {
    const std::string text = report::Truncate(line.text, width - 4, style_.Ellipsis());
    lines->push_back({fmt::format("  {} {}", style_.Bullet(), style_(line.paint, text))});
  }
  const std::string pace = Sparkline(job->step_history, std::min(width - 30, kPaceWidth), style_);
  if (!pace.empty()) {
    const auto [least, most] = std::minmax_element(job->step_history.begin(), job->step_history.end());
    lines->push_back(
        {fmt::format("pace  {}  {} to {}", pace, report::FormatDuration(*least), report::FormatDuration(*most))});
  }
  const std::vector<Line> alarms = AlarmLines(view_, job);
  for (size_t i = 0; i < alarms.size() && i < kMostAlarms; ++i) {
    std::string text = report::Truncate(alarms[i].text, width - 4, style_.Ellipsis());
    if (i + 1 == kMostAlarms && alarms.size() > kMostAlarms) {
      text = fmt::format("{} more alarms", alarms.size() - i);
    }
    lines->push_back({fmt::format("  {} {}", style_.Bullet(), style_(alarms[i].paint, text))});
  }
  for (const report::TextTable& table : {ServingTable(*job), EngineTable(*job)}) {
    if (table.empty()) continue;
    std::vector<std::string> rows = TableLines(table, style_, width);
    if (rows.size() > kMostServingRows + 1) rows.resize(kMostServingRows + 1);
    for (std::string& line : rows) lines->push_back({std::move(line)});
  }
}

void Screen::AddRanks(int width, int height, std::vector<ScreenLine>* lines) {
  const JobView* job = Job();
  if (job == nullptr || height < 2) return;
  const std::vector<const RankView*> ranks = SortedRanks(*job);
  if (ranks.empty()) {
    const std::string filter = FilterText();
    lines->push_back({filter.empty() ? "" : fmt::format("  no rank matches '{}'", filter)});
    return;
  }
  // Until the user chooses a rank, it is the first one; then it is the chosen rank, at whatever place.
  selected_row_ = is_chosen_ ? std::min(selected_row_, ranks.size() - 1) : 0;
  for (size_t row = 0; is_chosen_ && row < ranks.size(); ++row) {
    if (ranks[row]->rank == selected_->first && ranks[row]->host == selected_->second) selected_row_ = row;
  }
  selected_ = {ranks[selected_row_]->rank, ranks[selected_row_]->host};
  // All rows, so that columns stay as wide as they are while one scrolls.
  const std::vector<std::string> table = TableLines(RankTable(ranks, style_), style_, width);
  page_rows_ = static_cast<size_t>(height - 1);
  if (selected_row_ < first_row_) first_row_ = selected_row_;
  if (selected_row_ >= first_row_ + page_rows_) first_row_ = selected_row_ + 1 - page_rows_;
  first_row_ = std::min(first_row_, ranks.size() - std::min(page_rows_, ranks.size()));
  lines->push_back({table.front()});
  for (size_t row = first_row_; row < std::min(first_row_ + page_rows_, ranks.size()); ++row) {
    lines->push_back({table[row + 1], row == selected_row_});
  }
}

void Screen::AddNodes(int width, int height, std::vector<ScreenLine>* lines) {
  if (view_.nodes.empty() || height < 2) return;
  const std::vector<size_t> order = NodesWorstFirst(view_);
  const std::vector<std::string> table = TableLines(NodeTable(view_, order), style_, width);
  page_rows_ = static_cast<size_t>(height - 1);
  selected_node_ = std::min(selected_node_, view_.nodes.size() - 1);
  const size_t first = selected_node_ - std::min(selected_node_, page_rows_ - 1);
  lines->push_back({table.front()});
  for (size_t row = first; row < std::min(first + page_rows_, view_.nodes.size()); ++row) {
    lines->push_back({table[row + 1], row == selected_node_});
  }
  // Where there is room: the devices of the chosen one.
  const size_t used = 1 + std::min(page_rows_, view_.nodes.size());
  const live::NodeView& chosen = view_.nodes[order[selected_node_]];
  if (chosen.gpus.empty() || used + 3 > static_cast<size_t>(height)) return;
  std::vector<std::string> devices = TableLines(DeviceTable(chosen, style_), style_, width);
  devices.resize(std::min(devices.size(), static_cast<size_t>(height) - used - 1));
  lines->emplace_back();
  for (std::string& line : devices) lines->push_back({std::move(line)});
}

void Screen::AddScrolled(const std::vector<std::string>& all, int height, std::vector<ScreenLine>* lines) {
  const auto room = static_cast<size_t>(std::max(height, 0));
  page_rows_ = std::max<size_t>(room, 1);
  scroll_ = std::min(scroll_, all.size() - std::min(all.size(), room));
  for (size_t i = scroll_; i < std::min(all.size(), scroll_ + room); ++i) lines->push_back({all[i]});
}

std::vector<std::string> Screen::RankPage(int width) const {
  const RankView* rank = Selected();
  const JobView* job = Job();
  if (rank == nullptr || job == nullptr) return {"This rank is gone; Esc goes back."};
  std::vector<std::string> lines = RankLines(*job, *rank, width, style_);
  const bool has_answer = !answer_.empty() && answer_target_.rank == rank->rank && answer_target_.host == rank->host &&
                          answer_target_.job_id == job->job_id;
  if (!has_answer) return lines;
  // What was asked for stands where it is seen: below who the rank is.
  std::vector<std::string> answer = {"", style_(Paint::kStrong, answered_ == Wish::kStacks ? "STACKS" : "CAPTURE")};
  for (const std::string& line : answer_) answer.push_back("  " + report::Truncate(line, width - 2, style_.Ellipsis()));
  lines.insert(std::find(lines.begin(), lines.end(), ""), answer.begin(), answer.end());
  return lines;
}

std::vector<ScreenLine> Screen::Footer(int width) const {
  std::vector<ScreenLine> lines;
  const std::vector<Line> quality = QualityLines(view_);
  for (size_t i = 0; i < quality.size() && i < kMostQualityLines; ++i) {
    std::string text = quality[i].text;
    if (i + 1 == kMostQualityLines && quality.size() > kMostQualityLines) {
      text = fmt::format("{} more remarks on what the figures lack", quality.size() - i);
    }
    lines.push_back({style_(quality[i].paint, report::Truncate(text, width, style_.Ellipsis()))});
  }
  if (prompt_ == Prompt::kFilter) {
    lines.push_back({report::Truncate("/" + Printable(filter_) + "_", width, style_.Ellipsis())});
    return lines;
  }
  if (prompt_ == Prompt::kStacks || prompt_ == Prompt::kCapture) {
    const std::string question =
        prompt_ == Prompt::kStacks
            ? fmt::format("Stacks of rank {} (pid {} on {})? It is stopped while they are copied. y/n",
                          Printable(target_.rank), Printable(target_.pid), Printable(target_.host))
            : fmt::format("Trace rank {} for a second? y: it, a: all ranks of job {}, n", Printable(target_.rank),
                          Printable(target_.job_id));
    lines.push_back({style_(Paint::kStrong, report::Truncate(question, width, style_.Ellipsis()))});
    return lines;
  }
  static constexpr const char* kSortNames[] = {"worst", "rank", "own time", "communication", "input", "age"};
  const std::string filter = FilterText();
  std::string keys =
      page_ == Page::kRanks
          ? fmt::format("q quit  h help  / filter{}  s sort: {}  Enter rank  d stacks  c capture  n nodes",
                        filter.empty() ? "" : ": " + filter, kSortNames[static_cast<int>(sort_)])
      : page_ == Page::kHelp  ? std::string("any key goes back")
      : page_ == Page::kNodes ? std::string("Enter ranks of the node  Esc back  q quit  h help")
                              : std::string("Esc back  q quit  h help  d stacks  c capture");
  if (view_.jobs.size() > 1 && page_ == Page::kRanks) keys += "  Tab job";
  lines.push_back({style_(Paint::kFaint, report::Truncate(keys, width, style_.Ellipsis()))});
  return lines;
}

std::vector<ScreenLine> Screen::Compose(int width, int height) {
  std::vector<ScreenLine> lines;
  std::vector<ScreenLine> footer = Footer(width);
  if (page_ == Page::kRanks) {
    AddHeader(width, &lines);
    // Ranks come first where room is short.
    const size_t most = static_cast<size_t>(std::max(height / 2, 2));
    if (lines.size() > most) lines.resize(most);
    lines.emplace_back();
  }
  const int room = height - static_cast<int>(lines.size() + footer.size());
  switch (page_) {
    case Page::kRanks: AddRanks(width, room, &lines); break;
    case Page::kNodes: AddNodes(width, room, &lines); break;
    case Page::kRank: AddScrolled(RankPage(width), room, &lines); break;
    case Page::kHelp: AddScrolled({std::begin(kHelp), std::end(kHelp)}, room, &lines); break;
  }
  const auto last = static_cast<size_t>(std::max(height, 1));
  while (lines.size() + footer.size() < last) lines.emplace_back();
  for (ScreenLine& line : footer) lines.push_back(std::move(line));
  if (lines.size() > last) lines.erase(lines.begin(), lines.end() - static_cast<ptrdiff_t>(last));
  return lines;
}

}  // namespace lockstep::top
