#pragma once

#include <string>

#include "base/result.h"
#include "model/ledger.h"
#include "present/page/page.h"

namespace lockstep::cli {

/// A page whose data is one JSON object.
struct DataPage {
  page::PageKind kind = page::PageKind::kCompare;
  std::string title;
  std::string sentence;  ///< The verdict.
  std::string text;      ///< The report as text: what is shown without scripts.
  std::string data_json;
  model::Ledger ledger;
  bool partial = false;
};

/// Writes it whole or not at all. Errors: those of WriteOutputFile.
Status WriteDataPage(const DataPage& page, const std::string& path);

}  // namespace lockstep::cli
