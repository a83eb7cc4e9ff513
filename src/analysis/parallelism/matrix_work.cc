#include "analysis/parallelism/matrix_work.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "analysis/collective_size.h"

namespace lockstep::analysis {
namespace {

using Shape = std::vector<int64_t>;

/// Products and sums that stay absent once one of them does not fit.
class Count {
 public:
  explicit Count(int64_t value) : value_(value) {}
  Count& operator*=(int64_t factor) {
    if (__builtin_mul_overflow(value_, factor, &value_)) fits_ = false;
    return *this;
  }
  Count& operator+=(const Count& other) {
    if (!other.fits_ || __builtin_add_overflow(value_, other.value_, &value_)) fits_ = false;
    return *this;
  }
  std::optional<int64_t> value() const { return fits_ ? std::optional<int64_t>(value_) : std::nullopt; }

 private:
  int64_t value_;
  bool fits_ = true;
};

Count Product(int64_t first, const Shape& shape, size_t from = 0) {
  Count product(first);
  for (size_t i = from; i < shape.size(); ++i) product *= shape[i];
  return product;
}

/// "[1,2]" -> {1, 2}. False when it is anything else.
bool ParseIntegers(std::string_view text, Shape* shape) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return false;
  const char* at = text.data() + 1;
  const char* const end = text.data() + text.size() - 1;
  while (at < end) {
    if (*at == ',' || *at == ' ') {
      ++at;
      continue;
    }
    int64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < 0) return false;
    shape->push_back(value);
    at = next;
  }
  return true;
}

/// Parts of a list at its own depth: "[[1,2],[],\"a,b\"]" -> "[1,2]", "[]", "\"a,b\"".
std::vector<std::string_view> SplitList(std::string_view text) {
  std::vector<std::string_view> parts;
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return parts;
  text = text.substr(1, text.size() - 2);
  int depth = 0;
  bool in_string = false;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0 && !in_string)) {
      if (!text.empty()) parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && text[i] == '[') {
      ++depth;
    } else if (!in_string && text[i] == ']') {
      --depth;
    }
  }
  return parts;
}

std::string_view Unquoted(std::string_view text) {
  return text.size() >= 2 && text.front() == '"' && text.back() == '"' ? text.substr(1, text.size() - 2) : text;
}

/// An operator's arguments.
struct Arguments {
  std::vector<std::string_view> dims;
  std::vector<std::string_view> types;
  std::vector<std::string_view> values;

  /// The tensor's shape; false when it has not that many dimensions.
  bool Tensor(size_t i, size_t rank, Shape* shape) const {
    return i < dims.size() && ParseIntegers(dims[i], shape) && shape->size() == rank;
  }
  std::string_view Value(size_t i) const { return i < values.size() ? Unquoted(values[i]) : std::string_view(); }
  std::string_view Type(size_t i) const { return i < types.size() ? Unquoted(types[i]) : std::string_view(); }
};

std::optional<MatrixWork> Work(const Count& flops, Count elements, std::string_view type) {
  const auto element_bytes = ElementBytes(type);
  if (!element_bytes) return std::nullopt;
  elements *= *element_bytes;
  if (!flops.value() || !elements.value()) return std::nullopt;
  return MatrixWork{*flops.value(), *elements.value()};
}

/// [batch x] M x K times [batch x] K x N, perhaps with an addend in front.
std::optional<MatrixWork> ProductWork(const Arguments& arguments, size_t first, bool batched) {
  const size_t rank = batched ? 3 : 2;
  Shape a;
  Shape b;
  if (!arguments.Tensor(first, rank, &a) || !arguments.Tensor(first + 1, rank, &b)) return std::nullopt;
  const int64_t batch = batched ? a[0] : 1;
  const int64_t m = a[rank - 2];
  const int64_t k = a[rank - 1];
  const int64_t n = b[rank - 1];
  if (b[rank - 2] != k || (batched && b[0] != batch)) return std::nullopt;
  Count flops = Product(2, {batch, m, n, k});
  Count elements = Product(batch, {m, k});
  elements += Product(batch, {k, n});
  elements += Product(batch, {m, n});
  if (first > 0) {
    flops += Product(batch, {m, n});
    Shape addend;
    if (!ParseIntegers(arguments.dims[0], &addend)) return std::nullopt;
    elements += Product(1, addend);
  }
  return Work(flops, elements, arguments.Type(first));
}

/// Length of a convolution's output along one dimension; 0 = does not fit.
int64_t OutputLength(int64_t input, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  constexpr int64_t kMax = int64_t{1} << 31;
  if (input > kMax || kernel > kMax || padding > kMax || dilation > kMax || stride <= 0 || kernel <= 0) return 0;
  const int64_t reach = dilation * (kernel - 1) + 1;
  return input + 2 * padding < reach ? 0 : (input + 2 * padding - reach) / stride + 1;
}

