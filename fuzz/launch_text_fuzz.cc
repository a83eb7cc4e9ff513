// Text that `lockstep run --profile` is given: filters of ranks, patterns of names, what tools say of their version,
// and the analysis that kernels are taken from. The first byte says which.
#include <string>
#include <string_view>

#include "fuzz.h"
#include "inside/launch/kernel_choice.h"
#include "inside/launch/output_name.h"
#include "inside/launch/rank_filter.h"
#include "inside/launch/shell_words.h"
#include "inside/launch/tool_version.h"

namespace {

using namespace lockstep::launch;  // NOLINT(google-build-using-namespace)

void CheckFilter(std::string_view text) {
  const auto filter = RankFilter::Parse(text);
  if (!filter) {
    FUZZ_CHECK(!filter.error().message.empty());
    return;
  }
  int selected = 0;
  for (int rank = 0; rank < 16; ++rank) {
    RankIdentity identity{.launcher = Launcher::kTorchrun};
    identity.rank = rank;
    identity.local_rank = rank % 4;
    identity.node = rank / 4;
    const auto selects = filter->Selects(identity, "n001");
    FUZZ_CHECK(selects.has_value());  // It knows all that can be asked for.
    selected += *selects ? 1 : 0;
  }
  if (filter->SelectsAll()) FUZZ_CHECK(selected == 16);
  if (filter->SelectsOneAtMost()) FUZZ_CHECK(selected <= 1);
}

void CheckName(std::string_view pattern) {
  RankIdentity identity{.launcher = Launcher::kTorchrun};
  identity.world_size = 4;
  identity.rank_variable = "RANK";
  const auto filter = RankFilter::Parse("all");
  std::string names[2];
  for (const int rank : {0, 1}) {
    identity.rank = rank;
    identity.local_rank = rank;
    const Environment environment({{"RANK", std::to_string(rank)}, {"LOCAL_RANK", std::to_string(rank)}, {"JOB", "7"}});
    const auto name = ExpandName(
        pattern, {.identity = identity, .environment = environment, .filter = *filter, .host = "h", .tool = "nsys"});
    if (!name) return;
    FUZZ_CHECK(!name->empty() && name->find('/') == std::string::npos);
    names[rank] = *name;
  }
  FUZZ_CHECK(names[0] != names[1]);
}

void CheckKernels(std::string_view json) {
  const auto kernels = ReadKernelTotals(json);
  if (!kernels) {
    FUZZ_CHECK(!kernels.error().message.empty());
    return;
  }
  const auto heaviest = Heaviest(*kernels, 5);
  FUZZ_CHECK(!heaviest.empty() && heaviest.size() <= 5);
  for (size_t i = 1; i < heaviest.size(); ++i) FUZZ_CHECK(heaviest[i].total_ns <= heaviest[i - 1].total_ns);
}

void CheckFunction(std::string_view text) {
  const std::string function = FunctionName(text);
  FUZZ_CHECK(function.size() <= text.size() && (text.empty() || !function.empty()));
  const auto pattern = KernelPattern({function});
  if (pattern) FUZZ_CHECK(pattern->starts_with("regex:^(") && pattern->ends_with(")$"));
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0: CheckFilter(text); break;
    case 1: CheckName(text); break;
    case 2: CheckKernels(text); break;
    case 3: CheckFunction(text); break;
    case 4: {
      const auto version = ParseToolVersion(text);
      FUZZ_CHECK(version ? version->year >= 2018 : !version.error().message.empty());
      break;
    }
    default: FUZZ_CHECK(ShellWord(std::string(text)).size() >= text.size());
  }
  return 0;
}
