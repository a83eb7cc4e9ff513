#include "node/agent/engines/engine_client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

namespace lockstep::agent {
namespace {

using Clock = std::chrono::steady_clock;

struct CurlDelete {
  void operator()(CURL* handle) const { ::curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { ::curl_slist_free_all(list); }
};

struct Transfers;

/// One request under way.
struct Transfer {
  Transfers* all = nullptr;
  std::unique_ptr<CURL, CurlDelete> handle;
  std::unique_ptr<curl_slist, CurlDelete> headers;
  std::string body;
  bool is_too_long = false;
  bool is_taken = false;
  std::optional<CURLcode> ended;
};

struct Transfers {
  std::vector<Transfer> each;
  size_t held_bytes = 0;

  void Cut(Transfer* transfer) {
    held_bytes -= transfer->body.size();
    transfer->body = {};
    transfer->is_too_long = true;
  }
};

size_t TakeBody(char* data, size_t size, size_t count, void* to) {
  auto* const transfer = static_cast<Transfer*>(to);
  const size_t bytes = size * count;
  if (transfer->is_too_long) return 0;
  if (bytes > kMostEngineBytes - transfer->body.size()) {
    transfer->all->Cut(transfer);
    return 0;
  }
  transfer->body.append(data, bytes);
  transfer->all->held_bytes += bytes;
  if (transfer->all->held_bytes <= kMostEngineBytesHeld) return bytes;
  // Those that say what an engine has to say are far shorter.
  std::vector<Transfer>& each = transfer->all->each;
  Transfer& longest = *std::max_element(
      each.begin(), each.end(), [](const Transfer& a, const Transfer& b) { return a.body.size() < b.body.size(); });
  transfer->all->Cut(&longest);
  return transfer->is_too_long ? 0 : bytes;
}

void Prepare(const EngineClient::Ask& ask, std::chrono::milliseconds timeout, Transfer* transfer) {
  CURL* const handle = transfer->handle.get();
  const auto set = [handle](CURLoption option, auto value) { ::curl_easy_setopt(handle, option, value); };
  curl_slist* headers = ::curl_slist_append(nullptr, "Accept: text/plain;version=0.0.4");
  if (!ask.token.empty()) {
    headers = ::curl_slist_append(headers, fmt::format("Authorization: Bearer {}", ask.token).c_str());
  }
  transfer->headers.reset(headers);
  set(CURLOPT_URL, ask.url.c_str());
  set(CURLOPT_HTTPHEADER, transfer->headers.get());
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_PROXY, "");
  set(CURLOPT_NOPROXY, "*");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_USERAGENT, "lockstep");
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(timeout.count()));
  set(CURLOPT_WRITEFUNCTION, &TakeBody);
  set(CURLOPT_WRITEDATA, transfer);
}

Result<std::string> AnswerOf(Transfer* transfer) {
  if (transfer->is_too_long) {
    return Error{ErrorCode::kLimitExceeded,
                 fmt::format("its answer is larger than {} MiB, or is the largest of {} MiB of answers at once",
                             kMostEngineBytes >> 20, kMostEngineBytesHeld >> 20)};
  }
  if (!transfer->ended || *transfer->ended == CURLE_OPERATION_TIMEDOUT) {
    return Error{ErrorCode::kCancelled, "does not answer in time"};
  }
  if (*transfer->ended != CURLE_OK) return Error{ErrorCode::kIo, ::curl_easy_strerror(*transfer->ended)};
  long status = 0;
  ::curl_easy_getinfo(transfer->handle.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) return Error{ErrorCode::kIo, fmt::format("answers with status {}", status)};
  return std::move(transfer->body);
}

}  // namespace

struct EngineClient::Impl {
  CURLM* multi = nullptr;
  std::atomic<bool> is_stopped = false;
};

EngineClient::EngineClient() : impl_(std::make_unique<Impl>()) {
  // Thread-safe as of 7.84, and once is enough.
  static const CURLcode initialised = ::curl_global_init(CURL_GLOBAL_ALL);
  if (initialised == CURLE_OK) impl_->multi = ::curl_multi_init();
}

EngineClient::~EngineClient() {
  if (impl_->multi != nullptr) ::curl_multi_cleanup(impl_->multi);
}

void EngineClient::Stop() {
  impl_->is_stopped = true;
  if (impl_->multi != nullptr) ::curl_multi_wakeup(impl_->multi);
}

void EngineClient::Fetch(const std::vector<Ask>& asks, std::chrono::milliseconds timeout, const Take& take) {
  Transfers transfers;
  transfers.each.resize(asks.size());
  for (size_t i = 0; i < asks.size() && impl_->multi != nullptr; ++i) {
    Transfer& transfer = transfers.each[i];
    transfer.all = &transfers;
    transfer.handle.reset(::curl_easy_init());
    if (transfer.handle == nullptr) continue;
    Prepare(asks[i], timeout, &transfer);
    ::curl_multi_add_handle(impl_->multi, transfer.handle.get());
  }
  const auto hand_out = [&](size_t ask_idx) {
    Transfer& transfer = transfers.each[ask_idx];
    if (std::exchange(transfer.is_taken, true)) return;
    if (transfer.handle == nullptr) return take(ask_idx, Error{ErrorCode::kIo, "libcurl cannot be set up"});
    ::curl_multi_remove_handle(impl_->multi, transfer.handle.get());
    transfers.held_bytes -= transfer.body.size();
    take(ask_idx, AnswerOf(&transfer));
    transfer.body = {};
  };
  const Clock::time_point until = Clock::now() + timeout;
  int running = 1;
  while (impl_->multi != nullptr && running > 0 && !impl_->is_stopped && Clock::now() < until) {
    if (::curl_multi_perform(impl_->multi, &running) != CURLM_OK) break;
    int left = 0;
    while (const CURLMsg* const message = ::curl_multi_info_read(impl_->multi, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      for (size_t i = 0; i < transfers.each.size(); ++i) {
        if (transfers.each[i].handle.get() != message->easy_handle) continue;
        transfers.each[i].ended = message->data.result;
        hand_out(i);
        break;
      }
    }
    if (running > 0) ::curl_multi_poll(impl_->multi, nullptr, 0, 100, nullptr);
  }
  for (size_t i = 0; i < transfers.each.size(); ++i) hand_out(i);
}

}  // namespace lockstep::agent
