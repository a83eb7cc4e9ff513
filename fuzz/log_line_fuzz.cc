// Lines of ranks' logs, and what a program writes cut into lines.
#include <algorithm>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "fuzz.h"
#include "inside/log_write/line_cutter.h"
#include "model/log_line/compressed_log.h"
#include "model/log_line/line.h"
#include "model/log_line/log_name.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto inode = logs::CompressedFrom(bytes)) {
    FUZZ_CHECK(bytes.find(logs::CompressedFromComment(*inode).substr(0, 15)) != std::string_view::npos);
  }
  logs::LevelReader levels;
  logs::LineCutter cutter;
  std::string storage;
  const logs::LineCutter::Take take = [&](std::string_view line) {
    FUZZ_CHECK(line.find('\n') == std::string_view::npos);
    FUZZ_CHECK(line.size() <= 65'536);
    const logs::Level level = levels.Next(line);
    FUZZ_CHECK(logs::LevelOfLetter(logs::LevelLetter(level)) == level);
    if (const auto parsed = logs::ParseLine(line, &storage)) {
      FUZZ_CHECK(!parsed->head.rank || *parsed->head.rank >= 0);
      FUZZ_CHECK(!parsed->head.host.empty() && !parsed->head.source.empty());
      FUZZ_CHECK(parsed->text.size() <= line.size());
    }
    // Whatever is logged comes back.
    for (const logs::LineForm form : {logs::LineForm::kText, logs::LineForm::kJson}) {
      std::string written;
      logs::LineWriter(form, 3, line).Append({1'700'000'000'123'456'789, 5}, level, "err", line, &written);
      FUZZ_CHECK(std::count(written.begin(), written.end(), '\n') == 1 && written.back() == '\n');
      written.pop_back();
      const auto back = logs::ParseLine(written, &storage);
      FUZZ_CHECK(back && back->head.level == level && back->head.rank == 3);
      std::string_view wanted = line;
      while (wanted.ends_with('\r')) wanted.remove_suffix(1);
      FUZZ_CHECK(back->text == (form == logs::LineForm::kText ? std::string(wanted) : ValidUtf8(wanted)));
    }
  };
  const size_t half = size / 2;
  cutter.Add(bytes.substr(0, half), 0, take);
  cutter.Add(bytes.substr(half), 1, take);
  cutter.Flush(take);
  FUZZ_CHECK(logs::ReadRotatedName(bytes).stem.size() <= size);
  return 0;
}
