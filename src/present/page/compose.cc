#include <fmt/format.h>

#include <array>
#include <sstream>

#include "base/base64.h"
#include "present/page/html.h"
#include "present/page/page.h"
#include "present/page/page_template.h"

namespace lockstep::page {
namespace {

constexpr std::string_view kClosedPolicy = "connect-src 'none'";
constexpr std::string_view kServedPolicy = "connect-src 'self'";

/// Writes the template; `fill` writes what stands at a mark, by the mark's name.
template <typename Fill>
void FillTemplate(std::string_view text, std::ostream& out, Fill fill) {
  constexpr std::string_view kMark = "<!--lockstep:";
  constexpr std::string_view kEnd = "-->";
  for (;;) {
    const size_t at = text.find(kMark);
    const size_t end = at == std::string_view::npos ? at : text.find(kEnd, at);
    if (end == std::string_view::npos) break;
    out << text.substr(0, at);
    fill(text.substr(at + kMark.size(), end - at - kMark.size()));
    text.remove_prefix(end + kEnd.size());
  }
  out << text;
}

void WriteBlock(const Block& block, std::ostream& out) {
  out << fmt::format(R"(<script type="application/x-lockstep" id="lockstep-{}" data-raw-bytes="{}">)", block.name,
                     block.raw_bytes);
  WriteBase64(block.gzip, out);
  out << "</script>\n";
}

void WritePage(std::string_view text, const PageFrame& frame, std::string_view meta, std::span<const Block> blocks,
               std::ostream& out) {
  FillTemplate(text, out, [&](std::string_view mark) {
    if (mark == "title") {
      out << EscapeHtml(frame.title);
    } else if (mark == "meta") {
      out << fmt::format("<meta name=\"lockstep-kind\" content=\"{}\">", PageKindName(frame.kind)) << meta;
    } else if (mark == "summary") {
      out << frame.summary_html;
    } else if (mark == "blocks") {
      for (const Block& block : blocks) WriteBlock(block, out);
    }
  });
}

}  // namespace

const char* PageKindName(PageKind kind) {
  switch (kind) {
    case PageKind::kAnalyze: return "analyze";
    case PageKind::kCompare: return "compare";
    case PageKind::kScaling: return "scaling";
    case PageKind::kHang: return "hang";
    case PageKind::kStages: return "stages";
    case PageKind::kStageComparison: return "stage-comparison";
    case PageKind::kNccl: return "nccl";
    case PageKind::kKernels: return "kernels";
    case PageKind::kFabric: return "fabric";
    case PageKind::kLive: return "live";
  }
  return "analyze";
}

void ComposePage(const PageFrame& frame, std::span<const Block> blocks, std::ostream& out) {
  WritePage(PageTemplate(frame.kind), frame, "", blocks, out);
}

std::string ServedPage(const PageFrame& frame, std::string_view data_path) {
  std::string text(PageTemplate(frame.kind));
  if (const size_t at = text.find(kClosedPolicy); at != std::string::npos) {
    text.replace(at, kClosedPolicy.size(), kServedPolicy);
  }
  std::ostringstream out;
  WritePage(text, frame, fmt::format("<meta name=\"lockstep-data\" content=\"{}\">", EscapeHtml(data_path)), {}, out);
  return std::move(out).str();
}

}  // namespace lockstep::page