/// aten::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups).
std::optional<MatrixWork> ConvolutionWork(const Arguments& arguments) {
  Shape input;
  Shape weight;
  Shape stride;
  Shape padding;
  Shape dilation;
  if (arguments.dims.size() < 2 || !ParseIntegers(arguments.dims[0], &input) ||
      !ParseIntegers(arguments.dims[1], &weight) || input.size() < 3 || input.size() != weight.size() ||
      !ParseIntegers(arguments.Value(3), &stride) || !ParseIntegers(arguments.Value(4), &padding) ||
      !ParseIntegers(arguments.Value(5), &dilation) || arguments.Value(6) != "False") {
    return std::nullopt;
  }
  const size_t spatial = input.size() - 2;
  const auto at = [](const Shape& list, size_t i) { return list.size() == 1 ? list[0] : list[i]; };
  for (const Shape* list : {&stride, &padding, &dilation}) {
    if (list->size() != 1 && list->size() != spatial) return std::nullopt;
  }
  Shape output = {input[0], weight[0]};
  for (size_t i = 0; i < spatial; ++i) {
    output.push_back(OutputLength(input[2 + i], weight[2 + i], at(stride, i), at(padding, i), at(dilation, i)));
    if (output.back() == 0) return std::nullopt;
  }
  Count flops = Product(2, output);
  for (size_t i = 1; i < weight.size(); ++i) flops *= weight[i];
  Count elements = Product(1, input);
  elements += Product(1, weight);
  elements += Product(1, output);
  return Work(flops, elements, arguments.Type(0));
}

/// aten::convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed,
/// output_padding, groups, output_mask): a convolution's work for each of the gradients of input and weight.
std::optional<MatrixWork> ConvolutionBackwardWork(const Arguments& arguments) {
  Shape output;
  Shape input;
  Shape weight;
  if (arguments.dims.size() < 3 || !ParseIntegers(arguments.dims[0], &output) ||
      !ParseIntegers(arguments.dims[1], &input) || !ParseIntegers(arguments.dims[2], &weight) || output.size() < 3 ||
      output.size() != weight.size() || input.size() != weight.size() || arguments.Value(7) != "False") {
    return std::nullopt;
  }
  const std::vector<std::string_view> mask = SplitList(arguments.Value(10));
  if (mask.size() != 3) return std::nullopt;
  const auto asked = [](std::string_view value) { return value.find("rue") != std::string_view::npos ? 1 : 0; };
  const int64_t gradients = asked(mask[0]) + asked(mask[1]);
  Count flops = Product(2 * gradients, output);
  for (size_t i = 1; i < weight.size(); ++i) flops *= weight[i];
  Count elements = Product(gradients, output);
  elements += Product(gradients, input);
  elements += Product(gradients, weight);
  return Work(flops, elements, arguments.Type(0));
}

/// Query, key and value from argument `first` on; `causal` is the argument that says so.
std::optional<MatrixWork> AttentionWork(const Arguments& arguments, size_t first, size_t causal, bool backward) {
  Shape query;
  Shape key;
  Shape value;
  if (!arguments.Tensor(first, 4, &query) || !arguments.Tensor(first + 1, 4, &key) ||
      !arguments.Tensor(first + 2, 4, &value)) {
    return std::nullopt;
  }
  constexpr size_t kHeads = 1;
  constexpr size_t kLength = 2;
  const std::string_view is_causal = arguments.Value(causal);
  if (is_causal != "True" && is_causal != "False") return std::nullopt;
  // Scores from query and key, then their product with the values; five such products go back.
  Count flops = Product(2, {query[0], query[kHeads], query[kLength], key[kLength], query[3]});
  flops += Product(2, {query[0], query[kHeads], query[kLength], key[kLength], value[3]});
  Count elements = Product(1, query);
  elements += Product(1, key);
  elements += Product(1, value);
  elements += Product(query[0], {query[kHeads], query[kLength], value[3]});
  if (backward) elements *= 2;
  std::optional<MatrixWork> work = Work(flops, elements, arguments.Type(first));
  if (!work) return std::nullopt;
  if (backward) work->flops = work->flops / 2 * 5;
  if (is_causal == "True") work->flops /= 2;
  return work;
}

}  // namespace

std::optional<MatrixWork> MatrixWorkOf(std::string_view name, std::string_view dims, std::string_view types,
                                       std::string_view values) {
  const Arguments arguments{SplitList(dims), SplitList(types), SplitList(values)};
  if (name == "aten::mm" || name == "aten::_scaled_mm") return ProductWork(arguments, 0, false);
  if (name == "aten::addmm") return ProductWork(arguments, 1, false);
  if (name == "aten::bmm") return ProductWork(arguments, 0, true);
  if (name == "aten::baddbmm") return ProductWork(arguments, 1, true);
  if (name == "aten::convolution") return ConvolutionWork(arguments);
  if (name == "aten::convolution_backward") return ConvolutionBackwardWork(arguments);
  constexpr std::string_view kAttention = "aten::_scaled_dot_product_";
  if (!name.starts_with(kAttention)) return std::nullopt;
  name.remove_prefix(kAttention.size());
  if (name == "flash_attention" || name == "flash_attention_for_cpu") {
    return AttentionWork(arguments, 0, 4, false);
  }
  if (name == "flash_attention_backward") return AttentionWork(arguments, 1, 11, true);
  if (name == "efficient_attention") return AttentionWork(arguments, 0, 6, false);
  if (name == "efficient_attention_backward") return AttentionWork(arguments, 1, 11, true);
  if (name == "cudnn_attention") return AttentionWork(arguments, 0, 6, false);
  return std::nullopt;
}

std::string_view FactorTypeOf(std::string_view name, std::string_view types) {
  const std::vector<std::string_view> list = SplitList(types);
  const size_t factor = name == "aten::addmm" || name == "aten::baddbmm" ? 1 : 0;
  return factor < list.size() ? Unquoted(list[factor]) : std::string_view();
}

}  // namespace lockstep::analysis
