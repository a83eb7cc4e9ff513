// What reaches the live page's server from outside: bodies of a page's requests, a query with a token, and what a
// Prometheus answers. By the first byte.
#include <string_view>

#include "fuzz.h"
#include "present/live_site/access.h"
#include "present/live_site/action_request.h"
#include "present/live_site/alert_watch.h"
#include "present/live_site/prometheus_alerts.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::live_site;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'c':
      if (const auto wish = ReadCaptureWish(text)) {
        FUZZ_CHECK(wish->selector.ranks.size() <= 4096);
        for (const auto& [first, last] : wish->selector.ranks) FUZZ_CHECK(first >= 0 && first == last);
        FUZZ_CHECK(wish->window.duration_ns > 0 && wish->window.iterations >= 0 && wish->window.iterations <= 1000);
        FUZZ_CHECK(wish->selector.job_id.empty() || wish->selector.pids.empty());
      }
      break;
    case 'h': (void)ReadHangWish(text); break;
    case 'a':
      if (const auto alerts = ReadAlerts(text)) {
        FUZZ_CHECK(alerts->size() <= kMostAlerts);
        for (const Alert& alert : *alerts) FUZZ_CHECK(alert.labels.size() <= kMostAlertLabels);
      }
      break;
    case 't': FUZZ_CHECK(ReadTimestamp(text).value_or(0) >= 0); break;
    case 'u':
      if (const auto at = ReadPrometheusUrl(std::string(text))) FUZZ_CHECK(!at->endpoint.address.empty());
      break;
    default:
      if (const auto value = QueryValue(text, "token")) FUZZ_CHECK(value->find('&') == std::string_view::npos);
  }
  return 0;
}
