#include "base/exposition/exposition.h"

#include <limits>
#include <optional>

#include "base/ascii.h"
#include "base/text_scan.h"

namespace lockstep::exposition {
namespace {

bool IsNameStart(char c) { return IsLetter(c) || c == '_' || c == ':'; }
bool IsNamePart(char c) { return IsNameStart(c) || IsDigit(c); }

/// A name at the beginning of `rest`, taken from it; empty: there is none.
std::string_view TakeName(std::string_view* rest) {
  if (rest->empty() || !IsNameStart(rest->front())) return {};
  size_t length = 1;
  while (length < rest->size() && IsNamePart((*rest)[length])) ++length;
  const std::string_view name = rest->substr(0, length);
  rest->remove_prefix(length);
  return name;
}

void SkipBlanks(std::string_view* rest) {
  while (!rest->empty() && (rest->front() == ' ' || rest->front() == '\t')) rest->remove_prefix(1);
}

bool Skip(std::string_view* rest, char c) {
  if (rest->empty() || rest->front() != c) return false;
  rest->remove_prefix(1);
  return true;
}

/// What stands between quotes, the first of which is gone already, without its escapes. False: no second quote.
bool TakeQuoted(std::string_view* rest, std::string* value) {
  value->clear();
  for (size_t i = 0; i < rest->size(); ++i) {
    char c = (*rest)[i];
    if (c == '"') {
      rest->remove_prefix(i + 1);
      return true;
    }
    if (c == '\\' && i + 1 < rest->size()) {
      const char escaped = (*rest)[i + 1];
      if (escaped == 'n' || escaped == '"' || escaped == '\\') {
        c = escaped == 'n' ? '\n' : escaped;
        ++i;
      }
    }
    value->push_back(c);
  }
  return false;
}

bool TakeLabels(std::string_view* rest, std::vector<MetricLabel>* labels) {
  size_t count = 0;
  while (true) {
    SkipBlanks(rest);
    if (Skip(rest, '}')) break;
    if (count == kMostLabels) return false;
    if (labels->size() == count) labels->emplace_back();  // The others keep their memory from line to line.
    MetricLabel& label = (*labels)[count];
    label.name = TakeName(rest);
    SkipBlanks(rest);
    if (label.name.empty() || !Skip(rest, '=')) return false;
    SkipBlanks(rest);
    if (!Skip(rest, '"') || !TakeQuoted(rest, &label.value)) return false;
    ++count;
    SkipBlanks(rest);
    if (Skip(rest, ',')) continue;
    if (!Skip(rest, '}')) return false;
    break;
  }
  labels->resize(count);
  return true;
}

std::optional<double> NumberOf(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text == "Inf") return std::numeric_limits<double>::infinity();
  if (text == "-Inf") return -std::numeric_limits<double>::infinity();
  if (text == "NaN" || text == "Nan") return std::numeric_limits<double>::quiet_NaN();
  return WholeNumber<double>(text);
}

/// A number up to the next blank or the end.
std::optional<double> TakeNumber(std::string_view* rest) {
  const size_t end = rest->find_first_of(" \t");
  const std::optional<double> value = NumberOf(rest->substr(0, end));
  rest->remove_prefix(end == std::string_view::npos ? rest->size() : end);
  return value;
}

bool ReadSample(std::string_view line, MetricSample* sample) {
  SkipBlanks(&line);
  sample->name = TakeName(&line);
  if (sample->name.empty()) return false;
  SkipBlanks(&line);
  if (Skip(&line, '{')) {
    if (!TakeLabels(&line, &sample->labels)) return false;
  } else {
    sample->labels.clear();
  }
  SkipBlanks(&line);
  const std::optional<double> value = TakeNumber(&line);
  if (!value) return false;
  sample->value = *value;
  SkipBlanks(&line);
  if (line.empty()) return true;
  if (!TakeNumber(&line)) return false;  // The time.
  SkipBlanks(&line);
  return line.empty();
}

}  // namespace

const std::string* MetricSample::Find(std::string_view label) const {
  for (const MetricLabel& candidate : labels) {
    if (candidate.name == label) return &candidate.value;
  }
  return nullptr;
}

ExpositionCount ReadExposition(std::string_view text, const std::function<void(const MetricSample& sample)>& take) {
  ExpositionCount count;
  MetricSample sample;
  LineScanner lines(text);
  std::string_view line;
  while (lines.Next(&line)) {
    if (line.empty() || line.front() == '#') continue;
    if (count.sample_count == kMostSamples) {
      count.is_cut = true;
      break;
    }
    if (line.size() > kMostLineBytes || !ReadSample(line, &sample)) {
      ++count.bad_line_count;
      continue;
    }
    ++count.sample_count;
    take(sample);
  }
  return count;
}

}  // namespace lockstep::exposition
