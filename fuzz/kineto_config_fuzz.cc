// A configuration text from Dynolog's RPC: what is read must be something that we can write again, with a path of our
// own and with the text's own path where that is one that Kineto takes.
#include <algorithm>
#include <string_view>

#include "fuzz.h"
#include "node/agent/kineto/config_text.h"

using namespace lockstep::agent;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto read = ReadConfigText(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!read) {
    FUZZ_CHECK(!read.error().message.empty());
    return 0;
  }
  for (const std::string& path : {std::string("/tmp/x/a.json"), read->log_file}) {
    ConfigRequest request;
    request.window = read->window;
    request.options = read->options;
    request.log_file = path;
    request.trace_id = "t";
    request.torch_version = "99.0";
    const auto text = BuildConfigText(request);
    if (!text) continue;
    FUZZ_CHECK(CheckLogFile(path));
    FUZZ_CHECK(std::count(text->begin(), text->end(), '=') == std::count(text->begin(), text->end(), '\n'));
    FUZZ_CHECK(text->find('#') == std::string::npos && text->find('\0') == std::string::npos);
    FUZZ_CHECK(FinalTracePath(path, 7).ends_with(".json"));
    const auto again = ReadConfigText(*text);
    FUZZ_CHECK(again.has_value());
    FUZZ_CHECK(again->log_file == path);
    FUZZ_CHECK(again->window.mode == read->window.mode);
    FUZZ_CHECK(again->window.iterations == read->window.iterations);
    FUZZ_CHECK(again->options.activities == read->options.activities);
  }
  return 0;
}
