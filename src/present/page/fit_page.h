#pragma once

#include <cstdint>
#include <vector>

#include "present/page/page_blocks.h"

namespace lockstep::page {

/// A page's frame and blocks, made to fit a size.
struct FittedPage {
  PageFrame frame;
  std::vector<Block> blocks;
  std::vector<Reduction> reductions;
};

/// Bytes that the block takes in the page.
uint64_t EmbeddedBytes(const Block& block);

/// The page of a run in at most `page_bytes` bytes (less than that where single events had to be thinned out), or as
/// small as it gets. Order of what is left out: docs/formats/page-data.md#what-is-left-out. Cost: every block is made
/// once or twice; events of a few ranks once more, to tell how well they pack.
FittedPage FitPage(const PageInput& input, uint64_t page_bytes, const PageProgress& on_progress = {});

}  // namespace lockstep::page
