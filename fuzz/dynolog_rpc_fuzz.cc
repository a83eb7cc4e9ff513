// What a client may send to `lockstepd --dynolog-rpc`: the JSON behind the length.
#include <string_view>

#include "fuzz.h"
#include "node/agent/dynolog/request_match.h"
#include "node/agent/dynolog/rpc_message.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::agent;
  const RpcReading reading = ReadRpcRequest({reinterpret_cast<const char*>(data), size});
  FUZZ_CHECK(!reading.request || reading.refusal.empty());
  // An answer is a line of its own.
  FUZZ_CHECK(reading.refusal.find('\n') == std::string::npos);
  if (reading.request && IsInFolders(reading.request->config, {"/tmp"})) {
    const std::string framed = reading.request->config + "/";
    FUZZ_CHECK(framed.starts_with("/tmp/") && framed.find("/../") == std::string::npos);
  }
  return 0;
}
