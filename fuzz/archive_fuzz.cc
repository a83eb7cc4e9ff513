// The archive reader and the byte sources below it. The first byte chooses: even, the rest is one compressed stream;
// odd, an archive. The second byte chooses the size of the windows.
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "fuzz.h"
#include "ingest/bytes/archive_reader.h"
#include "ingest/bytes/byte_source.h"
#include "ingest/bytes/trace_files.h"

namespace {

using namespace lockstep;
using namespace lockstep::ingest;

constexpr uint64_t kMostOutputBytes = uint64_t{4} << 20;
constexpr ByteLimits kLimits = {.max_output_bytes = kMostOutputBytes, .max_ratio = 2000};

struct Drained {
  std::string bytes;
  bool failed = false;
};

Drained Drain(ByteSource& source, size_t window_bytes) {
  Drained drained;
  std::vector<char> window(window_bytes);
  while (true) {
    const auto got = source.Read(window);
    if (!got) {
      drained.failed = true;
      // An error stays: whoever reads on gets it again, and no bytes.
      FUZZ_CHECK(!source.Read(window));
      return drained;
    }
    FUZZ_CHECK(*got <= window.size());
    drained.bytes.append(window.data(), *got);
    FUZZ_CHECK(drained.bytes.size() <= kMostOutputBytes + 1);
    if (*got == 0) return drained;
    if (*got < window.size()) {
      const auto after = source.Read(window);
      FUZZ_CHECK(!after || *after == 0);
      drained.failed = !after;
      return drained;
    }
  }
}

// What zlib makes of the members at the front of `bytes`; `failed` unless the last one ended as it should.
Drained InflateByZlib(std::string_view bytes) {
  Drained drained;
  z_stream stream = {};
  inflateInit2(&stream, 15 + 16);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::vector<char> window(65536);
  while (drained.bytes.size() <= kMostOutputBytes) {
    stream.next_out = reinterpret_cast<Bytef*>(window.data());
    stream.avail_out = static_cast<uInt>(window.size());
    const int code = inflate(&stream, Z_NO_FLUSH);
    drained.bytes.append(window.data(), window.size() - stream.avail_out);
    if (code == Z_STREAM_END) {
      if (stream.avail_in < 2 || stream.next_in[0] != 0x1f || stream.next_in[1] != 0x8b) break;
      inflateReset(&stream);
    } else if (code != Z_OK || (stream.avail_in == 0 && stream.avail_out > 0)) {
      drained.failed = true;
      break;
    }
  }
  inflateEnd(&stream);
  return drained;
}

bool IsPrefix(std::string_view a, std::string_view b) {
  const size_t common = std::min(a.size(), b.size());
  return common == 0 || std::memcmp(a.data(), b.data(), common) == 0;
}

void FuzzStream(std::string_view bytes, size_t window_bytes) {
  auto source = OpenMemory(std::string(bytes), kLimits);
  if (!source) return;
  const Drained drained = Drain(**source, window_bytes);
  auto again = OpenMemory(std::string(bytes), kLimits);
  FUZZ_CHECK(again);
  const Drained other_window = Drain(**again, 65536);
  FUZZ_CHECK(drained.failed == other_window.failed);
  FUZZ_CHECK(IsPrefix(drained.bytes, other_window.bytes));
  FUZZ_CHECK(drained.failed || drained.bytes == other_window.bytes);
  if (!bytes.starts_with("\x1f\x8b")) return;
  const Drained by_zlib = InflateByZlib(bytes);
  FUZZ_CHECK(IsPrefix(drained.bytes, by_zlib.bytes));
  if (!drained.failed && !by_zlib.failed) FUZZ_CHECK(drained.bytes == by_zlib.bytes);
}

// One private file, written anew for every input.
const std::string& ScratchPath() {
  static const std::string path = [] {
    const bool has_memory_folder = ::access("/dev/shm", W_OK) == 0;
    std::string folder = std::string(has_memory_folder ? "/dev/shm" : "/tmp") + "/lockstep_fuzz_XXXXXX";
    FUZZ_CHECK(::mkdtemp(folder.data()) != nullptr);
    static std::string folder_to_remove = folder;
    std::atexit([] {
      ::unlink((folder_to_remove + "/a.tar").c_str());
      ::rmdir(folder_to_remove.c_str());
    });
    return folder + "/a.tar";
  }();
  return path;
}

void FuzzArchive(std::string_view bytes, size_t window_bytes) {
  FILE* file = std::fopen(ScratchPath().c_str(), "wb");
  FUZZ_CHECK(file != nullptr);
  std::fwrite(bytes.data(), 1, bytes.size(), file);
  std::fclose(file);

  // Reading from front to back ends, whatever the archive says.
  if (auto archive = ArchiveReader::Open(ScratchPath(), kLimits)) {
    std::vector<char> window(window_bytes);
    uint64_t total_bytes = 0;
    while (true) {
      const auto next = (*archive)->Next();
      if (!next || !*next) break;
      for (auto got = (*archive)->Read(window); got && *got > 0; got = (*archive)->Read(window)) total_bytes += *got;
      if (total_bytes > 4 * kMostOutputBytes) break;
    }
  }

  // Every member that is listed can be opened by itself and by one opener, with the same bytes.
  model::Ledger ledger;
  const auto files = FindTraceFiles({ScratchPath()}, kLimits, &ledger);
  if (!files) return;
  TraceOpener opener(kLimits);
  uint64_t total_bytes = 0;
  for (size_t i = 0; i < files->size() && i < 20 && total_bytes < 4 * kMostOutputBytes; ++i) {
    auto shared = opener.Open((*files)[i]);
    if (!shared) continue;
    const Drained by_opener = Drain(**shared, window_bytes);
    shared->reset();
    auto alone = OpenTraceFile((*files)[i], kLimits);
    if (!alone) continue;
    const Drained by_itself = Drain(**alone, 65536);
    FUZZ_CHECK(IsPrefix(by_opener.bytes, by_itself.bytes));
    total_bytes += by_opener.bytes.size();
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  constexpr size_t kWindows[] = {1, 7, 100, 4096, 32768, 65536, 262144, 1048576};
  const size_t window_bytes = kWindows[data[1] % std::size(kWindows)];
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (data[0] % 2 == 0) {
    // A window of one byte over megabytes is only slow.
    FuzzStream(bytes, std::max<size_t>(window_bytes, bytes.size() > 1000 ? 100 : 1));
  } else {
    FuzzArchive(bytes, std::max<size_t>(window_bytes, 100));
  }
  return 0;
}
