#include <fmt/format.h>

#include <charconv>
#include <string>

#include "analysis/kernel_kind.h"
#include "analysis/rank_context.h"
#include "base/json_writer.h"
#include "present/export/flame/stacks.h"

namespace lockstep::flame {
namespace {

/// Kineto's Python frames: "path/file.py(123): function".
struct PythonName {
  std::string_view file;
  std::string_view line;
  std::string_view function;
};
bool ReadPythonName(std::string_view name, PythonName* parts) {
  const size_t close = name.find("): ");
  const size_t open = close == std::string_view::npos ? close : name.rfind('(', close);
  if (open == std::string_view::npos || open == 0) return false;
  parts->file = name.substr(0, open);
  parts->line = name.substr(open + 1, close - open - 1);
  parts->function = name.substr(close + 3);
  return !parts->line.empty() && parts->line.size() <= 9 && !parts->function.empty() &&
         parts->line.find_first_not_of("0123456789") == std::string_view::npos;
}

class Writer {
 public:
  Writer(const model::Run& run, const analysis::AnalysisOptions& analysis, const Options& options, std::ostream& out)
      : options_(options), roles_(run.names), frame_of_name_(run.names.size(), 0), json_(out) {
    shared_.run = &run;
    shared_.options = analysis;
    shared_.is_communication = analysis::ClassifyCommunication(run, analysis.communication_kernels);
  }

  Status Write() {
    ASSIGN_OR_RETURN(const Chosen chosen, Choose(*shared_.run, shared_.options.step_name, options_));
    bool known = false;
    for (const Chosen::OneRank& rank : chosen.ranks) {
      const model::RankTrace& trace = shared_.run->ranks[rank.rank_index];
      if (!trace.first_ns) continue;
      const int64_t first_ns = trace.clock.ToRun(*trace.first_ns);
      origin_ns_ = known ? std::min(origin_ns_, first_ns) : first_ns;
      known = true;
    }
    json_.StartObject();
    json_.Key("$schema").Text("https://www.speedscope.app/file-format-schema.json");
    json_.Key("exporter").Text(options_.exporter);
    json_.Key("name").Text(options_.by == By::kHost ? "host time by thread" : "device time by launching stack");
    json_.Key("profiles");
    json_.StartArray();
    for (const Chosen::OneRank& rank : chosen.ranks) WriteRank(rank);
    json_.EndArray();
    json_.Key("shared");  // Behind the profiles: which frames there are is known now.
    json_.StartObject();
    json_.Key("frames");
    json_.StartArray();
    for (const NameId name : frames_) WriteFrame(name);
    json_.EndArray();
    json_.EndObject();
    json_.EndObject();
    json_.EndLine();
    return {};
  }

 private:
  void WriteFrame(NameId name) {
    const std::string_view text = shared_.run->names[name];
    PythonName parts;
    json_.StartObject();
    json_.Key("name");
    if (ReadPythonName(text, &parts)) {
      json_.Text(parts.function);
      json_.Key("file").Text(parts.file);
      json_.Key("line");
      int line = 0;  // At most nine digits: ReadPythonName.
      std::from_chars(parts.line.data(), parts.line.data() + parts.line.size(), line);
      json_.Int(line);
    } else {
      json_.Text(text.empty() ? "(no name)" : text);
    }
    json_.EndObject();
  }

  uint32_t FrameOf(NameId name) {
    uint32_t& frame = frame_of_name_[name.value];
    if (frame == 0) {
      frames_.push_back(name);
      frame = static_cast<uint32_t>(frames_.size());
    }
    return frame - 1;
  }

  void WriteRank(const Chosen::OneRank& rank) {
    const model::RankTrace& trace = shared_.run->ranks[rank.rank_index];
    if (options_.by == By::kDevice) {
      const std::vector<Launched> launched = FindLaunched(analysis::MakeRankContext(shared_, rank.rank_index));
      for (const Thread& thread : FindThreads(trace)) WriteSampled(rank, trace, thread, launched);
    } else {
      for (const Thread& thread : FindThreads(trace)) WriteEvented(rank, trace, thread);
    }
  }

  std::string NameOf(const model::RankTrace& trace, const Thread& thread) const {
    std::string name = fmt::format("rank {}", trace.rank.value);
    if (trace.window > 0) name += fmt::format(" window {}", trace.window);
    name += fmt::format(", thread {}", thread.thread_id);
    if (thread.name.value != 0) name += fmt::format(" ({})", shared_.run->names[thread.name]);
    return name;
  }

