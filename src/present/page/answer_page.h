#pragma once

#include <string>

#include "model/ledger.h"
#include "present/page/page.h"

namespace lockstep::page {

/// The page of a command other than `analyze`: its data is what `--json` says, all in one block.
struct AnswerPage {
  PageKind kind = PageKind::kHang;
  std::string title;      ///< Plain text.
  std::string lead_html;  ///< What it comes to, for who has no script; escaped by its writer.
  std::string text;       ///< The report as text, for the same.
  bool partial = false;
  model::Ledger ledger = {};
  std::string data_json;  ///< One JSON value: docs/formats/page-data.md has what each kind holds.
};

/// The whole file.
std::string ComposeAnswerPage(const AnswerPage& answer);

/// The usual lead: one sentence.
std::string LeadHtml(const std::string& sentence);

}  // namespace lockstep::page
