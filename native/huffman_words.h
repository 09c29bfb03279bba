// The inner loop of encoding: a chunk's symbols to words.
#pragma once

#include <cstdint>

#include "huffman_bits.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

// So many symbols take 8 bytes at least: what is written ahead of them, whole, stays within their chunk.
constexpr int kTail = 64;

#if defined(__AVX512BW__)

// The words of 256 symbols in eight registers, 32 looked up at a time.
class WordRegisters {
public:
    explicit WordRegisters(const std::uint16_t* words) {
        for (int i = 0; i < 8; ++i) parts_[i] = _mm512_loadu_si512(words + 32 * i);
    }

    __m512i find(__m512i symbols) const {
        const __mmask32 odd = _mm512_test_epi16_mask(symbols, _mm512_set1_epi16(64));
        const __mmask32 upper = _mm512_test_epi16_mask(symbols, _mm512_set1_epi16(128));
        const __m512i low = _mm512_mask_mov_epi16(quarter(0, symbols), odd, quarter(1, symbols));
        const __m512i high = _mm512_mask_mov_epi16(quarter(2, symbols), odd, quarter(3, symbols));
        return _mm512_mask_mov_epi16(low, upper, high);
    }

private:
    __m512i quarter(int i, __m512i symbols) const {
        return _mm512_permutex2var_epi16(parts_[2 * i], symbols, parts_[2 * i + 1]);
    }

    __m512i parts_[8];
};

// Four words in each 64-bit lane, one after another, and the number of their bits.
struct Fours {
    __m512i bits, lengths;

    explicit Fours(__m512i words) {
        const __m512i length = _mm512_set1_epi32((1 << kLengthBits) - 1);
        const __m512i first = _mm512_and_si512(words, length);
        const __m512i second = _mm512_and_si512(_mm512_srli_epi32(words, 16), length);
        const __m512i first_bits = _mm512_and_si512(_mm512_srli_epi32(words, kLengthBits), _mm512_set1_epi32(0xfff));
        const __m512i second_bits = _mm512_srli_epi32(words, 16 + kLengthBits);
        const __m512i two = _mm512_or_si512(first_bits, _mm512_sllv_epi32(second_bits, first));
        const __m512i two_lengths = _mm512_add_epi32(first, second);
        const __m512i lower = _mm512_set1_epi64(0xffffffff);
        const __m512i before = _mm512_and_si512(two_lengths, lower);
        bits = _mm512_or_si512(_mm512_and_si512(two, lower), _mm512_sllv_epi64(_mm512_srli_epi64(two, 32), before));
        lengths = _mm512_add_epi64(before, _mm512_srli_epi64(two_lengths, 32));
    }
};

// The sum of this lane and all before it.
__m512i running_sum(__m512i lanes) {
    const __m512i zero = _mm512_setzero_si512();
    lanes = _mm512_add_epi64(lanes, _mm512_alignr_epi64(lanes, zero, 7));
    lanes = _mm512_add_epi64(lanes, _mm512_alignr_epi64(lanes, zero, 6));
    return _mm512_add_epi64(lanes, _mm512_alignr_epi64(lanes, zero, 4));
}

// Where a lane's bits go, the byte and the bits moved to their place in it; and what the lane before and the
// one before that, of four bits at least each, leave in that byte.
class Placed {
public:
    __m512i byte = _mm512_setzero_si512(), bits = _mm512_setzero_si512();

    Placed() = default;
    Placed(const Fours& fours, __m512i starts) {
        byte = _mm512_srli_epi64(starts, 3);
        bits = _mm512_sllv_epi64(fours.bits, _mm512_and_si512(starts, _mm512_set1_epi64(7)));
    }

    template <int lane>
    __m512i left_by(const Placed& before) const {
        const __m512i other = _mm512_alignr_epi64(byte, before.byte, 8 - lane);
        const __m512i other_bits = _mm512_alignr_epi64(bits, before.bits, 8 - lane);
        return _mm512_srlv_epi64(other_bits, _mm512_slli_epi64(_mm512_sub_epi64(byte, other), 3));
    }
};

// All but the last symbols; gives their number.
std::int64_t write_most(const std::uint8_t* symbols, std::int64_t count, const WordTable& table, BitWriter& out) {
    const WordRegisters words(table.words);
    Placed before;
    __m512i position = _mm512_setzero_si512();
    std::int64_t i = 0;
    for (; i + 32 + kTail <= count; i += 32) {
        const Fours fours(words.find(_mm512_cvtepu8_epi16(load_vector<__m256i>(symbols + i))));
        const __m512i ends = _mm512_add_epi64(running_sum(fours.lengths), position);
        const Placed now(fours, _mm512_sub_epi64(ends, fours.lengths));
        alignas(64) std::uint64_t bits[8], byte[8];
        const __m512i left = _mm512_or_si512(now.left_by<1>(before), now.left_by<2>(before));
        _mm512_store_si512(bits, _mm512_or_si512(now.bits, left));
        _mm512_store_si512(byte, now.byte);
        __asm__ volatile("" : "+m"(bits), "+m"(byte));  // by way of memory, not of a shuffle for each lane
        for (int lane = 0; lane < 8; ++lane) store_value(out.to + byte[lane], bits[lane]);
        position = _mm512_permutexvar_epi64(_mm512_set1_epi64(7), ends);
        before = now;
    }
    const auto written = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm512_castsi512_si128(position)));
    if (i > 0) {
        out.to += written >> 3;
        out.pending = written & 7;
        out.bits = *out.to & ((1u << out.pending) - 1);
    }
    return i;
}

#else

std::int64_t write_most(const std::uint8_t* symbols, std::int64_t count, const WordTable& table, BitWriter& out) {
    BitWriter writer = out;
    std::int64_t i = 0;
    for (; i + 4 + kTail <= count; i += 4) {
        for (int k = 0; k < 4; ++k) writer.put_word(table.words[symbols[i + k]]);
        writer.flush();
    }
    out = writer;
    return i;
}

#endif

void write_words(const std::uint8_t* symbols, std::int64_t count, const WordTable& table, std::uint8_t* to) {
    BitWriter out{to};
    std::int64_t i = write_most(symbols, count, table, out);
    std::uint8_t last[2 * kTail * kMaxWordBits / 8 + 8];
    BitWriter tail{last, out.bits, out.pending};
    for (; i + 4 <= count; i += 4) {
        for (int k = 0; k < 4; ++k) tail.put_word(table.words[symbols[i + k]]);
        tail.flush();
    }
    for (; i < count; ++i) tail.put_word(table.words[symbols[i]]);
    tail.flush();
    __builtin_memcpy(out.to, last, tail.to - last + (tail.pending > 0));
}

}  // namespace
}  // namespace laconic::LACONIC_ISA_NAMESPACE
