#if defined(__x86_64__)

#include <immintrin.h>

#include <bit>
#include <cstring>

#include "ingest/torch_trace/template_matcher.h"

// Only the functions below are built for AVX-512: inline functions of shared headers must not be, since the linker may
// keep any one copy of them.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,avx512f,avx512bw,avx512vl,bmi,bmi2,lzcnt,popcnt,pclmul"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,avx512f,avx512bw,avx512vl,bmi,bmi2,lzcnt,popcnt,pclmul")
#endif

namespace lockstep::ingest {
namespace {

/// 64 bytes of text in a register.
struct Block {
  __m512i text;

  static Block Load(const char* from) { return {_mm512_loadu_si512(from)}; }
  uint64_t Equal(char c) const { return _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8(c)); }
  uint64_t Below(char c) const { return _mm512_cmplt_epu8_mask(text, _mm512_set1_epi8(c)); }
  uint64_t NotAscii() const { return _mm512_movepi8_mask(text); }
};

inline bool EqualBytes(const char* a, const char* b, size_t count) {
  for (; count > 64; a += 64, b += 64, count -= 64) {
    if (_mm512_cmpneq_epi8_mask(_mm512_loadu_si512(a), _mm512_loadu_si512(b)) != 0) return false;
  }
  const __mmask64 used = _bzhi_u64(~uint64_t{0}, static_cast<uint32_t>(count));
  return _mm512_mask_cmpneq_epi8_mask(used, _mm512_maskz_loadu_epi8(used, a), _mm512_maskz_loadu_epi8(used, b)) == 0;
}

inline uint32_t DigitCount(const char* text) {
  const __m256i shifted =
      _mm256_sub_epi8(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(text)), _mm256_set1_epi8('0'));
  return static_cast<uint32_t>(_tzcnt_u32(_mm256_cmpgt_epu8_mask(shifted, _mm256_set1_epi8(9))));
}

inline uint32_t NumberLength(const char* text) {
  const __m256i shifted =
      _mm256_sub_epi8(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(text)), _mm256_set1_epi8('-'));
  return static_cast<uint32_t>(_tzcnt_u32(_mm256_cmpgt_epu8_mask(shifted, _mm256_set1_epi8('9' - '-'))));
}

/// At most 16 digits. Loads the 16 bytes that end behind the last digit, so text before `text` must be readable.
inline uint64_t ParseDigits(const char* text, uint32_t count) {
  const auto used = static_cast<__mmask16>(0xFFFFU << (16 - count));
  const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + count - 16));
  const __m128i digits = _mm_maskz_sub_epi8(used, raw, _mm_set1_epi8('0'));
  const __m128i pairs = _mm_maddubs_epi16(digits, _mm_set1_epi16(0x010A));
  const __m128i quads = _mm_madd_epi16(pairs, _mm_set1_epi32(0x00010064));
  const __m128i packed = _mm_packus_epi32(quads, quads);
  const __m128i octets = _mm_madd_epi16(packed, _mm_set1_epi32(0x00012710));
  const auto both = static_cast<uint64_t>(_mm_cvtsi128_si64(octets));
  return (both & 0xFFFFFFFFU) * 100'000'000 + (both >> 32);
}

inline uint64_t PrefixXor(uint64_t bits) {
  const __m128i product =
      _mm_clmulepi64_si128(_mm_set_epi64x(0, static_cast<long long>(bits)), _mm_set1_epi8('\xFF'), 0);
  return static_cast<uint64_t>(_mm_cvtsi128_si64(product));
}

#include "ingest/torch_trace/template_matcher_body.inc"

}  // namespace

const char* MatchEventsAvx512(MatchState* state, const char* cursor, const char* end) {
  return MatchEvents(state, cursor, end);
}

}  // namespace lockstep::ingest

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif  // __x86_64__
