#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>

#include "analysis/kernel_kind.h"
#include "analysis/name_rows.h"
#include "analysis/rank_context.h"
#include "present/export/flame/stacks.h"
#include "present/report/utf8.h"

namespace lockstep::flame {
namespace {

/// Distinct stacks as a tree; node 0 is the root, above all first frames.
class StackTree {
 public:
  StackTree() : nodes_(1) {}

  /// The node of `frame` under `parent`.
  uint32_t Child(uint32_t parent, uint32_t frame) {
    const auto [at, is_new] =
        children_.try_emplace((uint64_t{parent} << 32) | frame, static_cast<uint32_t>(nodes_.size()));
    if (is_new) nodes_.push_back({parent, frame, 0});
    return at->second;
  }
  void Add(uint32_t node, int64_t weight_ns) {
    nodes_[node].weight_ns = analysis::AddSaturating(nodes_[node].weight_ns, weight_ns);
  }
  /// Calls `line(text, weight_ns)` for every stack with a weight, a stack before those that go on from it, else by
  /// text. Memory: the nodes once more, and one text.
  template <typename Line>
  void ForEachLine(const std::vector<std::string>& frames, Line line) const {
    std::vector<uint32_t> order;  // nodes, siblings together
    for (uint32_t i = 1; i < nodes_.size(); ++i) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      if (nodes_[a].parent != nodes_[b].parent) return nodes_[a].parent < nodes_[b].parent;
      return frames[nodes_[a].frame] < frames[nodes_[b].frame];
    });
    struct Level {
      std::vector<uint32_t>::const_iterator next;
      uint32_t parent;
      size_t text_size;
    };
    const auto level_of = [&](uint32_t parent, size_t text_size) {
      return Level{std::lower_bound(order.begin(), order.end(), parent,
                                    [&](uint32_t node, uint32_t wanted) { return nodes_[node].parent < wanted; }),
                   parent, text_size};
    };
    std::string text;
    std::vector<Level> levels = {level_of(0, 0)};
    while (!levels.empty()) {
      Level& level = levels.back();
      text.resize(level.text_size);
      if (level.next == order.end() || nodes_[*level.next].parent != level.parent) {
        levels.pop_back();
        continue;
      }
      const uint32_t node = *level.next++;
      if (!text.empty()) text += ';';
      text += frames[nodes_[node].frame];
      if (nodes_[node].weight_ns > 0) line(text, nodes_[node].weight_ns);
      levels.push_back(level_of(node, text.size()));
    }
  }

 private:
  struct Node {
    uint32_t parent = 0;
    uint32_t frame = 0;
    int64_t weight_ns = 0;
  };
  std::vector<Node> nodes_;
  std::unordered_map<uint64_t, uint32_t> children_;
};

class Folder {
 public:
  Folder(const model::Run& run, const analysis::AnalysisOptions& analysis, const Options& options)
      : options_(options), roles_(run.names), names_(run.names), frame_of_name_(run.names.size(), 0) {
    shared_.run = &run;
    shared_.options = analysis;
    shared_.is_communication = analysis::ClassifyCommunication(run, analysis.communication_kernels);
  }

  Status Write(std::ostream& out) {
    ASSIGN_OR_RETURN(const Chosen chosen, Choose(*shared_.run, shared_.options.step_name, options_));
    for (const Chosen::OneRank& rank : chosen.ranks) AddRank(rank);
    tree_.ForEachLine(
        frames_, [&](const std::string& stack, int64_t weight_ns) { out << fmt::format("{} {}\n", stack, weight_ns); });
    return {};
  }

 private:
  uint32_t FrameOf(NameId name) {
    uint32_t& frame = frame_of_name_[name.value];
    if (frame == 0) {
      const bool is_step = roles_[name] == analysis::HostRole::kStep;
      frame = NewFrame(is_step ? "ProfilerStep" : names_[name]) + 1;
    }
    return frame - 1;
  }
  uint32_t NewFrame(std::string_view text) {
    std::string clean = report::Printable(text);
    std::replace(clean.begin(), clean.end(), ';', ':');
    if (clean.empty()) clean = "(no name)";
    // One frame per text, so that one stack is one line.
    const auto [at, is_new] = frame_of_text_.try_emplace(clean, static_cast<uint32_t>(frames_.size()));
    if (is_new) frames_.push_back(std::move(clean));
    return at->second;
  }
  uint32_t NodeOf(Stack& stack) {
    uint32_t node = root_;
    size_t known = stack.size();
    while (known > 0 && stack[known - 1].node == 0) --known;
    if (known > 0) node = stack[known - 1].node;
    for (; known < stack.size(); ++known) node = stack[known].node = tree_.Child(node, FrameOf(stack[known].name));
    return node;
  }

  void AddRank(const Chosen::OneRank& rank) {
    const model::RankTrace& trace = shared_.run->ranks[rank.rank_index];
    root_ = options_.per_rank ? tree_.Child(0, NewFrame(fmt::format("rank {}", trace.rank.value))) : 0;
    std::vector<Launched> launched;
    if (options_.by == By::kDevice) launched = FindLaunched(analysis::MakeRankContext(shared_, rank.rank_index));
    for (const Thread& thread : FindThreads(trace)) AddThread(rank, thread, launched);
    if (launched.empty()) return;
    const uint32_t nowhere = tree_.Child(root_, NewFrame("(no launch in the file)"));
    for (const Launched& event : launched) {
      if (event.track == UINT32_MAX && rank.Contains(event.start_ns))
        tree_.Add(tree_.Child(nowhere, FrameOf(event.name)), event.duration_ns);
    }
  }

  void AddThread(const Chosen::OneRank& rank, const Thread& thread, const std::vector<Launched>& launched) {
    const bool by_host = options_.by == By::kHost;
    if (!by_host && thread.runtime == nullptr) return;
    auto next = std::lower_bound(launched.begin(), launched.end(), thread.runtime_idx,
                                 [](const Launched& event, size_t track) { return event.track < track; });
    const auto visit = [&](Stack& stack, int64_t start_ns, int64_t end_ns) {
      if (by_host) tree_.Add(NodeOf(stack), end_ns - start_ns);
    };
    const auto call = [&](Stack& stack, size_t row) {
      for (; next != launched.end() && next->track == thread.runtime_idx && next->row <= row; ++next) {
        if (next->row == row && rank.Contains(thread.runtime->events.start_ns[row]))
          tree_.Add(tree_.Child(NodeOf(stack), FrameOf(next->name)), next->duration_ns);
      }
    };
    StackWalk(rank, visit, call).Walk(thread, roles_, by_host);
  }

  const Options& options_;
  analysis::RunContext shared_;
  analysis::HostRoles roles_;
  const model::NameTable& names_;
  std::vector<uint32_t> frame_of_name_;  // + 1; 0: none yet
  std::vector<std::string> frames_;
  std::unordered_map<std::string, uint32_t> frame_of_text_;
  StackTree tree_;
  uint32_t root_ = 0;
};

}  // namespace

Status WriteCollapsed(const model::Run& run, const analysis::AnalysisOptions& analysis, const Options& options,
                      std::ostream& out) {
  return Folder(run, analysis, options).Write(out);
}

}  // namespace lockstep::flame
