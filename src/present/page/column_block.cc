#include "present/page/column_block.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <utility>

namespace lockstep::page {
namespace {

static_assert(std::endian::native == std::endian::little, "columns are little-endian");

constexpr std::string_view kMagic = "LSCOLS01";
constexpr size_t kAlignment = 8;

void Pad(std::string* bytes) { bytes->resize((bytes->size() + kAlignment - 1) / kAlignment * kAlignment, '\0'); }

}  // namespace

ColumnBlock::ColumnBlock() = default;

template <typename T>
void ColumnBlock::AddPlanes(std::string_view name, std::string_view type, std::span<const T> values) {
  columns_json_ += fmt::format("{}{{\"name\":\"{}\",\"type\":\"{}\",\"count\":{},\"offset\":{}}}",
                               columns_json_.empty() ? "" : ",", name, type, values.size(), data_.size());
  const size_t begin = data_.size();
  data_.resize(begin + values.size() * sizeof(T));
  char* planes = data_.data() + begin;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto bytes = std::bit_cast<std::array<char, sizeof(T)>>(values[i]);
    for (size_t plane = 0; plane < sizeof(T); ++plane) planes[plane * values.size() + i] = bytes[plane];
  }
  Pad(&data_);
}

void ColumnBlock::Add(std::string_view name, std::span<const uint8_t> values) { AddPlanes(name, "u8", values); }
void ColumnBlock::Add(std::string_view name, std::span<const uint16_t> values) { AddPlanes(name, "u16", values); }
void ColumnBlock::Add(std::string_view name, std::span<const uint32_t> values) { AddPlanes(name, "u32", values); }
void ColumnBlock::Add(std::string_view name, std::span<const double> values) { AddPlanes(name, "f64", values); }

std::string ColumnBlock::Finish() {
  header_.Key("columns").Raw("[" + columns_json_ + "]");
  const std::string_view json = header_.Finish();
  std::string block(kMagic);
  const auto length = static_cast<uint32_t>(json.size());
  for (int shift = 0; shift < 32; shift += 8) block.push_back(static_cast<char>(length >> shift & 0xFF));
  block.append(4, '\0');
  block += json;
  Pad(&block);
  block += data_;
  data_ = {};
  return block;
}

}  // namespace lockstep::page
