#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "present/report/json_stream.h"

namespace lockstep::page {

/// Builds the bytes of a block of columns: a JSON header and arrays of numbers, wide ones as planes of bytes so that
/// they pack well. Layout: docs/formats/page-data.md#columns.
class ColumnBlock {
 public:
  ColumnBlock();
  /// Facts beside the columns: add keys and values of your own; "columns" is taken.
  report::JsonRow& header() { return header_; }

  void Add(std::string_view name, std::span<const uint8_t> values);
  void Add(std::string_view name, std::span<const uint16_t> values);
  void Add(std::string_view name, std::span<const uint32_t> values);
  void Add(std::string_view name, std::span<const double> values);

  /// The whole block. Nothing may be added afterwards.
  std::string Finish();

 private:
  template <typename T>
  void AddPlanes(std::string_view name, std::string_view type, std::span<const T> values);

  report::JsonRow header_;
  std::string columns_json_;
  std::string data_;
};

}  // namespace lockstep::page
