#include "present/export/live/otlp_sender.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/nanoseconds.h"
#include "base/now.h"
#include "present/report/utf8.h"

namespace lockstep::export_live {
namespace {

constexpr int64_t kAttemptNs = 10 * kSecondNs;
constexpr int64_t kFirstPauseNs = kSecondNs;
constexpr int64_t kLongestPauseNs = 60 * kSecondNs;
constexpr int64_t kLongestRetryAfterNs = 300 * kSecondNs;
constexpr size_t kMostReplyBytes = size_t{64} << 10;
constexpr size_t kMostShownBytes = 200;

struct CurlDelete {
  void operator()(CURL* handle) const { ::curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { ::curl_slist_free_all(list); }
};

/// How one attempt went.
struct Attempt {
  enum class Outcome : uint8_t { kDelivered, kLater, kRefused };
  Outcome outcome = Outcome::kLater;
  std::string what;                     ///< Where it was not delivered.
  std::optional<int64_t> wait_ns = {};  ///< What Retry-After said.
  OtlpReply reply = {};
};

class CurlSender final : public OtlpSender {
 public:
  explicit CurlSender(Options options) : options_(std::move(options)) {}
  ~CurlSender() override { Finish(0); }

  Status Init() {
    static const CURLcode initialised = ::curl_global_init(CURL_GLOBAL_ALL);
    curl_.reset(initialised == CURLE_OK ? ::curl_easy_init() : nullptr);
    if (curl_ == nullptr) return Error{ErrorCode::kIo, "libcurl cannot be set up"};
    for (const std::string& header : options_.headers) AddHeader(header);
    AddHeader("Content-Type: application/x-protobuf");
    AddHeader("Expect:");
    Set(CURLOPT_URL, options_.url.c_str());
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_PROTOCOLS_STR, "http,https");
    Set(CURLOPT_FOLLOWLOCATION, 0L);  // Headers with secrets go nowhere else.
    Set(CURLOPT_USERAGENT, "lockstep");
    Set(CURLOPT_HTTPHEADER, headers_.get());
    Set(CURLOPT_ERRORBUFFER, words_.data());
    Set(CURLOPT_POST, 1L);
    Set(CURLOPT_TIMEOUT_MS, static_cast<long>(kAttemptNs / kMillisecondNs));
    Set(CURLOPT_NOPROGRESS, 0L);
    Set(CURLOPT_XFERINFOFUNCTION, &OnProgress);
    Set(CURLOPT_XFERINFODATA, this);
    Set(CURLOPT_WRITEFUNCTION, &OnBody);
    Set(CURLOPT_WRITEDATA, this);
    // A collector beside us is never behind a proxy.
    const char* no_proxy = std::getenv("no_proxy");
    if (no_proxy == nullptr) no_proxy = std::getenv("NO_PROXY");
    Set(CURLOPT_NOPROXY, fmt::format("localhost,127.0.0.1,::1,{}", no_proxy == nullptr ? "" : no_proxy).c_str());
    Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    if (!options_.authority_file.empty()) {
      Set(CURLOPT_CAINFO, options_.authority_file.c_str());
      Set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
    }
    if (!options_.certificate_file.empty()) Set(CURLOPT_SSLCERT, options_.certificate_file.c_str());
    if (!options_.key_file.empty()) Set(CURLOPT_SSLKEY, options_.key_file.c_str());
    thread_ = std::thread([this] { Deliver(); });
    return {};
  }

  void Push(OtlpPayload payload) override {
    bool is_first = false;
    {
      const MutexLock lock(mutex_);
      if (ends_ns_) return;
      waiting_bytes_ += payload.bytes.size();
      waiting_.push_back(std::move(payload));
      while (waiting_.size() > options_.most_waiting || waiting_bytes_ > options_.most_waiting_bytes) {
        is_first = is_first || !std::exchange(has_overflown_, true);
        waiting_bytes_ -= waiting_.front().bytes.size();
        counts_.dropped += waiting_.front().point_count;
        waiting_.pop_front();
      }
    }
    changed_.notify_all();
    if (is_first) options_.tell("the queue for the collector is full: the oldest request is dropped, and counted");
  }

