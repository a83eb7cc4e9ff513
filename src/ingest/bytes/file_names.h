#pragma once

#include <string>
#include <string_view>

namespace lockstep::ingest {

/// What a file's name, on disk or in an archive, says about its content. Cases are ignored; see
/// docs/formats/file-names.md.
enum class NameKind {
  kOther,  ///< Not of interest: README, *.csv, *.yaml, hidden files.
  kTrace,  ///< May be a trace: *.json, *.pftrace, *.perfetto-trace, *.pb, *.sqlite, *.spans, lockstep-nccl.*.ring,
           ///< each plain or with .gz, .zst or .xz (and *.json.bz2, to be refused by name).
  kNsightReport,     ///< *.nsys-rep, *.qdrep: Nsight Systems' own format, which its `nsys export` reads.
  kNsightRaw,        ///< *.qdstrm: what Nsight Systems recorded and could not turn into a report.
  kNcuReport,        ///< *.ncu-rep, *.ncu-repz: single kernels, not a trace.
  kUnfinishedTrace,  ///< *.json.tmp: the profiler was still writing, or died.
  kArchive,          ///< *.tar, *.tar.gz, *.tgz, *.tar.zst, *.tzst, *.zip.
};
NameKind KindOfName(std::string_view path);

/// The last component of a path.
std::string_view BaseName(std::string_view path);

/// `path` with control characters and bytes that are not UTF-8 written as \xNN, so that it can be shown.
std::string PrintableName(std::string_view path);

}  // namespace lockstep::ingest
