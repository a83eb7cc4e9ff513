#include "measure/nccl/agreement.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/archive.h"
#include "base/number_ranges.h"

namespace lockstep::nccl_bench {
Status Agree(Communicator* communicator, const Status& own) {
  struct Word {
    std::optional<uint8_t> code;
    std::string text;
  };
  Word word;
  if (!own) word = {static_cast<uint8_t>(own.error().code), own.error().ToString()};
  ArchiveWriter writer;
  writer(word.code, word.text);
  const std::vector<std::string> told = communicator->Gather(writer.TakeBytes());
  Word verdict;
  std::vector<size_t> same;
  size_t other_count = 0;
  for (size_t process = 0; process < told.size(); ++process) {
    Word one;
    ArchiveReader reader(told[process]);
    reader(one.code, one.text);
    if (!one.code) continue;
    if (same.empty()) verdict = one;
    if (one.text == verdict.text) {
      same.push_back(process);
    } else {
      ++other_count;
    }
  }
  if (!same.empty()) {
    verdict.text = fmt::format("rank{} {}: {}{}", same.size() == 1 ? "" : "s", NumberRangesText(same), verdict.text,
                               other_count == 0 ? "" : fmt::format(" ({} more failed otherwise)", other_count));
  }
  ArchiveWriter answer;
  answer(verdict.code, verdict.text);
  std::string bytes = answer.TakeBytes();
  communicator->Broadcast(&bytes);
  ArchiveReader reader(bytes);
  reader(verdict.code, verdict.text);
  RETURN_IF_ERROR(reader.Finish());
  if (!verdict.code) return {};
  return Error{.code = static_cast<ErrorCode>(*verdict.code), .message = verdict.text};
}

}  // namespace lockstep::nccl_bench
