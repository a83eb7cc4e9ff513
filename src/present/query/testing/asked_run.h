#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/analyze.h"
#include "analysis/rank_context.h"
#include "analysis/testing/trace_builder.h"
#include "base/cell.h"
#include "model/stages/rank_stages.h"
#include "present/query/database.h"

namespace lockstep::query::testing {

/// Keeps what it is given: cells as text, NULL as "NULL".
class KeepingWriter : public RowWriter {
 public:
  void Begin(const std::vector<std::string>& names) override { columns = names; }
  void Row(const std::vector<Cell>& cells) override {
    std::vector<std::string> row;
    for (const Cell& cell : cells) row.push_back(std::visit(Text{}, cell));
    rows.push_back(std::move(row));
  }
  void End() override { ended = true; }

  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  bool ended = false;

 private:
  struct Text {
    std::string operator()(std::monostate) const { return "NULL"; }
    std::string operator()(const std::string& value) const { return value; }
    std::string operator()(const NestedCell& value) const { return value.Text(); }
    template <typename T>
    std::string operator()(T value) const {
      return fmt::format("{}", value);
    }
  };
};

using Rows = std::vector<std::vector<std::string>>;

/// A run with everything that its tables need, and a connection to ask.
class AskedRun {
 public:
  explicit AskedRun(model::Run run, QueryLimits limits = {}, analysis::AnalysisOptions options = {})
      : run_(std::move(run)), options_(std::move(options)) {
    options_.thread_count = 1;
    result_ = std::move(*analysis::Analyze(&run_, options_, {}));
    database_ = std::move(*Database::Open(limits));
    source_ = std::make_unique<Source>(run_, result_, options_, &database_->stop());
    database_->SetSource(source_.get());
  }

  /// The rows; of a query that fails none, and error() says why.
  Rows Ask(std::string_view sql) {
    KeepingWriter writer;
    error_.reset();
    const auto summary = database_->Run(sql, writer);
    if (summary) return writer.rows;
    error_ = summary.error();
    return {};
  }
  /// The only cell of the answer; the error's message in brackets when there is none.
  std::string AskOne(std::string_view sql) {
    const Rows rows = Ask(sql);
    if (error_) return "[" + error_->message + "]";
    return rows.size() == 1 && rows[0].size() == 1 ? rows[0][0] : fmt::format("[{} rows]", rows.size());
  }

  const std::optional<QueryError>& error() const { return error_; }
  Database& database() { return *database_; }
  model::Run& run() { return run_; }
  const analysis::AnalysisResult& result() const { return result_; }

 private:
  model::Run run_;
  analysis::AnalysisOptions options_;
  analysis::AnalysisResult result_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Source> source_;
  std::optional<QueryError> error_;
};

/// Stages of a few steps of some ranks: three parts of random times each.
inline std::vector<model::RankStages> RandomStages(std::mt19937* random, int32_t rank_count, int64_t start_ns) {
  std::vector<model::RankStages> ranks(static_cast<size_t>(rank_count));
  for (int32_t rank = 0; rank < rank_count; ++rank) {
    ranks[static_cast<size_t>(rank)].rank = rank;
    int64_t next_ns = start_ns;
    for (int64_t number = 0; number < 6; ++number) {
      model::StepStages step{.number = number, .start_ns = next_ns};
      for (const model::Stage stage : {model::Stage::kInput, model::Stage::kForward, model::Stage::kCommunication}) {
        step.spans.push_back({stage, static_cast<int64_t>(1 + (*random)() % 400)});
        step.duration_ns += step.spans.back().duration_ns;
      }
      next_ns += step.duration_ns;
      ranks[static_cast<size_t>(rank)].steps.push_back(std::move(step));
    }
  }
  return ranks;
}

/// A few ranks and windows with events of every lane at random times; the same for the same seed. Clocks differ.
inline model::Run RandomRun(uint32_t seed, int events_per_track = 40) {
  std::mt19937 random(seed);
  const auto below = [&](int limit) { return static_cast<int64_t>(random() % static_cast<uint32_t>(limit)); };
  analysis::testing::RunBuilder job;
  for (int32_t window = 0; window < 2; ++window) {
    for (int32_t rank = 0; rank < 3; ++rank) {
      analysis::testing::RankBuilder& one = job.Rank(rank, window);
      one.WorldSize(3);
      const int64_t base_ns = 1'700'000'000'000'000'000 + window * 1'000'000;
      for (int step = 0; step < 4; ++step)
        one.Annotation(1, fmt::format("ProfilerStep#{}", step), base_ns + step * 1000, 990);
      for (int i = 0; i < events_per_track; ++i) {
        one.Op(1, fmt::format("aten::op{}", below(5)), base_ns + below(4000), below(300));
        one.Python(2, fmt::format("model.py({}): forward", below(3)), base_ns + below(4000), below(900));
        one.Runtime(1, "cudaLaunchKernel", base_ns + below(4000), below(20), static_cast<uint32_t>(i + 1));
        one.Kernel(7 + below(2), below(3) == 0 ? "ncclDevKernel_AllReduce" : fmt::format("gemm{}", below(4)),
                   base_ns + below(4000), below(200), static_cast<uint32_t>(i + 1));
        one.Allocation(0, base_ns + below(4000), below(100) - 50, below(1000), below(2) == 0 ? -1 : 2000);
      }
      one.Memcpy(7, "Memcpy HtoD", base_ns + below(4000), below(50));
      one.Other(3, model::Category::kOverhead, "Instrumentation", base_ns + below(4000), below(50));
    }
  }
  model::Run run = job.Build();
  run.stages =
      std::make_shared<const std::vector<model::RankStages>>(RandomStages(&random, 3, 1'700'000'000'000'000'000));
  return run;
}

}  // namespace lockstep::query::testing
