#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/ledger.h"

namespace lockstep::page {

enum class PageKind : uint8_t {
  kAnalyze,
  kCompare,
  kScaling,
  kHang,
  kStages,
  kStageComparison,
  kNccl,
  kKernels,
  kFabric,
  kLive
};
const char* PageKindName(PageKind kind);  ///< "analyze", "stage-comparison": docs/formats/page-data.md.

/// A piece of a page's data, compressed. What is in it: docs/formats/page-data.md.
struct Block {
  std::string name;        ///< "main", "steps", "events-12": [a-z0-9-]+.
  std::string gzip;        ///< One gzip member.
  uint64_t raw_bytes = 0;  ///< Before compression.
};

/// Compresses. Thread-safe. Cost: some 100 MB/s.
Block MakeBlock(std::string name, std::string_view raw);

/// What a reader of the page must know that was left out of it.
struct Reduction {
  std::string what;     ///< Stable snake_case name, such as "events".
  std::string message;  ///< For people, with numbers.
};

/// The JSON text of block "main": PageDocument of web/src/data/types.ts. `data_json` is one JSON value, the `data` of
/// that kind of page. Texts may hold any bytes; they are made valid UTF-8.
std::string DocumentJson(PageKind kind, std::string_view title, bool partial, const std::vector<Reduction>& reductions,
                         const model::Ledger& ledger, std::string_view data_json);

/// The page around its data.
struct PageFrame {
  PageKind kind = PageKind::kAnalyze;
  std::string title;         ///< Plain text; escaped here.
  std::string summary_html;  ///< The part that needs no script: sections of HTML, escaped by its writer (html.h).
};

/// Writes a whole page: the template that was built into the program, the summary, the blocks in the order given.
/// The page needs no network and opens from file://. Errors of `out` are the caller's to look at.
void ComposePage(const PageFrame& frame, std::span<const Block> blocks, std::ostream& out);

/// The same page without data: it fetches `data_path` + block name (gzip, Content-Encoding: gzip or as it is, both are
/// understood) from the server it came from when it needs the block.
std::string ServedPage(const PageFrame& frame, std::string_view data_path = "data/");

}  // namespace lockstep::page
