#include "present/export/live/board.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "present/export/live/figures.h"
#include "present/report/utf8.h"

namespace lockstep::export_live {
namespace {

using tensorboard::ScalarValue;

constexpr size_t kMostNameBytes = 64;

/// A name from outside as a folder's: no way out, nothing hidden.
std::string FolderName(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, kMostNameBytes)) {
    const bool plain = IsAlphanumeric(c) || c == '-' || c == '_' || (c == '.' && !name.empty());
    name += plain ? c : '_';
  }
  return name;
}

template <typename Subject>
void Add(std::span<const Figure<Subject>> figures, const Subject& subject, const std::string& before, bool has_stepped,
         std::vector<ScalarValue>* values) {
  for (const Figure<Subject>& figure : figures) {
    if (figure.is_of_steps && !has_stepped) continue;
    const std::optional<double> value = figure.read(subject);
    if (value) values->push_back({before + figure.tag, figure.meaning, *value * figure.tag_scale});
  }
}

void AddQuantiles(const live::Quantiles& quantiles, const std::string& before, const char* meaning,
                  std::vector<ScalarValue>* values) {
  for (const Quantile& shown : ShownQuantiles()) {
    const auto found = quantiles.find(shown.quantile);
    if (found != quantiles.end()) values->push_back({before + shown.name, meaning, found->second * 1e3});
  }
}

}  // namespace

int64_t Board::Run::Number(uint64_t count) {
  if (count < counted) before += counted;
  counted = count;
  return static_cast<int64_t>(before + counted);
}

Status Board::Write(const std::string& name, const std::vector<ScalarValue>& values, int64_t step, double wall_time_s) {
  if (values.empty() || is_full()) return {};
  Run& run = runs_[name];
  if (run.log == nullptr) {
    ASSIGN_OR_RETURN(tensorboard::EventLog log, tensorboard::EventLog::Create(folder_ + "/" + name, wall_time_s));
    run.log = std::make_unique<tensorboard::EventLog>(std::move(log));
    byte_count_ += run.log->byte_count();
  }
  const uint64_t bytes_before = run.log->byte_count();
  const uint64_t scalars_before = run.log->scalar_count();
  RETURN_IF_ERROR(run.log->Append(step, wall_time_s, values));
  byte_count_ += run.log->byte_count() - bytes_before;
  scalar_count_ += run.log->scalar_count() - scalars_before;
  run.last_step = step;
  return {};
}

Status Board::TakeRank(const std::string& name, const live::RankView& rank, double wall_time_s) {
  Run& run = runs_[name];
  const int64_t step = run.Number(rank.step_count.value_or(0));
  std::vector<ScalarValue> values;
  Add(RankFigures(), rank, "", run.last_step != step, &values);
  for (const auto& [user_name, value] : rank.reading.user_values) {
    values.push_back(
        {"user/" + report::Printable(user_name), "Newest value of a counter of the program's own.", value});
  }
  return Write(name, values, step, wall_time_s);
}

Status Board::TakeJob(const live::JobView& job, double wall_time_s) {
  int64_t step = 0;  // Of the rank that is furthest.
  for (const auto& [name, run] : runs_) step = std::max(step, static_cast<int64_t>(run.before + run.counted));
  Run& run = runs_["job"];
  std::vector<ScalarValue> values;
  Add(JobFigures(), job, "", run.last_step != step, &values);
  RETURN_IF_ERROR(Write("job", values, step, wall_time_s));
  for (const live::ServingView& serving : job.serving) {
    const live::ServingReading& reading = serving.reading;
    const std::string before =
        fmt::format("serving/{}/{}/", report::Printable(reading.model), report::Printable(serving.host));
    values.clear();
    Add(ServingFigures(), serving, before, true, &values);
    AddQuantiles(reading.recent_duration_s, before + "request_ms/",
                 "Requests that ended within the last minute, from begin to end; one node's.", &values);
    AddQuantiles(reading.recent_first_token_s, before + "first_output_ms/", "The same, from begin to first output.",
                 &values);
    // Requests have no steps: those that have ended are what goes on.
    RETURN_IF_ERROR(
        Write("job", values, static_cast<int64_t>(std::clamp(reading.requests.value_or(0), 0.0, 9e15)), wall_time_s));
    run.last_step = step;
  }
  return {};
}

Status Board::Take(const live::JobView& job, int64_t unix_ns) {
  const double wall_time_s = static_cast<double>(unix_ns) / 1e9;
  std::set<std::string> taken = {"job"};
  for (const live::RankView& rank : job.ranks) {
    std::string name = FolderName(IsNumber(rank.rank) ? "rank" + rank.rank : rank.rank);
    // Two of one number, as of two jobs with one id, are two curves.
    if (!taken.insert(name).second) {
      name = FolderName(name + "_" + rank.host);
      if (!taken.insert(name).second) continue;
    }
    if (rank.state != live::RankState::kUnheard) RETURN_IF_ERROR(TakeRank(name, rank, wall_time_s));
  }
  return TakeJob(job, wall_time_s);
}

}  // namespace lockstep::export_live