  Counts Finish(int64_t deadline_ns) override {
    {
      const MutexLock lock(mutex_);
      if (!ends_ns_) ends_ns_ = SteadyNow() + deadline_ns;
      stop_at_ns_ = *ends_ns_;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    const MutexLock lock(mutex_);
    for (const OtlpPayload& payload : waiting_) counts_.dropped += payload.point_count;
    waiting_.clear();
    return counts_;
  }

 private:
  template <typename T>
  void Set(CURLoption option, T value) {
    ::curl_easy_setopt(curl_.get(), option, value);
  }
  void AddHeader(const std::string& line) { headers_.reset(::curl_slist_append(headers_.release(), line.c_str())); }

  static int OnProgress(void* self, curl_off_t /*total*/, curl_off_t /*now*/, curl_off_t /*up*/, curl_off_t /*sent*/) {
    return SteadyNow() >= static_cast<CurlSender*>(self)->stop_at_ns_ ? 1 : 0;
  }
  static size_t OnBody(char* bytes, size_t size, size_t count, void* self) {
    std::string& body = static_cast<CurlSender*>(self)->body_;
    body.append(bytes, std::min(size * count, kMostReplyBytes - std::min(kMostReplyBytes, body.size())));
    return size * count;
  }

  Attempt Post(const OtlpPayload& payload) {
    body_.clear();
    words_.front() = '\0';
    Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(payload.bytes.size()));
    Set(CURLOPT_POSTFIELDS, payload.bytes.data());
    const CURLcode code = ::curl_easy_perform(curl_.get());
    if (code != CURLE_OK) {
      return {Attempt::Outcome::kLater,
              fmt::format("{} does not answer: {}", options_.url,
                          words_.front() != '\0' ? words_.data() : ::curl_easy_strerror(code))};
    }
    long status = 0;
    ::curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200 && status < 300) return {Attempt::Outcome::kDelivered, "", {}, ReadOtlpReply(body_)};
    std::string said = report::Printable(std::string_view(body_).substr(0, kMostShownBytes));
    Attempt attempt{Attempt::Outcome::kRefused,
                    fmt::format("{} answered {}{}{}", options_.url, status, said.empty() ? "" : ": ", said)};
    if (status == 429 || (status >= 502 && status <= 504)) {
      attempt.outcome = Attempt::Outcome::kLater;
      curl_off_t wait_s = 0;
      ::curl_easy_getinfo(curl_.get(), CURLINFO_RETRY_AFTER, &wait_s);
      if (wait_s > 0) attempt.wait_ns = std::min<int64_t>(wait_s, kLongestRetryAfterNs / kSecondNs) * kSecondNs;
    }
    return attempt;
  }

  /// Until there is a payload; nullopt: it is over.
  std::optional<OtlpPayload> Next() {
    MutexLock lock(mutex_);
    changed_.wait(lock, [this]() LOCKSTEP_REQUIRES(mutex_) { return !waiting_.empty() || ends_ns_; });
    if (waiting_.empty() || (ends_ns_ && SteadyNow() >= *ends_ns_)) return std::nullopt;
    OtlpPayload payload = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= payload.bytes.size();
    return payload;
  }

  /// False: the time is over before then.
  bool Pause(int64_t ns) {
    const int64_t until_ns = SteadyNow() + ns;
    MutexLock lock(mutex_);
    while (true) {
      const int64_t now_ns = SteadyNow();
      if (ends_ns_ && *ends_ns_ <= std::min(now_ns, until_ns)) return false;
      if (now_ns >= until_ns) return true;
      changed_.wait_for(lock, std::chrono::nanoseconds(std::min(until_ns, ends_ns_.value_or(until_ns)) - now_ns));
    }
  }

  void Deliver() {
    bool is_lost = false;
    std::set<std::string> told;
    while (std::optional<OtlpPayload> payload = Next()) {
      int64_t pause_ns = kFirstPauseNs;
      while (true) {
        Attempt attempt = Post(*payload);
        if (attempt.outcome == Attempt::Outcome::kLater) {
          if (!std::exchange(is_lost, true)) options_.tell(attempt.what + "; is tried again");
          if (Pause(attempt.wait_ns.value_or(pause_ns))) {
            pause_ns = std::min(2 * pause_ns, kLongestPauseNs);
            continue;
          }
        } else if (std::exchange(is_lost, false)) {
          options_.tell(options_.url + " answers again");
        }
        const bool is_delivered = attempt.outcome == Attempt::Outcome::kDelivered;
        const uint64_t rejected = std::min(attempt.reply.rejected_count, payload->point_count);
        std::string line;
        if (attempt.outcome == Attempt::Outcome::kRefused)
          line = attempt.what + "; what it refuses is dropped, and counted";
        if (rejected > 0) line = fmt::format("{} takes only part of it: {}", options_.url, attempt.reply.message);
        // Each once: they come with every payload.
        if (!line.empty() && told.size() < 16 && told.insert(line).second) options_.tell(line);
        const MutexLock lock(mutex_);
        counts_.delivered += is_delivered ? payload->point_count - rejected : 0;
        counts_.rejected += rejected;
        counts_.dropped += is_delivered ? 0 : payload->point_count;
        break;
      }
    }
  }

  const Options options_;
  std::unique_ptr<curl_slist, CurlDelete> headers_;
  std::array<char, CURL_ERROR_SIZE> words_ = {};
  std::unique_ptr<CURL, CurlDelete> curl_;
  std::string body_;
  std::atomic<int64_t> stop_at_ns_ = INT64_MAX;

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<OtlpPayload> waiting_ LOCKSTEP_GUARDED_BY(mutex_);
  uint64_t waiting_bytes_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  bool has_overflown_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::optional<int64_t> ends_ns_ LOCKSTEP_GUARDED_BY(mutex_);
  Counts counts_ LOCKSTEP_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<OtlpSender>> OtlpSender::Start(Options options) {
  auto sender = std::make_unique<CurlSender>(std::move(options));
  RETURN_IF_ERROR(sender->Init());
  return std::unique_ptr<OtlpSender>(std::move(sender));
}

}  // namespace lockstep::export_live
