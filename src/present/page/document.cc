#include "present/page/page.h"
#include "present/report/json_stream.h"

namespace lockstep::page {

std::string DocumentJson(PageKind kind, std::string_view title, bool partial, const std::vector<Reduction>& reductions,
                         const model::Ledger& ledger, std::string_view data_json) {
  report::JsonRow json;
  json.Key("schema").Text("lockstep.page/1").Key("kind").Text(PageKindName(kind)).Key("version").Text(LOCKSTEP_VERSION);
  json.Key("title").Text(title).Key("partial").Bool(partial);
  json.Key("reductions").Each(reductions, [&](const Reduction& reduction) {
    json.Key("what").Text(reduction.what).Key("message").Text(reduction.message);
  });
  json.Key("ledger").Each(ledger.entries(), [&](const model::LedgerEntry& entry) {
    json.Key("code").Text(entry.code).Key("severity").Text(model::SeverityName(entry.severity));
    json.Key("source").TextOrNull(entry.source).Key("rank").Optional(entry.rank);
    json.Key("byte_offset").Optional(entry.byte_offset).Key("count").Uint(entry.count);
    json.Key("message").Text(entry.message).Key("advice").TextOrNull(entry.advice);
  });
  json.Key("data").Raw(data_json);
  return std::string(json.Finish());
}

}  // namespace lockstep::page
