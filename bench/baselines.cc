#include "baselines.h"

#include <isa-l/igzip_lib.h>
#include <simdjson.h>

#include <stdexcept>
#include <vector>

namespace lockstep::bench {
namespace {

namespace ondemand = simdjson::ondemand;

uint64_t Visit(ondemand::value value) {
  switch (value.type()) {
    case ondemand::json_type::object: {
      uint64_t count = 1;
      for (auto field : value.get_object()) {
        const std::string_view key = field.unescaped_key();
        count += key.size() & 1;
        count += Visit(field.value());
      }
      return count;
    }
    case ondemand::json_type::array: {
      uint64_t count = 1;
      for (auto element : value.get_array()) count += Visit(element.value());
      return count;
    }
    case ondemand::json_type::string: return 1 + (std::string_view(value.get_string()).size() & 1);
    case ondemand::json_type::number: return 1 + (ondemand::number(value.get_number()).is_int64() ? 1 : 0);
    case ondemand::json_type::boolean: return 1 + (bool(value.get_bool()) ? 1 : 0);
    case ondemand::json_type::null: return value.is_null() ? 1 : 0;
  }
  return 0;
}

}  // namespace

struct SimdjsonVisit::State {
  explicit State(simdjson::padded_string text) : json(std::move(text)) {}
  uint64_t Run() {
    ondemand::document document = parser.iterate(json);
    uint64_t count = 0;
    for (auto field : document.get_object()) {
      const std::string_view key = field.unescaped_key();
      count += key.size() & 1;
      count += Visit(field.value());
    }
    return count;
  }

  simdjson::padded_string json;
  ondemand::parser parser;
};

SimdjsonVisit::SimdjsonVisit(std::string_view json) : state_(new State(simdjson::padded_string(json))) {
  if (state_->parser.allocate(state_->json.size()) != simdjson::SUCCESS) throw std::bad_alloc();
}

SimdjsonVisit::~SimdjsonVisit() = default;

uint64_t SimdjsonVisit::Run() { return state_->Run(); }

uint64_t VisitFile(const std::string& path) { return SimdjsonVisit::State(simdjson::padded_string::load(path)).Run(); }

uint64_t InflateAll(const std::string& gzip_bytes) {
  constexpr size_t kWindowBytes = size_t{256} << 10;
  static thread_local std::vector<uint8_t> window(kWindowBytes);
  inflate_state state;
  isal_inflate_init(&state);
  state.crc_flag = ISAL_GZIP;
  state.next_in = const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(gzip_bytes.data()));
  state.avail_in = static_cast<uint32_t>(gzip_bytes.size());
  uint64_t made = 0;
  while (state.block_state != ISAL_BLOCK_FINISH) {
    state.next_out = window.data();
    state.avail_out = static_cast<uint32_t>(window.size());
    if (isal_inflate(&state) != ISAL_DECOMP_OK) throw std::runtime_error("the gzip input is damaged");
    const size_t got = window.size() - state.avail_out;
    if (got == 0 && state.avail_in == 0 && state.block_state != ISAL_BLOCK_FINISH)
      throw std::runtime_error("the gzip input is cut");
    made += got;
  }
  return made;
}

}  // namespace lockstep::bench
