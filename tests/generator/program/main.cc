#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <exception>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "generator/generate.h"

namespace {

using lockstep::tracegen::SlowBy;
using lockstep::tracegen::Style;
using lockstep::tracegen::TraceSpec;

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

int64_t MicrosToNs(const std::string& text) { return std::llround(std::stod(text) * 1000); }

/// RANK:DELAY_US[:HOW[:STEP_IDX[:EVERY]]]
lockstep::tracegen::PlantedStraggler ReadStraggler(const std::string& text) {
  const std::vector<std::string> parts = Split(text, ':');
  if (parts.size() < 2 || parts.size() > 5)
    throw std::runtime_error("a straggler is RANK:DELAY_US[:HOW[:STEP[:EVERY]]], not " + text);
  lockstep::tracegen::PlantedStraggler planted;
  planted.rank = std::stoi(parts[0]);
  planted.delay_ns = MicrosToNs(parts[1]);
  const std::map<std::string, SlowBy> ways = {{"kernel", SlowBy::kKernel},
                                              {"loader", SlowBy::kLoader},
                                              {"host", SlowBy::kHost},
                                              {"operator", SlowBy::kOperator},
                                              {"gc", SlowBy::kCollector},
                                              {"allocator", SlowBy::kAllocator},
                                              {"checkpoint", SlowBy::kCheckpoint},
                                              {"launch", SlowBy::kLaunch},
                                              {"copy", SlowBy::kCopy},
                                              {"link", SlowBy::kLink},
                                              {"unrecorded", SlowBy::kUnrecorded}};
  if (parts.size() > 2) planted.by = ways.at(parts[2]);
  if (parts.size() > 3 && !parts[3].empty()) planted.step = std::stoi(parts[3]);
  if (parts.size() > 4) planted.every = std::stoi(parts[4]);
  return planted;
}

/// RANK:START_US:END_US, either end may be empty.
lockstep::tracegen::PlantedClip ReadClip(const std::string& text) {
  const std::vector<std::string> parts = Split(text, ':');
  if (parts.size() < 2) throw std::runtime_error("a clip is RANK:START_US:END_US, not " + text);
  lockstep::tracegen::PlantedClip clip;
  clip.rank = std::stoi(parts[0]);
  if (!parts[1].empty()) clip.start_ns = MicrosToNs(parts[1]);
  if (parts.size() > 2 && !parts[2].empty()) clip.end_ns = MicrosToNs(parts[2]);
  return clip;
}

struct Texts {
  std::vector<std::string> stragglers, clips, cuts;
  std::vector<double> offset_us;
  double transfer_us = 400;
  double loader_us = 300;
  double jitter_us = 0.5;
};

void AddOptions(CLI::App* app, TraceSpec* spec, Texts* texts) {
  const std::map<std::string, Style> styles = {{"torch22", Style::kTorch22},
                                               {"current", Style::kCurrent},
                                               {"us", Style::kMicroseconds},
                                               {"indent4", Style::kIndent4},
                                               {"min", Style::kMinified}};
  app->add_option("--out", spec->folder, "folder to write; the truth goes to FOLDER.truth.json")->required();
  app->add_option("--ranks", spec->rank_count, "ranks of the job")->check(CLI::Range(1, 100000));
  app->add_option("--steps", spec->step_count, "training steps")->check(CLI::Range(1, 1000000));
  app->add_option("--first-step", spec->first_step, "number of the first ProfilerStep");
  app->add_option("--layers", spec->layer_count, "transformer blocks")->check(CLI::Range(1, 100000));
  app->add_option("--target-mb", spec->target_megabytes, "MB of JSON per rank; chooses --steps");
  app->add_option("--seed", spec->seed, "seed of all that varies");
  app->add_option("--style", spec->style, "layout of the JSON")->transform(CLI::CheckedTransformer(styles));
  app->add_option("--gz", spec->gzip_level, "gzip level")->check(CLI::Range(0, 9));
  app->add_option("--zst", spec->zstd_level, "zstd level")->check(CLI::Range(0, 19));
  app->add_option("--naming", spec->naming, "how files are named")
      ->check(CLI::IsMember({"rank", "worker", "torch", "of", "dash", "plain"}));
  app->add_flag("!--no-distributed-info", spec->distributed_info, "leave distributedInfo out");
  app->add_flag("--shapes", spec->shapes, "input shapes on operators");
  app->add_flag("--stacks", spec->stacks, "Python functions");
  app->add_flag("--memory", spec->memory_events, "[memory] instants");
  app->add_flag("--lean", spec->lean, "annotations and device events only, for jobs of many ranks and steps");
  app->add_flag("--cpu-only", spec->cpu_only, "a Gloo job without a device");
  app->add_option("--tensor-parallel", spec->tensor_parallel, "ranks per tensor-parallel group")
      ->check(CLI::Range(1, 1024));
  app->add_option("--pipeline-parallel", spec->pipeline_parallel, "stages of the pipeline, --layers each")
      ->check(CLI::Range(1, 1024));
  app->add_flag("--gradient-norm", spec->gradient_norm, "with a pipeline, an all_reduce over all ranks per step");
  app->add_option("--micro-batches", spec->micro_batches, "micro-batches of a step, with a pipeline")
      ->check(CLI::Range(1, 1024));
  app->add_flag("--sharded", spec->sharded, "gathers and reduce_scatters instead of all_reduces");
  app->add_option("--bucket-layers", spec->bucket_layers, "layers per gradient bucket")->check(CLI::Range(1, 100000));
  app->add_option("--transfer-us", texts->transfer_us, "pure transfer time of a gradient collective");
  app->add_option("--overlap", spec->overlap_ratio, "share of buckets sent during the backward pass")
      ->check(CLI::Range(0.0, 1.0));
  app->add_option("--loader-us", texts->loader_us, "data loader per step");
  app->add_option("--jitter-us", texts->jitter_us, "spread of the ends of one collective");
  app->add_option("--kernel-scale", spec->kernel_scale, "multiplies kernel durations");
  app->add_option("--kernel-tail", spec->kernel_tail, "sigma of a log-normal factor on kernel durations");
  app->add_option("--step-tail", spec->step_tail, "sigma of one on all kernels of a rank's step");
  app->add_option("--kernel-spread", spec->kernel_spread, "share by which kernel durations vary");
  app->add_option("--offset-us", texts->offset_us, "clock offset per rank")->delimiter(',');
  app->add_option("--drift-ppm", spec->drift_ppm, "clock drift per rank")->delimiter(',');
  app->add_option("--ranks-per-host", spec->ranks_per_host, "devices of a host")->check(CLI::Range(1, 1024));
  app->add_option("--straggler", texts->stragglers,
                  "RANK:DELAY_US[:kernel|loader|host|operator|gc|allocator|checkpoint|launch|copy|unrecorded|link[:"
                  "STEP_IDX[:EVERY]]]");
  app->add_option("--clip", texts->clips, "RANK:START_US:END_US, the window of a rank");
  app->add_option("--cut", texts->cuts, "RANK:RATIO, the file ends after this share of its JSON");
  app->add_option("--missing", spec->missing_ranks, "ranks that leave no file")->delimiter(',');
  app->add_option("--threads", spec->thread_count, "threads; the bytes do not depend on it");
}

}  // namespace

