#include <isa-l/igzip_lib.h>

#include <memory>
#include <new>
#include <utility>

#include "present/page/page.h"

namespace lockstep::page {
namespace {

constexpr uint32_t kLevel = 3;

}  // namespace

Block MakeBlock(std::string name, std::string_view raw) {
  Block block;
  block.name = std::move(name);
  block.raw_bytes = raw.size();
  auto stream = std::make_unique<isal_zstream>();
  const auto level_buffer = std::make_unique<uint8_t[]>(ISAL_DEF_LVL3_DEFAULT);
  isal_deflate_init(stream.get());
  stream->level = kLevel;
  stream->level_buf = level_buffer.get();
  stream->level_buf_size = ISAL_DEF_LVL3_DEFAULT;
  stream->gzip_flag = IGZIP_GZIP;
  stream->flush = NO_FLUSH;
  constexpr size_t kStep = size_t{1} << 20;
  std::string_view rest = raw;
  do {
    const std::string_view part = rest.substr(0, size_t{1} << 30);
    rest.remove_prefix(part.size());
    stream->next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(part.data()));
    stream->avail_in = static_cast<uint32_t>(part.size());
    stream->end_of_stream = rest.empty() ? 1 : 0;
    do {
      const size_t used = block.gzip.size();
      block.gzip.resize(used + kStep / 16 + part.size() / 8);
      stream->next_out = reinterpret_cast<uint8_t*>(block.gzip.data() + used);
      stream->avail_out = static_cast<uint32_t>(block.gzip.size() - used);
      isal_deflate(stream.get());
      block.gzip.resize(block.gzip.size() - stream->avail_out);
    } while (stream->avail_in > 0 || (stream->end_of_stream != 0 && stream->internal_state.state != ZSTATE_END));
  } while (!rest.empty());
  block.gzip.shrink_to_fit();
  return block;
}

}  // namespace lockstep::page
