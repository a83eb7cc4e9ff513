#include "ingest/flight_recorder/dump_texts.h"

#include "base/utf8.h"

namespace lockstep::ingest {

namespace {

bool IsValid(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Utf8Character character = ReadUtf8(text, at);
    if (!character.valid) return false;
    at += character.length;
  }
  return true;
}

}  // namespace

uint32_t DumpTexts::Keep(std::string_view text) {
  const uint32_t idx = table_.Add(text);
  if (idx == keys_.size()) keys_.push_back(DumpKeyOf(text));
  return idx;
}

uint32_t DumpTexts::Add(std::string_view text) {
  if (text.empty()) return 0;
  if (const uint32_t known = table_.Find(text); known != 0) return known;
  return IsValid(text) ? Keep(text) : AddCopy(text);
}

uint32_t DumpTexts::AddCopy(std::string_view text) {
  if (text.empty()) return 0;
  if (const uint32_t known = table_.Find(text); known != 0) return known;
  std::string valid = ValidUtf8(text);
  if (const uint32_t known = table_.Find(valid); known != 0) return known;
  kept_.push_back(std::move(valid));
  return Keep(kept_.back());
}

}  // namespace lockstep::ingest
