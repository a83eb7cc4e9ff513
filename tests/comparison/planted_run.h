#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "analysis/analysis_result.h"
#include "analysis/analyze.h"
#include "analysis/comparison/run_profile.h"
#include "analysis/rank_context.h"
#include "generator/generate.h"
#include "ingest/job/ingest_run.h"

namespace lockstep::comparison::testing {

/// A small job: two ranks, twelve steps of one layer. Tests change what they plant.
inline tracegen::TraceSpec SmallJob(uint64_t seed) {
  tracegen::TraceSpec spec;
  spec.rank_count = 2;
  spec.step_count = 12;
  spec.layer_count = 2;
  spec.bucket_layers = 1;
  spec.seed = seed;
  return spec;
}

/// Generates, reads and profiles a job; its files are gone afterwards.
inline RunProfile ProfileOf(tracegen::TraceSpec spec, const ProfileOptions& options = {}) {
  const auto folder = std::filesystem::temp_directory_path() /
                      ("lockstep-planted-" + std::to_string(::getpid()) + "-" + std::to_string(spec.seed));
  spec.folder = folder.string();
  tracegen::Generate(spec);
  ingest::IngestOptions ingest_options;
  ingest_options.thread_count = 1;
  Result<model::Run> run = ingest::IngestRun({spec.folder}, ingest_options);
  std::filesystem::remove_all(folder);
  std::filesystem::remove(spec.folder + ".truth.json");
  if (!run) throw std::runtime_error(run.error().ToString());
  analysis::AnalysisOptions analysis_options;
  analysis_options.thread_count = 1;
  const Result<analysis::AnalysisResult> result = analysis::Analyze(&*run, analysis_options, {});
  if (!result) throw std::runtime_error(result.error().ToString());
  return MakeRunProfile("seed " + std::to_string(spec.seed), *run, *result, analysis_options, options);
}

}  // namespace lockstep::comparison::testing
