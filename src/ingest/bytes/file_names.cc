#include "ingest/bytes/file_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "base/letter_case.h"

namespace lockstep::ingest {
namespace {

bool EndsWithAny(std::string_view text, std::span<const std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view ending) { return text.ends_with(ending); });
}

// Length of the UTF-8 sequence at the beginning of `text` (not empty), or 0 when there is none that may be shown.
size_t PrintableSequence(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return byte(0) >= 0x20 && byte(0) != 0x7f ? 1 : 0;
  const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, beyond U+10FFFF, and the C1 control characters.
  if (byte(0) == 0xe0 && byte(1) < 0xa0) return 0;
  if (byte(0) == 0xed && byte(1) >= 0xa0) return 0;
  if (byte(0) == 0xf0 && byte(1) < 0x90) return 0;
  if (byte(0) == 0xf4 && byte(1) >= 0x90) return 0;
  if (byte(0) == 0xc2 && byte(1) < 0xa0) return 0;
  return length;
}

}  // namespace

NameKind KindOfName(std::string_view path) {
  static constexpr std::string_view kTraceEndings[] = {".json", ".pftrace", ".perfetto-trace",
                                                       ".pb",   ".sqlite",  ".spans"};
  static constexpr std::string_view kCompressedEndings[] = {".gz", ".zst", ".xz"};
  // XLA's and TensorFlow's profiles and models are protobuf as well.
  static constexpr std::string_view kOtherEndings[] = {".xplane.pb", "saved_model.pb", "frozen_graph.pb"};
  // Says how the files of an archive belong together (docs/formats/perfetto.md).
  constexpr std::string_view kManifest = "perfetto_manifest.json";
  // What `lockstep capture` says of the traces beside it.
  constexpr std::string_view kCaptureRecord = "lockstep-capture-";
  static constexpr std::string_view kNsightEndings[] = {".nsys-rep", ".qdrep"};
  static constexpr std::string_view kNcuEndings[] = {".ncu-rep", ".ncu-repz"};
  static constexpr std::string_view kUnfinishedEndings[] = {".json.tmp", ".json.gz.tmp"};
  static constexpr std::string_view kArchiveEndings[] = {".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst", ".zip"};
  const std::string name = Lowered(BaseName(path));
  if (name.empty() || name.front() == '.') return NameKind::kOther;
  std::string_view plain = name;
  for (const std::string_view ending : kCompressedEndings) {
    if (plain.ends_with(ending)) {
      plain.remove_suffix(ending.size());
      break;
    }
  }
  if (EndsWithAny(plain, kOtherEndings) || name == kManifest) return NameKind::kOther;
  if (name.starts_with(kCaptureRecord) && name.ends_with(".json")) return NameKind::kOther;
  // What the NCCL profiler plugin keeps of a process; other rings are none of ours.
  if (plain.starts_with("lockstep-nccl.") && plain.ends_with(".ring")) return NameKind::kTrace;
  if (EndsWithAny(plain, kTraceEndings) || name.ends_with(".json.bz2")) return NameKind::kTrace;
  if (EndsWithAny(name, kNsightEndings)) return NameKind::kNsightReport;
  if (name.ends_with(".qdstrm")) return NameKind::kNsightRaw;
  if (EndsWithAny(name, kNcuEndings)) return NameKind::kNcuReport;
  if (EndsWithAny(name, kUnfinishedEndings)) return NameKind::kUnfinishedTrace;
  if (EndsWithAny(name, kArchiveEndings)) return NameKind::kArchive;
  return NameKind::kOther;
}

std::string_view BaseName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string PrintableName(std::string_view path) {
  std::string shown;
  shown.reserve(path.size());
  while (!path.empty()) {
    const size_t length = PrintableSequence(path);
    if (length > 0) {
      shown += path.substr(0, length);
    } else {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(path[0]));
    }
    path.remove_prefix(std::max<size_t>(length, 1));
  }
  return shown;
}

}  // namespace lockstep::ingest
