#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/rank_context.h"
#include "base/result.h"
#include "model/run.h"
#include "present/page/page.h"
#include "present/page/page_limits.h"

namespace lockstep::page {

/// An analysed run, as the commands have it. Borrowed: it must outlive what is made from it.
struct PageInput {
  const model::Run& run;
  const analysis::AnalysisResult& result;
  const analysis::AnalysisOptions& options;  ///< Those the passes ran with.
  bool partial = false;
};

/// The data of a page of kind `analyze`, block by block: for an embedded page all of them are made, a server makes them
/// as they are asked for. Construction looks at names, steps and collectives once (some 100 ms for 10 million events);
/// afterwards everything is const and thread-safe.
class PageBlocks {
 public:
  explicit PageBlocks(const PageInput& input, const PageLimits& limits = {});
  ~PageBlocks();
  PageBlocks(PageBlocks&&) noexcept;
  PageBlocks& operator=(PageBlocks&&) noexcept;

  /// "main", "steps", "collectives", "tables", "sql-worker", "sqlite", "timeline", "names", "events-0", "events-1", ...
  /// (by index into Run::ranks); only those that exist for this run.
  const std::vector<std::string>& names() const;
  /// Cost: in proportion to the block; "timeline" and "main" walk every event of the run.
  /// Errors: kNotFound for a name that is not in names().
  Result<Block> Make(std::string_view name) const;
  /// Title and summary of the page.
  PageFrame Frame() const;
  /// What the limits left out. `main` holds the same.
  const std::vector<Reduction>& reductions() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// How far the packing of a page is, in blocks; `all` grows when a part has to be packed again, smaller. Calls come one
/// at a time, from any thread.
using PageProgress = std::function<void(size_t done, size_t all)>;

/// Writes a whole page of kind `analyze` of at most `page_bytes` bytes, leaving out in this order what does not fit:
/// docs/formats/page-data.md#what-is-left-out. Only a page whose smallest form is larger than that is larger.
void WriteAnalyzePage(const PageInput& input, uint64_t page_bytes, std::ostream& out,
                      const PageProgress& on_progress = {});

}  // namespace lockstep::page
