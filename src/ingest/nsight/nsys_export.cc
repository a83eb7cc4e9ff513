#include "ingest/nsight/nsys_export.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/nanoseconds.h"
#include "base/subprocess.h"
#include "base/temporary_folder.h"
#include "base/utf8.h"
#include "ingest/bytes/file_source.h"
#include "ingest/nsight/nsys_report.h"

namespace lockstep::ingest {
namespace {

using Version = std::array<int, 4>;

constexpr std::string_view kMagic = "NVIDIA Tegra Profiler Report ";
/// Since when an export can hold what ranges carry (NCCL: communicator, size, peer) in words.
constexpr Version kDecodesPayloads = {2025, 3, 0, 0};
constexpr int64_t kExportTimeoutNs = 30 * 60 * kSecondNs;

/// Four numbers with `separators` between them.
std::optional<Version> ReadVersion(std::string_view text, std::string_view separators) {
  Version version = {};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (size_t i = 0; i < version.size(); ++i) {
    if (i > 0 && (at == end || separators.find(*at) == std::string_view::npos)) return std::nullopt;
    if (i > 0) ++at;
    const auto [next, error] = std::from_chars(at, end, version[i]);
    if (error != std::errc() || version[i] < 0) return std::nullopt;
    at = next;
  }
  return version;
}

std::string Text(const Version& version) { return fmt::format("{}.{}.{}", version[0], version[1], version[2]); }

Error CannotExport(std::string why, const std::string& display_name) {
  return {.code = ErrorCode::kUnsupported,
          .message = fmt::format("is an Nsight Systems report, which only nsys reads, and {}; where there is one, run: "
                                 "nsys export -t sqlite -o REPORT.sqlite REPORT.nsys-rep",
                                 why),
          .file = display_name};
}

}  // namespace

bool StartsNsysReport(std::string_view bytes) { return bytes.starts_with(kMagic); }

std::optional<Version> ReportVersion(std::string_view head) {
  if (!StartsNsysReport(head)) return std::nullopt;
  return ReadVersion(head.substr(kMagic.size()), "@-");
}

std::optional<Version> NsysVersion(std::string_view printed) {
  constexpr std::string_view kWord = "version ";
  const size_t at = printed.find(kWord);
  return at == std::string_view::npos ? std::nullopt : ReadVersion(printed.substr(at + kWord.size()), ".-");
}

Result<std::vector<TraceContent>> ReadNsysReport(std::string_view head, const std::string& path,
                                                 const std::string& display_name, const TraceReaderOptions& options) {
  if (path.empty()) return CannotExport("this one is inside another file", display_name);
  const auto told = RunCommand({"nsys", "--version"});
  if (!told || told->exit_status != 0) return CannotExport("there is no nsys in PATH", display_name);
  const std::optional<Version> installed = NsysVersion(told->output);
  const std::optional<Version> written_by = ReportVersion(head);
  if (installed && written_by && *installed < *written_by) {
    return CannotExport(
        fmt::format("nsys {} wrote it, newer than the {} that is installed", Text(*written_by), Text(*installed)),
        display_name);
  }
  const TemporaryFolder folder;
  if (!folder.made()) return CannotExport("no temporary folder can be made in TMPDIR", display_name);
  // A path that begins with a dash would be an option.
  const std::string input = path.starts_with('-') ? "./" + path : path;
  const std::string output = folder.File("export.sqlite");
  CommandOptions command;
  command.timeout_ns = kExportTimeoutNs;
  const auto run = [&](bool with_payloads) {
    std::vector<std::string> words = {"nsys", "export",   "--type", "sqlite", "--force-overwrite",
                                      "true", "--output", output,   input};
    if (with_payloads) words.insert(words.begin() + 2, "--include-json=true");
    return RunCommand(words, command);
  };
  const bool decodes_payloads = installed && *installed >= kDecodesPayloads;
  auto exported = run(decodes_payloads);
  // Its exit status says little: the file does.
  if (decodes_payloads && ::access(output.c_str(), R_OK) != 0) exported = run(false);
  if (!exported || ::access(output.c_str(), R_OK) != 0) {
    const std::string said = exported ? exported->error + exported->output : exported.error().ToString();
    return CannotExport(fmt::format("nsys could not export it ({})", Printable(said.substr(0, 300))), display_name);
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, OpenRawFile(output));
  return ReadNsysExport(*source, output, display_name, options);
}

}  // namespace lockstep::ingest