  void Begin(const char* type, const model::RankTrace& trace, const Thread& thread) {
    json_.StartObject();
    json_.Key("type").Text(type);
    json_.Key("name").Text(NameOf(trace, thread));
    json_.Key("unit").Text("nanoseconds");
    json_.Key("startValue");
    json_.Int(0);
  }
  void End(int64_t end_value) {
    json_.Key("endValue");
    json_.Int(end_value);
    json_.EndObject();
  }

  void Event(char type, uint32_t frame, int64_t at) {
    json_.StartObject();
    json_.Key("type").Text(std::string_view(&type, 1));
    json_.Key("frame");
    json_.Uint(frame);
    json_.Key("at");
    json_.Int(at);
    json_.EndObject();
  }

  // Threads that have nothing in the time that was chosen get no profile.
  void WriteEvented(const Chosen::OneRank& rank, const model::RankTrace& trace, const Thread& thread) {
    struct Open {
      uint64_t id;
      uint32_t frame;
    };
    std::vector<Open> open;
    bool begun = false;
    int64_t last_ns = 0;  // since the origin; clocks with drift never run back, but rounding could
    int64_t piece_end_ns = 0;
    const auto at = [&](int64_t trace_ns) {
      last_ns = std::max(last_ns, trace.clock.ToRun(trace_ns) - origin_ns_);
      return last_ns;
    };
    const auto close_to = [&](size_t depth) {
      for (; open.size() > depth; open.pop_back()) Event('C', open.back().frame, last_ns);
    };
    const auto visit = [&](Stack& stack, int64_t start_ns, int64_t end_ns) {
      if (!begun) {
        Begin("evented", trace, thread);
        json_.Key("events");
        json_.StartArray();
        begun = true;
      }
      size_t same = 0;
      if (start_ns == piece_end_ns) {
        while (same < open.size() && same < stack.size() && open[same].id == stack[same].id) ++same;
      }
      close_to(same);
      at(start_ns);
      for (; same < stack.size(); ++same) {
        open.push_back({stack[same].id, FrameOf(stack[same].name)});
        Event('O', open.back().frame, last_ns);
      }
      at(end_ns);
      piece_end_ns = end_ns;
    };
    StackWalk(rank, visit, [](Stack&, size_t) {}).Walk(thread, roles_, true);
    if (!begun) return;
    close_to(0);
    json_.EndArray();
    End(last_ns);
  }

  void WriteSampled(const Chosen::OneRank& rank, const model::RankTrace& trace, const Thread& thread,
                    const std::vector<Launched>& launched) {
    if (thread.runtime == nullptr) return;
    auto next = std::lower_bound(launched.begin(), launched.end(), thread.runtime_idx,
                                 [](const Launched& event, size_t track) { return event.track < track; });
    std::vector<int64_t> weights;
    const auto call = [&](Stack& stack, size_t row) {
      for (; next != launched.end() && next->track == thread.runtime_idx && next->row <= row; ++next) {
        if (next->row != row || !rank.Contains(thread.runtime->events.start_ns[row])) continue;
        if (weights.empty()) {
          Begin("sampled", trace, thread);
          json_.Key("samples");
          json_.StartArray();
        }
        json_.StartArray();
        for (const Frame& frame : stack) json_.Uint(FrameOf(frame.name));
        json_.Uint(FrameOf(next->name));
        json_.EndArray();
        weights.push_back(next->duration_ns);
      }
    };
    StackWalk(
        rank, [](Stack&, int64_t, int64_t) {}, call)
        .Walk(thread, roles_, false);
    if (weights.empty()) return;
    json_.EndArray();
    json_.Key("weights");
    json_.StartArray();
    int64_t total_ns = 0;
    for (const int64_t weight_ns : weights) {
      json_.Int(weight_ns);
      total_ns += weight_ns;
    }
    json_.EndArray();
    End(total_ns);
  }

  const Options& options_;
  analysis::RunContext shared_;
  analysis::HostRoles roles_;
  std::vector<uint32_t> frame_of_name_;  // + 1; 0: none yet
  std::vector<NameId> frames_;
  int64_t origin_ns_ = 0;
  JsonStream json_;
};

}  // namespace

Status WriteSpeedscope(const model::Run& run, const analysis::AnalysisOptions& analysis, const Options& options,
                       std::ostream& out) {
  return Writer(run, analysis, options, out).Write();
}

}  // namespace lockstep::flame
