// Logs of ranks: writing beside spdlog's own file sink, reading beside what memory and files give.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "ingest/logs/log_fold.h"
#include "ingest/logs/log_merger.h"
#include "inside/logger/logger.h"
#include "model/log_line/line.h"
#include "present/report/logs/log_output.h"

namespace {

namespace fs = std::filesystem;
using namespace lockstep;

/// A folder of its own, gone at the end.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "lockstep-log-bench-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

template <typename Log>
void LogLines(benchmark::State& state, Log& logger) {
  int64_t step = 0;
  for (auto _ : state) logger.info("step {} loss {:.6f} of a typical training job", ++step, 2.5);
  state.SetItemsProcessed(state.iterations());
}

void SpdlogFile(benchmark::State& state, bool flushes) {
  const Folder folder;
  auto sink =
      std::make_shared<spdlog::sinks::rotating_file_sink_mt>((folder.path() / "x.log").string(), 100'000'000, 4);
  spdlog::logger logger("job", sink);
  logger.set_pattern("%Y-%m-%dT%H:%M:%S.%FZ %L rank3 node0 %n: %v");
  if (flushes) logger.flush_on(spdlog::level::trace);
  LogLines(state, logger);
}
BENCHMARK_CAPTURE(SpdlogFile, buffered, false);
BENCHMARK_CAPTURE(SpdlogFile, each_line_to_the_system, true);

void LockstepLogger(benchmark::State& state, bool is_buffered, bool is_json) {
  const Folder folder;
  const auto logger =
      Logger::Create({.folder = folder.path().string(), .rank = 3, .is_json = is_json, .is_buffered = is_buffered});
  LogLines(state, *logger);
}
BENCHMARK_CAPTURE(LockstepLogger, buffered, true, false);
BENCHMARK_CAPTURE(LockstepLogger, buffered_json, true, true);
BENCHMARK_CAPTURE(LockstepLogger, each_line_to_the_system, false, false);

/// Logs of eight ranks: steps that all say, and what each says alone.
struct Job {
  Folder folder;
  uint64_t line_count = 0;
  uint64_t byte_count = 0;

  Job() {
    constexpr int32_t kRanks = 8;
    constexpr int kLines = 250'000;
    for (int32_t rank = 0; rank < kRanks; ++rank) {
      std::mt19937_64 random(static_cast<uint64_t>(rank));
      std::string text;
      logs::LineWriter writer(logs::LineForm::kText, rank, fmt::format("node{}", rank / 4));
      int64_t time_ns = 1'795'399'937'000'000'000;
      for (int i = 0; i < kLines; ++i) {
        time_ns += 1'000'000 + static_cast<int64_t>(random() % 1'000);
        const std::string line = i % 4 == 0 ? fmt::format("step {} done", i)
                                            : fmt::format("step {} loss {} tokens/s {} and more of a line", i,
                                                          random() % 1'000'000, random() % 10'000);
        writer.Append({time_ns, time_ns % 1'000'000'000'000}, i % 5'000 == 7 ? logs::Level::kError : logs::Level::kInfo,
                      "err", line, &text);
      }
      std::ofstream(folder.path() / fmt::format("rank{}.log", rank)) << text;
      line_count += kLines;
      byte_count += text.size();
    }
  }
};

const Job& TheJob() {
  static const Job job;
  return job;
}

void SetRates(benchmark::State& state) {
  const auto runs = static_cast<int64_t>(state.iterations());
  state.SetItemsProcessed(runs * static_cast<int64_t>(TheJob().line_count));
  state.SetBytesProcessed(runs * static_cast<int64_t>(TheJob().byte_count));
}

/// The files through read() into one buffer that stays in cache: no reader of files is faster.
void ReadFiles(benchmark::State& state) {
  std::vector<char> buffer(size_t{256} << 10);
  for (auto _ : state) {
    for (const auto& entry : fs::directory_iterator(TheJob().folder.path())) {
      const int fd = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
      while (::read(fd, buffer.data(), buffer.size()) > 0) benchmark::DoNotOptimize(buffer.data());
      ::close(fd);
    }
  }
  SetRates(state);
}
BENCHMARK(ReadFiles)->Unit(benchmark::kMillisecond);

/// Their line ends found in memory, and each line copied: no printer of lines is faster.
void CopyLinesInMemory(benchmark::State& state) {
  std::string all;
  for (const auto& entry : fs::directory_iterator(TheJob().folder.path())) {
    std::ifstream file(entry.path());
    std::ostringstream text;
    text << file.rdbuf();
    all += text.str();
  }
  std::vector<char> out(size_t{1} << 16);
  for (auto _ : state) {
    const char* at = all.data();
    const char* const end = at + all.size();
    while (at < end) {
      const char* next = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at))) + 1;
      std::memcpy(out.data(), at, static_cast<size_t>(next - at));
      benchmark::DoNotOptimize(out.data());
      at = next;
    }
  }
  SetRates(state);
}
BENCHMARK(CopyLinesInMemory)->Unit(benchmark::kMillisecond);

class Nowhere : public std::streambuf {
 protected:
  std::streamsize xsputn(const char* bytes, std::streamsize size) override {
    benchmark::DoNotOptimize(bytes);
    return size;
  }
  int_type overflow(int_type c) override { return traits_type::not_eof(c); }
};

/// What `lockstep logs` does, but for printing to somewhere.
void Logs(benchmark::State& state, int64_t fold_window_ns, const logs::LogFilter& filter) {
  for (auto _ : state) {
    auto families = logs::FindLogs({TheJob().folder.path().string()});
    if (!families) return state.SkipWithError("no logs");
    std::vector<std::unique_ptr<logs::LogReader>> readers;
    logs::LogMerger merger;
    for (logs::LogFamily& family : *families) {
      readers.push_back(std::make_unique<logs::LogReader>(std::move(family), filter, logs::LogReader::ClockOffset()));
      merger.Add(readers.back().get());
    }
    Nowhere nowhere;
    std::ostream out(&nowhere);
    report::LogText text(out, false);
    logs::LogFold fold(fold_window_ns, [&](const logs::FoldedLine& line) { text.Line(line); });
    logs::LogLine line;
    while (merger.Next(&line)) fold.Add(line);
    fold.Flush();
    text.Flush();
  }
  SetRates(state);
}
BENCHMARK_CAPTURE(Logs, merged, 0, logs::LogFilter{})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Logs, merged_and_folded, 1'000'000'000, logs::LogFilter{})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Logs, errors_alone, 1'000'000'000, logs::LogFilter{.least = logs::Level::kError})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Logs, one_text, 1'000'000'000, logs::LogFilter{.texts = {"loss 777"}})->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
