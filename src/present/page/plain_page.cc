#include "present/page/plain_page.h"

#include <fmt/format.h>

#include "present/page/html.h"

namespace lockstep::page {
namespace {

constexpr const char* kPlainStyle = R"(
:root { color-scheme: light dark; --ink: #1b1f24; --faint: #57606a; --paper: #ffffff; --line: #d0d7de; --fill: #eef3fb;
  --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --faint: #9aa4b1; --paper: #14171b; --line: #3a424c;
  --fill: #1f2733; --bad: #ff8a80; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto; padding: 1.5rem;
  max-width: 76rem; }
h1, h2 { overflow-wrap: anywhere; } h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
table { border-collapse: collapse; } th, td { text-align: left; vertical-align: top; padding: .3rem .9rem .3rem 0;
  border-bottom: 1px solid var(--line); } td.number, th.number { text-align: right; white-space: nowrap; }
.faint { color: var(--faint); } .wide { overflow-x: auto; } pre { overflow-x: auto; background: var(--fill); padding: 1rem; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; } svg .grid { stroke: var(--line); fill: none; }
svg .axis { fill: var(--faint); }
.key { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; padding: 0; }
)";

}  // namespace

std::string OpenPlainPage(std::string_view title, std::string_view heading, std::string_view style) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{} - lockstep</title>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<style>{}{}</style></head><body>\n<main>\n<h1>{}</h1>\n",
      title, kPlainStyle, style, heading);
}

std::string OpenTable(std::string_view label, const std::vector<std::pair<const char*, bool>>& columns) {
  std::string html =
      fmt::format("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table><thead><tr>", label);
  for (const auto& [title, is_number] : columns) {
    html += fmt::format("<th scope=\"col\"{}>{}</th>", is_number ? " class=\"number\"" : "", title);
  }
  return html + "</tr></thead><tbody>\n";
}

std::string KeyItem(std::string_view style, std::string_view label) {
  return fmt::format(
      "<li><svg class=\"swatch\" width=\"12\" height=\"12\" aria-hidden=\"true\"><rect class=\"{}\" width=\"12\" "
      "height=\"12\"/></svg> {}</li>",
      style, label);
}

std::string NumberCell(std::string_view text) { return fmt::format("<td class=\"number\">{}</td>", text); }
std::string TextCell(std::string_view text) { return fmt::format("<td>{}</td>", EscapeHtml(text)); }

}  // namespace lockstep::page
