#include "generator/layer_program.h"

#include <initializer_list>
#include <string>

namespace lockstep::tracegen {
namespace {

constexpr const char* kGemmForward =
    "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1_tensor16x8x16_kernel";
constexpr const char* kGemmWide =
    "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8>(cutlass_80_wmma_"
    "tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8::Params)";
constexpr const char* kGemmGradient =
    "sm80_xmma_gemm_bf16bf16_bf16f32_f32_nt_n_tilesize256x64x32_stage3_warpsize4x1x1_tensor16x8x16_kernel";
constexpr const char* kGemmInput =
    "sm80_xmma_gemm_bf16bf16_bf16f32_f32_nn_n_tilesize128x256x32_stage3_warpsize2x4x1_tensor16x8x16_kernel";
constexpr const char* kNorm =
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, "
    "c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, float*, c10::BFloat16*)";
constexpr const char* kNormBackward =
    "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel<c10::BFloat16, float>(c10::BFloat16 const*, "
    "c10::BFloat16 const*, float const*, float const*, c10::BFloat16 const*, c10::BFloat16*, int)";
constexpr const char* kNormWeights =
    "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel_32x32<c10::BFloat16, float>(long, long, "
    "c10::BFloat16 const*, c10::BFloat16 const*, float const*, float const*, c10::BFloat16*, c10::BFloat16*)";
constexpr const char* kFlashForward =
    "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::bfloat16_t>, "
    "false, true, false, false, true, true>(Flash_fwd_params)";
constexpr const char* kFlashBackward =
    "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64, 128, 128, 8, 4, 4, "
    "4, "
    "false, false, cutlass::bfloat16_t>, false, true, false, false, true, true>(Flash_bwd_params)";
constexpr const char* kAdd =
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, "
    "at::detail::Array<char*, "
    "3> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, at::detail::Array<char*, 3>)";
constexpr const char* kGelu =
    "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, "
    "at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#4}, at::detail::Array<char*, 2> >(int)";
constexpr const char* kGeluBackward =
    "void at::native::vectorized_elementwise_kernel<4, at::native::GeluBackwardCUDAKernelImpl(at::TensorIteratorBase&, "
    "at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#4}, at::detail::Array<char*, 3> >(int)";
constexpr const char* kDropout =
    "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<c10::BFloat16, float, unsigned int, 1, 4, "
    "bool>(at::cuda::detail::TensorInfo<c10::BFloat16 const, unsigned int>, unsigned int, float, at::PhiloxCudaState)";
constexpr const char* kMaskedScale =
    "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::masked_scale_kernel<bool, "
    "c10::BFloat16, float>(at::Tensor&, at::Tensor, at::Tensor, float)::{lambda(c10::BFloat16, bool)#1}>(int)";
constexpr const char* kReduce =
    "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<c10::BFloat16, "
    "at::native::func_wrapper_t<c10::BFloat16, "
    "at::native::sum_functor<c10::BFloat16, float, c10::BFloat16>>, unsigned int, c10::BFloat16, 4> >(unsigned int)";
constexpr const char* kSoftmax =
    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, at::native::(anonymous "
    "namespace)::LogSoftMaxForwardEpilogue>(float*, float const*, int)";
constexpr const char* kSoftmaxBackward =
    "void at::native::(anonymous namespace)::cunn_SoftMaxBackward<4, float, float, float, at::native::(anonymous "
    "namespace)::LogSoftMaxBackwardEpilogue>(float*, float const*, float const*, long)";
constexpr const char* kForeach =
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
    "namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, "
    "4, "
    "(at::native::ADAM_MODE)1, false>, float const*, double, double, double>(float const*, double, double, double)";

class Builder {
 public:
  explicit Builder(NamePool* names) : names_(names) {}

  OpSpec Op(std::initializer_list<const char*> ranges, std::initializer_list<const char*> views,
            std::initializer_list<std::pair<const char*, int64_t>> kernels, bool differentiable = false) {
    OpSpec op;
    for (const char* text : ranges) op.ranges.push_back(names_->Intern(text));
    for (const char* text : views) op.views.push_back(names_->Intern(text));
    for (const auto& [text, duration_ns] : kernels) op.kernels.push_back({names_->Intern(text), duration_ns});
    op.differentiable = differentiable;
    return op;
  }

  /// A backward node: the engine's frame, the node, then what the node calls.
  OpSpec Backward(const char* node, std::initializer_list<const char*> calls, std::initializer_list<const char*> views,
                  std::initializer_list<std::pair<const char*, int64_t>> kernels) {
    OpSpec op = Op({}, views, kernels, true);
    op.ranges.push_back(names_->Intern(std::string("autograd::engine::evaluate_function: ") + node));
    op.ranges.push_back(names_->Intern(node));
    for (const char* text : calls) op.ranges.push_back(names_->Intern(text));
    return op;
  }

  OpSpec Linear(const char* kernel, int64_t duration_ns) {
    return Op({"aten::linear", "aten::addmm"}, {"aten::t", "aten::transpose", "aten::as_strided", "aten::view"},
              {{kernel, duration_ns}}, true);
  }
  OpSpec LinearBackward(int64_t duration_ns) {
    return Backward("AddmmBackward0", {"aten::mm"}, {"aten::t", "aten::transpose", "aten::as_strided"},
                    {{kGemmInput, duration_ns}, {kGemmGradient, duration_ns}, {kReduce, 9'000}});
  }
  OpSpec Norm() {
    return Op({"aten::layer_norm", "aten::native_layer_norm"}, {"aten::empty", "aten::empty_like"}, {{kNorm, 21'000}},
              true);
  }
  OpSpec NormBackward() {
    return Backward("NativeLayerNormBackward0", {"aten::native_layer_norm_backward"}, {"aten::empty", "aten::empty"},
                    {{kNormBackward, 26'000}, {kNormWeights, 17'000}});
  }
  OpSpec Accumulate() {
    OpSpec op = Op({}, {"aten::detach"}, {{kAdd, 6'000}});
    op.ranges.push_back(names_->Intern("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"));
    op.ranges.push_back(names_->Intern("torch::autograd::AccumulateGrad"));
    op.ranges.push_back(names_->Intern("aten::add_"));
    return op;
  }

 private:
  NamePool* names_;
};

void AddForward(Builder& builder, std::vector<OpSpec>* ops) {
  ops->push_back(builder.Norm());
  ops->push_back(builder.Linear(kGemmForward, 96'000));
  ops->push_back(builder.Op({"aten::reshape", "aten::view"}, {}, {}));
  ops->push_back(builder.Op({"aten::permute", "aten::as_strided"}, {}, {}));
  ops->push_back(builder.Op({"aten::scaled_dot_product_attention", "aten::_scaled_dot_product_flash_attention",
                             "aten::_flash_attention_forward"},
                            {"aten::transpose", "aten::as_strided", "aten::empty_like", "aten::empty"},
                            {{kFlashForward, 84'000}}, true));
  ops->push_back(builder.Linear(kGemmForward, 38'000));
  ops->push_back(builder.Op({"aten::dropout", "aten::native_dropout"}, {"aten::empty_like", "aten::empty"},
                            {{kDropout, 14'000}}, true));
  ops->push_back(builder.Op({"aten::add"}, {}, {{kAdd, 12'000}}, true));
  ops->push_back(builder.Norm());
  ops->push_back(builder.Linear(kGemmWide, 121'000));
  ops->push_back(builder.Op({"aten::gelu"}, {}, {{kGelu, 24'000}}, true));
  ops->push_back(builder.Linear(kGemmWide, 118'000));
  ops->push_back(builder.Op({"aten::dropout", "aten::native_dropout"}, {"aten::empty_like", "aten::empty"},
                            {{kDropout, 14'000}}, true));
  ops->push_back(builder.Op({"aten::add"}, {}, {{kAdd, 12'000}}, true));
}

void AddBackward(Builder& builder, std::vector<OpSpec>* ops) {
  ops->push_back(builder.Backward("AddBackward0", {"aten::add"}, {}, {{kAdd, 13'000}}));
  ops->push_back(builder.Backward("NativeDropoutBackward0", {"aten::native_dropout_backward"}, {"aten::empty_like"},
                                  {{kMaskedScale, 15'000}}));
  ops->push_back(builder.LinearBackward(119'000));
  ops->push_back(builder.Accumulate());
  ops->push_back(builder.Backward("GeluBackward0", {"aten::gelu_backward"}, {}, {{kGeluBackward, 31'000}}));
  ops->push_back(builder.LinearBackward(117'000));
  ops->push_back(builder.Accumulate());
  ops->push_back(builder.NormBackward());
  ops->push_back(builder.Backward("AddBackward0", {"aten::add"}, {}, {{kAdd, 13'000}}));
  ops->push_back(builder.Backward("NativeDropoutBackward0", {"aten::native_dropout_backward"}, {"aten::empty_like"},
                                  {{kMaskedScale, 15'000}}));
  ops->push_back(builder.LinearBackward(39'000));
  ops->push_back(builder.Accumulate());
  ops->push_back(
      builder.Backward("ScaledDotProductFlashAttentionBackward0",
                       {"aten::_scaled_dot_product_flash_attention_backward", "aten::_flash_attention_backward"},
                       {"aten::transpose", "aten::as_strided", "aten::empty_like"}, {{kFlashBackward, 188'000}}));
  ops->push_back(builder.LinearBackward(97'000));
  ops->push_back(builder.Accumulate());
  ops->push_back(builder.NormBackward());
}

}  // namespace

int64_t LayerProgram::KernelCount(int32_t layers) const {
  int64_t per_layer = 0;
  for (const OpSpec& op : forward) per_layer += static_cast<int64_t>(op.kernels.size());
  for (const OpSpec& op : backward) per_layer += static_cast<int64_t>(op.kernels.size());
  return per_layer * layers;
}

LayerProgram MakeLayerProgram(NamePool* names) {
  Builder builder(names);
  LayerProgram program;
  AddForward(builder, &program.forward);
  AddBackward(builder, &program.backward);
  program.loss = builder.Op({"aten::cross_entropy_loss", "aten::log_softmax", "aten::_log_softmax"}, {"aten::empty"},
                            {{kSoftmax, 55'000}, {kReduce, 7'000}}, true);
  program.loss_backward = builder.Backward("LogSoftmaxBackward0", {"aten::_log_softmax_backward_data"}, {"aten::empty"},
                                           {{kSoftmaxBackward, 61'000}});
  program.optimizer.push_back(
      builder.Op({"aten::_fused_adamw_"}, {"aten::empty", "aten::empty"}, {{kForeach, 33'000}}, false));
  return program;
}

}  // namespace lockstep::tracegen
