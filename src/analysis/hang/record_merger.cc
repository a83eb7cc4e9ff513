#include "analysis/hang/record_merger.h"

#include <string>

namespace lockstep::hang {

RecordMerger::RecordMerger(JobView& view) : view_(view) {
  view_.texts.emplace_back();
  view_.signatures.emplace_back();
  view_.sites.emplace_back();
}

size_t RecordMerger::SignatureHash::operator()(const Signature& signature) const {
  uint64_t hash = static_cast<uint64_t>(signature.kind) * 0x9E3779B97F4A7C15ULL;
  const auto mix = [&hash](uint64_t value) {
    hash = (hash ^ value) * 0xBF58476D1CE4E5B9ULL;
    hash ^= hash >> 31;
  };
  mix(signature.name);
  mix(static_cast<uint64_t>(signature.elements));
  mix(signature.dtype);
  for (const uint32_t part : signature.parts) {
    mix(part);
  }
  return hash;
}

std::vector<uint32_t> RecordMerger::Signatures(const evidence::FlightRecord& record, const RecordDraft& draft) {
  std::vector<uint32_t> map(draft.signatures.size(), 0);
  for (size_t i = 1; i < draft.signatures.size(); ++i) {
    Signature signature = draft.signatures[i].signature;
    signature.name = signature.name == 0 ? 0 : Text(std::string(ReadOperation(record.texts[signature.name]).name));
    signature.dtype = signature.dtype == 0 ? 0 : Text(record.texts[signature.dtype]);
    for (uint32_t& part : signature.parts) {
      part = map[part];
    }
    const auto next = static_cast<uint32_t>(view_.signatures.size());
    const auto [place, is_new] = signatures_.emplace(signature, next);
    if (is_new) {
      view_.signatures.push_back(signature);
    }
    map[i] = place->second;
  }
  return map;
}

std::vector<uint32_t> RecordMerger::Sites(const RecordDraft& draft) {
  std::vector<uint32_t> map(draft.sites.size(), 0);
  for (size_t i = 1; i < draft.sites.size(); ++i) {
    const UserSite& site = draft.sites[i];
    const auto next = static_cast<uint32_t>(view_.sites.size());
    const auto [place, is_new] = sites_.emplace(
        std::make_pair(std::string(site.file) + '\n' + std::string(site.function) + '\n' + std::to_string(site.callers),
                       site.line),
        next);
    if (is_new) {
      view_.sites.push_back(site);
    }
    map[i] = place->second;
  }
  return map;
}

uint32_t RecordMerger::Text(const std::string& text) {
  const auto next = static_cast<uint32_t>(view_.texts.size());
  const auto [place, is_new] = texts_.emplace(text, next);
  if (is_new) {
    view_.texts.push_back(text);
  }
  return place->second;
}

}  // namespace lockstep::hang
