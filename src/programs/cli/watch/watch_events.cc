#include "programs/cli/watch/watch_events.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>

#include "base/json_writer.h"
#include "base/nanoseconds.h"
#include "base/now.h"
#include "node/control/client/job_links.h"
#include "present/report/utf8.h"

namespace lockstep::cli {
namespace {

std::string SecondsText(int64_t ns) { return fmt::format("{:.1f} s", static_cast<double>(ns) / 1e9); }

}  // namespace

std::string WatchEvents::ClockTime(int64_t unix_ns) {
  const std::time_t seconds = unix_ns / kSecondNs;
  std::tm local = {};
  ::localtime_r(&seconds, &local);
  return fmt::format("{:02}:{:02}:{:02}", local.tm_hour, local.tm_min, local.tm_sec);
}

std::string WatchEvents::RanksText(const std::vector<int32_t>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

JsonWriter& WatchEvents::Start(JsonWriter& json, const char* event) {
  json.StartObject().Key("schema").Text("lockstep.watch/1").Key("event").Text(event);
  return json.Key("time_unix_ns").Int(UnixNow());
}

void WatchEvents::Line(const std::string& text) {
  if (json_) {
    out_ << text << '\n';
  } else {
    out_ << ClockTime(UnixNow()) << "  " << report::Printable(text) << '\n';
  }
  out_.flush();
}

void WatchEvents::Begin(const std::string& job_id, size_t process_count, size_t node_count, int64_t interval_ns) {
  if (json_) {
    JsonWriter json;
    Start(json, "begin").Key("job_id").TextOrNull(job_id).Key("process_count").Uint(process_count);
    json.Key("node_count").Uint(node_count).Key("interval_ns").Int(interval_ns);
    json.Key("progress_by")
        .StartArray()
        .Text("main_context_switches")
        .Text("main_cpu_time")
        .Text("threads_cpu_time")
        .EndArray()
        .EndObject();
    return Line(json.Take());
  }
  Line(fmt::format("watching {}: {} process{} on {} node{}, every {}", job_id.empty() ? "a job" : "job " + job_id,
                   process_count, process_count == 1 ? "" : "es", node_count, node_count == 1 ? "" : "s",
                   SecondsText(interval_ns)));
  Line("progress means activity of main threads (context switches, processor time) and of other threads that work");
  Line("not detected: a rank that spins or polls while it waits looks as if it moved");
}

void WatchEvents::Rhythm(const hang::ProgressTracker& tracker) {
  const int64_t longest = tracker.longest_gap_ns().value_or(0);
  if (json_) {
    JsonWriter json;
    Start(json, "rhythm").Key("median_gap_ns").Optional(tracker.median_gap_ns());
    json.Key("longest_gap_ns").Int(longest).Key("limit_ns").Int(tracker.limit_ns()).EndObject();
    return Line(json.Take());
  }
  Line(fmt::format("the job's rhythm: something moves every {}, at the latest after {}; counts as silent after {}",
                   SecondsText(tracker.median_gap_ns().value_or(0)), SecondsText(longest),
                   SecondsText(tracker.limit_ns())));
}

void WatchEvents::RankEnded(int32_t rank, size_t left) {
  if (json_) {
    JsonWriter json;
    Start(json, "rank_ended").Key("rank");
    rank >= 0 ? json.Int(rank) : json.TextOrNull("");
    json.Key("process_count").Uint(left).EndObject();
    return Line(json.Take());
  }
  const std::string who = rank >= 0 ? fmt::format("rank {}", rank) : "a process";
  Line(fmt::format("{} has ended; {} left", who, left));
}

void WatchEvents::NodeLost(const std::string& host, const std::string& problem) {
  if (json_) {
    JsonWriter json;
    Start(json, "node_lost").Key("host").Text(host).Key("problem").Text(problem).EndObject();
    return Line(json.Take());
  }
  Line(fmt::format("{} does not answer: {}", host, problem));
}

void WatchEvents::Silent(const hang::ProgressTracker& tracker) {
  if (json_) {
    JsonWriter json;
    Start(json, "silent")
        .Key("silence_ns")
        .Int(tracker.silence_ns())
        .Key("limit_ns")
        .Int(tracker.limit_ns())
        .EndObject();
    return Line(json.Take());
  }
  Line(fmt::format("nothing has moved for {} (expected: {} at most): collecting evidence",
                   SecondsText(tracker.silence_ns()), SecondsText(tracker.limit_ns())));
}

void WatchEvents::Verdict(const hang::Verdict& verdict, bool is_stuck, const std::string& folder) {
  if (json_) {
    JsonWriter json;
    Start(json, is_stuck ? "stuck" : "not_stuck").Key("folder").Text(folder).Key("verdict").StartObject();
    json.Key("kind")
        .Text(hang::VerdictKindName(verdict.kind))
        .Key("confidence")
        .Raw(fmt::format("{:.3f}", verdict.confidence));
    json.Key("culprit_ranks").StartArray();
    for (const int32_t rank : verdict.culprit_ranks) json.Int(rank);
    json.EndArray().Key("explanation").Text(verdict.explanation).EndObject().EndObject();
    return Line(json.Take());
  }
  if (is_stuck) {
    Line(fmt::format("STUCK: {}{}{}", hang::VerdictKindName(verdict.kind), verdict.culprit_ranks.empty() ? "" : ", ",
                     verdict.culprit_ranks.empty() ? "" : RanksText(verdict.culprit_ranks)));
  } else {
    Line(fmt::format("not stuck: {}: {}", hang::VerdictKindName(verdict.kind), verdict.explanation));
  }
  Line("evidence is kept in " + folder + ": lockstep hang " + folder);
}

void WatchEvents::NotCollected(const std::string& reason) {
  if (json_) {
    JsonWriter json;
    Start(json, "not_collected").Key("reason").Text(reason).EndObject();
    return Line(json.Take());
  }
  Line("no evidence could be collected: " + reason);
}

void WatchEvents::Moves(int64_t silence_ns, const hang::ProgressTracker& tracker) {
  if (json_) {
    JsonWriter json;
    Start(json, "moves").Key("silence_ns").Int(silence_ns).Key("limit_ns").Int(tracker.limit_ns()).EndObject();
    return Line(json.Take());
  }
  Line(fmt::format("it moves again after {}: it was slow, not stuck; from now on it counts as silent after {}",
                   SecondsText(silence_ns), SecondsText(tracker.limit_ns())));
}

void WatchEvents::Ended(bool was_stuck) {
  if (json_) {
    JsonWriter json;
    Start(json, "ended").Key("was_stuck").Bool(was_stuck).EndObject();
    return Line(json.Take());
  }
  Line(was_stuck ? "the job has ended after it was stuck" : "the job has ended");
}

}  // namespace lockstep::cli
