#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/breakdown.h"
#include "analysis/pass.h"
#include "analysis/pass_registry.h"
#include "present/report/format.h"
#include "present/report/job_facts.h"
#include "present/report/rank_summary.h"
#include "present/report/utf8.h"
#include "programs/python/event_tables.h"
#include "programs/python/extension/bindings.h"
#include "programs/python/extension/errors.h"
#include "programs/python/extension/interruptible.h"
#include "programs/python/loaded_run.h"
#include "programs/python/table_specs.h"

namespace lockstep::python {
namespace {

namespace py = pybind11;

using RunPointer = std::shared_ptr<LoadedRun>;

// Every question is asked with the interpreter's lock given up: another thread may be in the middle of the answer.
template <typename Body>
auto WithoutLock(Body body) {
  const py::gil_scoped_release release;
  return body();
}

py::str Text(const std::string& text) { return report::ValidUtf8(text); }

py::object TextOrNone(const std::string& text) {
  if (text.empty()) return py::none();
  return Text(text);
}

py::dict Job(const RunPointer& run) {
  const auto [facts, result] = WithoutLock([&] {
    const analysis::AnalysisResult& analysis = run->Analysis();
    return std::pair(report::FactsOf(run->Analysed()), &analysis);
  });
  py::dict job;
  job["rank_count"] = facts.rank_count;
  job["world_size"] = facts.world_size;
  job["missing_rank_count"] = facts.world_size ? py::object(py::int_(facts.missing_rank_count)) : py::none();
  job["missing_ranks"] = py::tuple(py::cast(facts.missing_ranks));
  job["window_count"] = facts.window_count;
  job["host_count"] = facts.hosts.empty() ? py::object(py::none()) : py::int_(facts.hosts.size());
  job["backend"] = TextOrNone(facts.backend);
  job["step_count"] = result->step_count;
  job["span_ns"] = result->job_span_ns;
  job["event_count"] = facts.event_count;
  job["passes"] = py::tuple(py::cast(analysis::PassesOf(*result)));
  return job;
}

const char* ScopeName(report::Scope scope) {
  switch (scope) {
    case report::Scope::kWindow: return "window";
    case report::Scope::kStepMean: return "step_mean";
    case report::Scope::kOneStep: return "one_step";
  }
  return "window";
}

/// The lines of the first screen's rank table, worst first.
py::dict Summary(const RunPointer& run) {
  const report::Summary summary =
      WithoutLock([&] { return report::Summarise(run->Analysed(), run->Analysis(), report::TextOptions()); });
  py::list ranks;
  for (const report::RankSummary& line : summary.ranks) {
    const model::RankTrace& trace = run->traces()[line.rank_index];
    py::dict row;
    row["rank"] = trace.rank.value;
    row["window"] = trace.window;
    row["basis"] = analysis::BasisName(line.basis);
    row["span_ns"] = line.span_ns;
    row["compute_ns"] = line.compute_ns;
    row["exposed_communication_ns"] = line.exposed_communication_ns;
    row["exposed_memory_ns"] = line.exposed_memory_ns;
    row["idle_ns"] = line.idle_ns;
    row["wait_ns"] = line.wait_ns;
    row["wait_given_ns"] = line.wait_given_ns;
    ranks.append(std::move(row));
  }
  py::dict made;
  made["scope"] = ScopeName(summary.scope);
  made["by_wait_given"] = summary.by_wait_given;
  made["ranks"] = std::move(ranks);
  return made;
}

py::list Tracks(const RunPointer& run, int32_t rank, int32_t window) {
  const model::RankTrace* trace = ValueOrRaise(run->FindTrace(rank, window));
  py::list tracks;
  for (const model::Track& track : trace->tracks) {
    const bool on_device = IsDeviceLane(track.lane);
    py::dict facts;
    facts["lane"] = model::LaneName(track.lane);
    facts["process_id"] = track.process_id;
    facts["thread_id"] = track.thread_id;
    facts["thread_name"] = Text(std::string(run->NameText(track.thread_name)));
    facts["device"] = on_device ? py::object(py::int_(track.device().value)) : py::none();
    facts["stream"] = on_device ? py::object(py::int_(track.stream().value)) : py::none();
    facts["event_count"] = track.events.size();
    tracks.append(std::move(facts));
  }
  return tracks;
}

py::list LedgerAsRead(const RunPointer& run) {
  py::list rows;
  for (const model::LedgerEntry& entry : run->LedgerAsRead()) {
    py::dict row;
    row["code"] = Text(entry.code);
    row["severity"] = model::SeverityName(entry.severity);
    row["source"] = TextOrNone(entry.source);
    row["rank"] = entry.rank;
    row["message"] = Text(entry.message);
    row["advice"] = TextOrNone(entry.advice);
    rows.append(std::move(row));
  }
  return rows;
}

TableHandle GetTable(const RunPointer& run, const std::string& name) {
  return {WithoutLock([&] { return ValueOrRaise(run->GetTable(name)); })};
}

std::vector<TableHandle> JoinedEvents(const RunPointer& run, int32_t rank, int32_t window,
                                      const std::vector<size_t>& tracks) {
  std::vector<TableHandle> handles;
  for (auto& chunk : WithoutLock([&] { return ValueOrRaise(run->JoinedEvents(rank, window, tracks)); })) {
    handles.push_back({std::move(chunk)});
  }
  return handles;
}

py::str WriteText(const RunPointer& run, int width, bool unicode, size_t top, std::vector<std::string> sections,
                  std::optional<int32_t> rank, std::optional<int64_t> step) {
  report::TextOptions options;
  options.width = width;
  options.unicode = unicode;
  options.top = top;
  options.sections = std::move(sections);
  options.rank = rank;
  options.step = step;
  return Text(WithoutLock([&] { return run->Text(options); }));
}

TableHandle Query(const RunPointer& run, const std::string& sql, std::optional<double> timeout_s,
                  int64_t memory_bytes) {
  query::QueryLimits limits;
  if (timeout_s) limits.timeout = std::chrono::milliseconds(std::llround(*timeout_s * 1000));
  limits.memory_bytes = memory_bytes;
  return {QueryInterruptibly(run.get(), sql, limits)};
}

void WritePage(const RunPointer& run, const std::string& path, uint64_t page_bytes) {
  const Status written = WithoutLock([&] { return run->WritePage(path, page_bytes); });
  if (!written) throw RaisedError(written.error());
}

RunPointer Load(const std::vector<std::string>& paths, const py::object& on_progress, uint32_t threads,
                const std::vector<std::string>& passes, const std::string& step_name, bool drop_last_step,
                const std::vector<std::string>& communication_kernels, int64_t kernel_wait_threshold_ns,
                double communication_threshold, double imbalance_threshold, double memory_imbalance_threshold,
                uint64_t max_json_bytes, uint64_t max_compression_ratio) {
  LoadOptions options;
  options.passes = passes;
  options.analysis.thread_count = threads;
  options.analysis.step_name = step_name;
  options.analysis.drop_last_step = drop_last_step;
  options.analysis.communication_kernels = communication_kernels;
  options.analysis.kernel_wait_threshold_ns = kernel_wait_threshold_ns;
  options.analysis.communication_ratio_threshold = communication_threshold;
  options.analysis.imbalance_ratio_threshold = imbalance_threshold;
  options.analysis.memory_imbalance_ratio_threshold = memory_imbalance_threshold;
  options.ingest.limits.max_output_bytes = max_json_bytes;
  options.ingest.limits.max_ratio = max_compression_ratio;
  return LoadInterruptibly(paths, std::move(options), on_progress);
}

}  // namespace

void BindRun(py::module_& module) {
  py::class_<LoadedRun, RunPointer>(module, "Run", py::module_local())
      .def("analyze", [](const RunPointer& run) { WithoutLock([&] { run->EnsureAnalysed(); }); })
      .def("table", GetTable, py::arg("name"))
      .def("job", Job)
      .def("partial", [](const RunPointer& run) { return WithoutLock([&] { return run->Partial(); }); })
      .def("partial_as_read", [](const RunPointer& run) { return run->PartialAsRead(); })
      .def("ledger_as_read", LedgerAsRead)
      .def("json", [](const RunPointer& run) { return py::str(WithoutLock([&] { return run->Json(); })); })
      .def("text", WriteText, py::kw_only(), py::arg("width"), py::arg("unicode"), py::arg("top"), py::arg("sections"),
           py::arg("rank"), py::arg("step"))
      .def("query", Query, py::arg("sql"), py::kw_only(), py::arg("timeout_s"), py::arg("memory_bytes"))
      .def("write_page", WritePage, py::arg("path"), py::kw_only(), py::arg("page_bytes"))
      .def("summary", Summary)
      .def("tracks", Tracks, py::arg("rank"), py::arg("window"))
      .def(
          "track_events",
          [](const RunPointer& run, int32_t rank, int32_t window, size_t track) {
            return TableHandle{WithoutLock([&] { return ValueOrRaise(run->TrackEvents(rank, window, track)); })};
          },
          py::arg("rank"), py::arg("window"), py::arg("track"))
      .def("joined_events", JoinedEvents, py::arg("rank"), py::arg("window"), py::arg("tracks"))
      .def(
          "memory_events",
          [](const RunPointer& run, int32_t rank, int32_t window) {
            return TableHandle{ValueOrRaise(run->MemoryEvents(rank, window))};
          },
          py::arg("rank"), py::arg("window"));

  module.def("load", Load, py::arg("paths"), py::kw_only(), py::arg("on_progress"), py::arg("threads"),
             py::arg("passes"), py::arg("step_name"), py::arg("drop_last_step"), py::arg("communication_kernels"),
             py::arg("kernel_wait_threshold_ns"), py::arg("communication_threshold"), py::arg("imbalance_threshold"),
             py::arg("memory_imbalance_threshold"), py::arg("max_json_bytes"), py::arg("max_compression_ratio"));
  module.def("passes", [] {
    py::list passes;
    for (const analysis::PassInfo& pass : analysis::Passes()) {
      passes.append(py::make_tuple(std::string(pass.name), std::string(pass.question)));
    }
    return passes;
  });
  module.def(
      "format_duration", [](int64_t ns) { return report::FormatDuration(ns); }, py::arg("ns"));
  module.def(
      "format_bytes", [](int64_t bytes) { return report::FormatBytes(bytes); }, py::arg("bytes"));
  module.def(
      "format_rate", [](double bytes_per_s) { return report::FormatRate(bytes_per_s); }, py::arg("bytes_per_s"));
  module.def("table_names", [] {
    py::list names;
    for (const TableSpec& spec : TableSpecs()) names.append(spec.name);
    return names;
  });
  module.def(
      "pass_of_table", [](std::string_view name) { return std::string(PassOfTable(name)); }, py::arg("name"));
}

}  // namespace lockstep::python
