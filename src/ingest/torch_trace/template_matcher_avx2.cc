#if defined(__x86_64__)

#include <immintrin.h>

#include <bit>
#include <cstring>

#include "ingest/torch_trace/template_matcher.h"

// Only the functions below are built for AVX2: see template_matcher_avx512.cc.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt,pclmul"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2,lzcnt,popcnt,pclmul")
#endif

namespace lockstep::ingest {
namespace {

inline __m256i Load32(const char* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
inline uint32_t MoveMask(__m256i bytes) { return static_cast<uint32_t>(_mm256_movemask_epi8(bytes)); }

/// 64 bytes of text in two registers.
struct Block {
  __m256i low;
  __m256i high;

  static Block Load(const char* from) { return {Load32(from), Load32(from + 32)}; }
  static uint64_t Join(__m256i a, __m256i b) { return MoveMask(a) | uint64_t{MoveMask(b)} << 32; }
  uint64_t Equal(char c) const {
    const __m256i wanted = _mm256_set1_epi8(c);
    return Join(_mm256_cmpeq_epi8(low, wanted), _mm256_cmpeq_epi8(high, wanted));
  }
  uint64_t Below(char c) const {
    const __m256i limit = _mm256_set1_epi8(static_cast<char>(c - 1));
    return Join(_mm256_cmpeq_epi8(_mm256_min_epu8(low, limit), low),
                _mm256_cmpeq_epi8(_mm256_min_epu8(high, limit), high));
  }
  uint64_t NotAscii() const { return Join(low, high); }
};

/// May read 63 bytes behind either span.
inline bool EqualBytes(const char* a, const char* b, size_t count) {
  for (; count > 32; a += 32, b += 32, count -= 32) {
    if (MoveMask(_mm256_cmpeq_epi8(Load32(a), Load32(b))) != 0xFFFFFFFFU) return false;
  }
  if (count == 32) return MoveMask(_mm256_cmpeq_epi8(Load32(a), Load32(b))) == 0xFFFFFFFFU;
  // Of nothing there may be no address, which memcmp must not be given.
  return count == 0 || std::memcmp(a, b, count) == 0;
}

inline uint32_t OutOfRange(const char* text, char first, char last) {
  const __m256i shifted = _mm256_sub_epi8(Load32(text), _mm256_set1_epi8(first));
  const __m256i limit = _mm256_set1_epi8(static_cast<char>(last - first));
  return ~MoveMask(_mm256_cmpeq_epi8(_mm256_min_epu8(shifted, limit), shifted));
}
inline uint32_t DigitCount(const char* text) { return static_cast<uint32_t>(_tzcnt_u32(OutOfRange(text, '0', '9'))); }
inline uint32_t NumberLength(const char* text) { return static_cast<uint32_t>(_tzcnt_u32(OutOfRange(text, '-', '9'))); }

/// At most 16 digits. Loads the 16 bytes that end behind the last digit, so text before `text` must be readable.
inline uint64_t ParseDigits(const char* text, uint32_t count) {
  const __m128i position = _mm_set_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m128i used = _mm_cmpgt_epi8(position, _mm_set1_epi8(static_cast<char>(15 - static_cast<int>(count))));
  const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + count - 16));
  const __m128i digits = _mm_and_si128(used, _mm_sub_epi8(raw, _mm_set1_epi8('0')));
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

const char* MatchEventsAvx2(MatchState* state, const char* cursor, const char* end) {
  return MatchEvents(state, cursor, end);
}

}  // namespace lockstep::ingest

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif  // __x86_64__
