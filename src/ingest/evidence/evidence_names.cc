#include "ingest/evidence/evidence_names.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/letter_case.h"
#include "base/text_scan.h"
#include "ingest/bytes/file_names.h"
#include "ingest/flight_recorder/flight_recorder.h"
#include "ingest/flight_recorder/name_numbers.h"

namespace lockstep::ingest {
namespace {

template <size_t N>
bool EndsInOneOf(std::string_view name, const std::array<std::string_view, N>& endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return name.ends_with(ending); });
}

}  // namespace

std::string_view FolderOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::optional<ProcessFolderName> ReadProcessFolderName(std::string_view folder) {
  std::string_view name = BaseName(folder);
  const size_t mark = name.rfind("pid");
  if (mark == std::string_view::npos || (mark > 0 && name[mark - 1] != '-')) return std::nullopt;
  const auto pid = WholeNumber<int32_t>(name.substr(mark + 3));
  if (!pid || *pid <= 0) return std::nullopt;
  ProcessFolderName found;
  found.pid = *pid;
  TextCursor cursor(name.substr(0, mark == 0 ? 0 : mark - 1));
  if (cursor.Skip("rank")) {
    const auto rank = cursor.Number<int32_t>();
    if (!rank || *rank < 0 || (!cursor.empty() && !cursor.Skip("-"))) return std::nullopt;
    found.rank = rank;
  }
  found.host = std::string(cursor.rest());
  return found;
}

std::optional<int32_t> RankOfEvidencePath(std::string_view path) {
  const std::string name = Lowered(StemOfName(path));
  const bool by_word = name.find("rank") != std::string::npos;
  std::string_view word = name;
  while (!word.empty() && (std::isdigit(static_cast<unsigned char>(word.back())) != 0)) word.remove_suffix(1);
  while (!word.empty() && (word.back() == '-' || word.back() == '_' || word.back() == '.')) word.remove_suffix(1);
  constexpr std::array<std::string_view, 2> kOthers = {"slurm", "nccl"};
  const bool other = name.starts_with("slurm") || name.starts_with("nccl") || EndsInOneOf(word, kOthers);
  if (by_word || !other) {
    if (const auto rank = RankOfDumpName(name)) return rank;
  }
  const std::string_view folder = FolderOf(path);
  if (const auto process = ReadProcessFolderName(folder)) return process->rank;
  const std::string parent = Lowered(BaseName(folder));
  if (const auto rank = WholeNumber<int32_t>(parent); rank && *rank >= 0 && parent.size() <= 7) return rank;
  TextCursor cursor(parent);
  if (cursor.Skip("rank")) {
    if (!cursor.Skip("_")) cursor.Skip("-");
    const auto rank = cursor.Number<int32_t>();
    if (rank && *rank >= 0 && cursor.empty()) return rank;
  }
  return std::nullopt;
}

bool IsNeverEvidence(std::string_view path) {
  const std::string name = Lowered(BaseName(path));
  constexpr std::array<std::string_view, 25> kEndings = {
      ".py",  ".sh",  ".c",    ".cc",  ".h",    ".md",  ".rst", ".html", ".htm",         ".css", ".js",  ".csv", ".png",
      ".jpg", ".svg", ".yaml", ".yml", ".toml", ".ini", ".pt",  ".pth",  ".safetensors", ".so",  ".pdf", ".npy"};
  return name.empty() || name.front() == '.' || EndsInOneOf(name, kEndings) || name.starts_with("readme") ||
         name.starts_with("license") || name.starts_with("notice");
}

}  // namespace lockstep::ingest
