#include "ingest/torch_trace/operator_shape.h"

#include <algorithm>
#include <array>
#include <string>

namespace lockstep::ingest {
namespace {

constexpr std::array<std::string_view, 5> kProducts = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm",
                                                       "aten::_scaled_mm"};
// Their figures need strides, paddings or whether the mask is causal.
constexpr std::array<std::string_view, 9> kWithValues = {"aten::convolution",
                                                         "aten::convolution_backward",
                                                         "aten::_scaled_dot_product_flash_attention",
                                                         "aten::_scaled_dot_product_flash_attention_backward",
                                                         "aten::_scaled_dot_product_efficient_attention",
                                                         "aten::_scaled_dot_product_efficient_attention_backward",
                                                         "aten::_scaled_dot_product_cudnn_attention",
                                                         "aten::_scaled_dot_product_cudnn_attention_backward",
                                                         "aten::_scaled_dot_product_flash_attention_for_cpu"};

template <size_t kCount>
bool Contains(const std::array<std::string_view, kCount>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Without the white space between values, which differs by the program that wrote the file.
std::string Compact(std::string_view list) {
  std::string compact;
  bool in_string = false;
  for (const char c : list) {
    if (c == '"') in_string = !in_string;
    if (in_string || (c != ' ' && c != '\n' && c != '\r' && c != '\t')) compact.push_back(c);
  }
  return compact;
}

}  // namespace

bool IsMatrixOperator(std::string_view name) {
  return name.starts_with("aten::") && (Contains(kProducts, name) || Contains(kWithValues, name));
}

bool ReadShapeArgs(const std::vector<Field>& fields, std::string_view name,
                   const std::function<NameId(std::string_view)>& intern, model::OperatorShape* shape) {
  constexpr size_t kMaxBytes = 4096;  // of one list; real ones have a few hundred
  bool has_dims = false;
  for (const Field& field : fields) {
    if (!field.in_args || field.kind != ValueKind::kArray || field.raw.size() > kMaxBytes) continue;
    if (field.key == "Input Dims" && !has_dims) {
      has_dims = true;
      shape->dims = intern(Compact(field.raw));
    } else if (field.key == "Input type") {
      shape->types = intern(Compact(field.raw));
    } else if (field.key == "Concrete Inputs" && Contains(kWithValues, name)) {
      shape->values = intern(Compact(field.raw));
    }
  }
  return has_dims;
}

}  // namespace lockstep::ingest
