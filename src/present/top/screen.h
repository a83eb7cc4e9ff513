#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "node/live/job_view.h"
#include "present/report/style.h"

namespace lockstep::top {

/// What was pressed: a key with a name, or a character.
enum class Key : uint8_t { kText, kUp, kDown, kPageUp, kPageDown, kHome, kEnd, kEnter, kEscape, kBackspace };
struct KeyPress {
  Key key = Key::kText;
  std::string text = {};  ///< kText: one character, UTF-8.
};

/// A process that the user wants to examine.
struct RankTarget {
  std::string job_id;
  std::string rank;
  std::string host;
  std::string pid;
  size_t node_idx = 0;
};

/// One line to draw: with colour sequences of report::Style's, never wider than asked for but for those.
struct ScreenLine {
  std::string text;
  bool is_selected = false;
};

/// What the terminal view shows and how it answers to keys; knows no terminal. One thread.
class Screen {
 public:
  /// What the caller is asked to do after a key.
  enum class Wish : uint8_t { kNothing, kQuit, kStacks, kCaptureRank, kCaptureJob };

  explicit Screen(const report::Style& style) : style_(style) {}

  void Show(live::View view);
  Wish Press(const KeyPress& press);
  /// Of whom, or of whose job, stacks or a capture are wanted.
  const RankTarget& target() const { return target_; }
  /// What came of a wish, a line each; anything may be in them.
  void ShowAnswer(Wish wish, const RankTarget& target, std::vector<std::string> lines);

  /// At most `height` lines. Also decides which rows are in sight, so that the selected one is.
  std::vector<ScreenLine> Compose(int width, int height);

 private:
  enum class Page : uint8_t { kRanks, kNodes, kRank, kHelp };
  enum class Sort : uint8_t { kWorst, kRank, kOwn, kCommunication, kInput, kAge };
  enum class Prompt : uint8_t { kNone, kFilter, kStacks, kCapture };

  const live::JobView* Job() const;
  const live::RankView* Selected() const;
  std::vector<const live::RankView*> SortedRanks(const live::JobView& job) const;
  bool Matches(const live::RankView& rank) const;
  std::string FilterText() const;
  Wish PressInPrompt(const KeyPress& press);
  Wish PressLetter(char letter);
  void Move(int64_t rows);
  void NextJob();
  void ChooseNone();
  void Go(Page page);
  void AskFor(Prompt prompt);
  Wish Ask(Wish wish);

  void AddHeader(int width, std::vector<ScreenLine>* lines) const;
  void AddRanks(int width, int height, std::vector<ScreenLine>* lines);
  void AddNodes(int width, int height, std::vector<ScreenLine>* lines);
  void AddScrolled(const std::vector<std::string>& all, int height, std::vector<ScreenLine>* lines);
  std::vector<std::string> RankPage(int width) const;
  std::vector<ScreenLine> Footer(int width) const;

  const report::Style style_;
  live::View view_;
  Page page_ = Page::kRanks;
  Page page_before_help_ = Page::kRanks;
  Sort sort_ = Sort::kWorst;
  Prompt prompt_ = Prompt::kNone;
  bool is_paused_ = false;
  std::string job_id_;
  std::string filter_;
  std::optional<size_t> node_;                                   ///< Index of the node whose ranks alone are shown.
  std::optional<std::pair<std::string, std::string>> selected_;  ///< Rank and host.
  bool is_chosen_ = false;                                       ///< By the user: else it is the first row.
  size_t selected_row_ = 0;                                      ///< Where it was, for when it is gone.
  size_t first_row_ = 0;
  size_t page_rows_ = 10;
  size_t scroll_ = 0;         ///< First line of a page of text.
  size_t selected_node_ = 0;  ///< Row of the nodes' page.
  RankTarget target_;
  Wish answered_ = Wish::kNothing;  ///< What the answer is to, and of whom.
  RankTarget answer_target_;
  std::vector<std::string> answer_;
};

}  // namespace lockstep::top
