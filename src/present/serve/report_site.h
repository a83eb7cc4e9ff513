#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/http/http_message.h"
#include "present/page/page_blocks.h"

namespace lockstep::serve {

/// The report page of one analysed run, answered piece by piece: "/" is the page, "/data/NAME" a block of its data
/// (docs/formats/page-data.md) made when it is first asked for, "/api/analyze" the run as lockstep.analyze/1,
/// "/-/healthy" one word. Blocks that were made are kept up to `cache_bytes`, those used last. Thread-safe; two
/// requests for a block that is being made wait for the one that makes it.
class ReportSite {
 public:
  /// `input` is borrowed for the life of this.
  ReportSite(const page::PageInput& input, uint64_t cache_bytes);
  ~ReportSite();
  ReportSite(const ReportSite&) = delete;
  ReportSite& operator=(const ReportSite&) = delete;

  http::Response Answer(const http::Request& request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::serve