int main(int argc, char** argv) {
  TraceSpec spec;
  Texts texts;
  CLI::App app("Writes the Kineto traces of a simulated multi-rank job, and the truth about it.");
  AddOptions(&app, &spec, &texts);
  CLI11_PARSE(app, argc, argv);
  try {
    spec.transfer_ns = std::llround(texts.transfer_us * 1000);
    spec.loader_ns = std::llround(texts.loader_us * 1000);
    spec.jitter_ns = std::llround(texts.jitter_us * 1000);
    for (double offset_us : texts.offset_us) spec.offset_ns.push_back(std::llround(offset_us * 1000));
    for (const std::string& text : texts.stragglers) spec.stragglers.push_back(ReadStraggler(text));
    for (const std::string& text : texts.clips) spec.clips.push_back(ReadClip(text));
    for (const std::string& text : texts.cuts) {
      const std::vector<std::string> parts = Split(text, ':');
      spec.cuts.push_back({std::stoi(parts.at(0)), std::stod(parts.at(1))});
    }
    const lockstep::tracegen::Generated generated = lockstep::tracegen::Generate(spec);
    fmt::print("{} files, {} steps, {:.1f} MB of JSON, {} events\n", generated.paths.size(), generated.step_count,
               static_cast<double>(generated.json_bytes) / 1e6, generated.event_count);
  } catch (const std::exception& error) {
    fmt::print(stderr, "lockstep_trace_gen: {}\n", error.what());
    return 1;
  }
  return 0;
}
