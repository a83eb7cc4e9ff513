#pragma once

#include <rapidjson/document.h>
#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::page::testing {

/// Unpacks one gzip member with another library than the one that packed it. Throws when it is damaged.
inline std::string Gunzip(std::string_view packed) {
  z_stream stream = {};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) throw std::runtime_error("inflateInit2");
  std::string bytes;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  int code = Z_OK;
  while (code == Z_OK) {
    char window[1 << 16];
    stream.next_out = reinterpret_cast<Bytef*>(window);
    stream.avail_out = sizeof(window);
    code = inflate(&stream, Z_NO_FLUSH);
    bytes.append(window, sizeof(window) - stream.avail_out);
  }
  const bool whole = code == Z_STREAM_END && stream.avail_in == 0;
  inflateEnd(&stream);
  if (!whole) throw std::runtime_error("not one whole gzip member");
  return bytes;
}

/// A block of columns, read as docs/formats/page-data.md says.
class ReadBlock {
 public:
  explicit ReadBlock(std::string bytes) : bytes_(std::move(bytes)) {
    if (bytes_.substr(0, 8) != "LSCOLS01") throw std::runtime_error("no block of columns");
    uint32_t length = 0;
    std::memcpy(&length, bytes_.data() + 8, 4);
    header_.Parse(bytes_.data() + 16, length);
    if (header_.HasParseError()) throw std::runtime_error("the header is not JSON");
    data_ = (16 + length + 7) / 8 * 8;
  }
  const rapidjson::Document& header() const { return header_; }

  template <typename T>
  std::vector<T> Column(std::string_view name) const {
    for (const auto& info : header_["columns"].GetArray()) {
      if (name != info["name"].GetString()) continue;
      const size_t count = info["count"].GetUint();
      const size_t offset = data_ + info["offset"].GetUint();
      if (offset % 8 != 0 || offset + count * sizeof(T) > bytes_.size())
        throw std::runtime_error("column out of range");
      std::vector<T> values(count);
      for (size_t i = 0; i < count; ++i) {
        for (size_t plane = 0; plane < sizeof(T); ++plane)
          std::memcpy(reinterpret_cast<char*>(&values[i]) + plane, bytes_.data() + offset + plane * count + i, 1);
      }
      return values;
    }
    throw std::runtime_error("no column " + std::string(name));
  }

 private:
  std::string bytes_;
  rapidjson::Document header_;
  size_t data_ = 0;
};

}  // namespace lockstep::page::testing
