#include "present/serve/report_site.h"

#include <fmt/format.h>

#include <functional>
#include <list>
#include <map>
#include <sstream>
#include <string_view>

#include "base/mutex.h"
#include "present/page/page.h"
#include "present/report/report.h"

namespace lockstep::serve {
namespace {

constexpr std::string_view kDataPath = "/data/";

std::string EtagOf(const std::string& bytes) {
  return fmt::format("\"{:x}-{:016x}\"", bytes.size(), std::hash<std::string>()(bytes));
}

}  // namespace

struct ReportSite::State {
  struct Kept {
    std::shared_ptr<const std::string> gzip;  // Null while nobody has made it.
    std::string etag;
    std::list<std::string>::iterator use = {};
  };

  State(const page::PageInput& input_, uint64_t cache_bytes_)
      : input(input_), blocks(input_, ServedLimits()), cache_bytes(cache_bytes_) {
    page = std::make_shared<const std::string>(page::ServedPage(blocks.Frame()));
    page_etag = EtagOf(*page);
  }

  /// A server leaves nothing out: what is not looked at is not made.
  static page::PageLimits ServedLimits() { return {}; }

  http::Response Block(const std::string& name, bool accepts_gzip) {
    const MutexLock lock(mutex);
    const auto at = kept.find(name);
    if (at == kept.end()) {
      Result<page::Block> block = blocks.Make(name);
      if (!block) return http::TextResponse(404, fmt::format("This run has no block '{}'.\n", name));
      Kept entry;
      entry.gzip = std::make_shared<const std::string>(std::move(block->gzip));
      entry.etag = EtagOf(*entry.gzip);
      entry.use = uses.insert(uses.begin(), name);
      kept_bytes += entry.gzip->size();
      const http::Response response = ResponseOf(entry, accepts_gzip);
      kept.emplace(name, std::move(entry));
      DropOld();
      return response;
    }
    uses.splice(uses.begin(), uses, at->second.use);
    return ResponseOf(at->second, accepts_gzip);
  }

  static http::Response ResponseOf(const Kept& entry, bool accepts_gzip) {
    http::Response response;
    response.content_type = accepts_gzip ? "application/octet-stream" : "application/gzip";
    response.gzip = accepts_gzip;
    response.body = entry.gzip;
    response.etag = entry.etag;
    return response;
  }

  void DropOld() LOCKSTEP_REQUIRES(mutex) {
    while (kept_bytes > cache_bytes && uses.size() > 1) {
      const auto oldest = kept.find(uses.back());
      kept_bytes -= oldest->second.gzip->size();
      kept.erase(oldest);
      uses.pop_back();
    }
  }

  http::Response Json() const {
    std::ostringstream out;
    report::WriteJson(input.run, input.result, input.partial, out);
    http::Response response;
    response.content_type = "application/json";
    response.body = std::make_shared<const std::string>(std::move(out).str());
    return response;
  }

  const page::PageInput input;
  const page::PageBlocks blocks;
  const uint64_t cache_bytes;
  std::shared_ptr<const std::string> page;
  std::string page_etag;

  Mutex mutex;  // Making a block holds it, so that a block is made once.
  std::map<std::string, Kept> kept LOCKSTEP_GUARDED_BY(mutex);
  std::list<std::string> uses LOCKSTEP_GUARDED_BY(mutex);  // Names of `kept`, the one used last in front.
  uint64_t kept_bytes LOCKSTEP_GUARDED_BY(mutex) = 0;
};

ReportSite::ReportSite(const page::PageInput& input, uint64_t cache_bytes)
    : state_(std::make_unique<State>(input, cache_bytes)) {}
ReportSite::~ReportSite() = default;

http::Response ReportSite::Answer(const http::Request& request) {
  if (request.path == "/" || request.path == "/index.html") {
    http::Response response;
    response.content_type = "text/html; charset=utf-8";
    response.body = state_->page;
    response.etag = state_->page_etag;
    return response;
  }
  if (request.path.rfind(kDataPath, 0) == 0) {
    return state_->Block(request.path.substr(kDataPath.size()), request.accepts_gzip);
  }
  if (request.path == "/api/analyze") return state_->Json();
  if (request.path == "/-/healthy") return http::TextResponse(200, "healthy\n");
  return http::TextResponse(404, "There is nothing here; the report is at /.\n");
}

}  // namespace lockstep::serve
