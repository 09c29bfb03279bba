// Symbols to words.
#include <type_traits>

#include "huffman_symbols.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

// So many symbols take 8 bytes at least: what is written ahead of them, whole, stays within their chunk.
constexpr int kTail = 64;

// Folds a chunk of codes into symbols; a chunk of bytes is symbols already.
template <class Code>
class Symbols {
public:
    const std::uint8_t* read(const Code* codes, std::int64_t count) {
        constexpr int lanes = kLanes<std::uint32_t>;
        std::int64_t i = 0;
        for (; i + lanes <= count; i += lanes) {
            store_vector(symbols_ + i, narrow_to_bytes(symbols_of(fold(load_codes(codes + i)))));
        }
        if (i == count) return symbols_;
        Code last[lanes] = {};
        __builtin_memcpy(last, codes + i, (count - i) * sizeof(Code));
        store_vector(symbols_ + i, narrow_to_bytes(symbols_of(fold(load_codes(last)))));
        return symbols_;
    }

private:
    std::uint8_t symbols_[kMostChunk + kVectorBytes];
};

template <>
class Symbols<std::uint8_t> {
public:
    const std::uint8_t* read(const std::uint8_t* codes, std::int64_t) { return codes; }
};

// Neighbours are often equal, and an increment waits for the one before it: hence several tables.
void count_symbols(const std::uint8_t* symbols, std::int64_t count, std::int16_t* of) {
    constexpr int tables = 8;
    alignas(64) std::uint16_t partial[tables][kSymbols] = {};
    std::int64_t i = 0;
    for (; i + tables <= count; i += tables) {
#pragma GCC unroll 8
        for (int k = 0; k < tables; ++k) ++partial[k][symbols[i + k]];
    }
    for (; i < count; ++i) ++partial[0][symbols[i]];
    for (int symbol = 0; symbol < kSymbols; ++symbol) {
        unsigned sum = 0;
        for (int k = 0; k < tables; ++k) sum += partial[k][symbol];
        of[symbol] = static_cast<std::int16_t>(sum);
    }
}

// Bits into bytes, from the lowest on. Writes 8 bytes at a time.
struct BitWriter {
    std::uint8_t* to;
    std::uint64_t bits = 0;
    unsigned pending = 0;  // at most 7 after a flush

    void put(std::uint64_t value, unsigned length) {
        bits |= value << pending;
        pending += length;
    }

    void flush() {
        store_value(to, bits);
        to += pending >> 3;
        bits >>= pending & 56;
        pending &= 7;
    }

    void put_word(std::uint16_t word) { put(word >> kLengthBits, word & ((1 << kLengthBits) - 1)); }
};

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
        _mm512_store_si512(bits, _mm512_or_si512(now.bits, _mm512_or_si512(now.left_by<1>(before), now.left_by<2>(before))));
        _mm512_store_si512(byte, now.byte);
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

// The bits that symbols leave over, one after another.
template <class Code>
class ExtraWriter {
public:
    ExtraWriter(const Code* codes, const std::uint8_t* symbols, std::uint8_t* to) : codes_(codes), symbols_(symbols), out_{to} {}

    // While a block's bits, and what is written ahead of them, stay before the end; the rest by way of `last`.
    void write(std::int64_t count, const std::uint8_t* end) {
        constexpr std::int64_t room = kBlock * 4 + 8;
        std::int64_t i = 0;
        for (; i + kBlock <= count && end - out_.to >= room; i += kBlock) write_block(i, kBlock);
        std::uint8_t last[2 * room], *const to = out_.to;
        out_.to = last;
        while (i < count && out_.to - last < room) {
            const std::int64_t block = smaller<std::int64_t>(kBlock, count - i);
            write_block(i, block);
            i += block;
        }
        __builtin_memcpy(to, last, end - to);
    }

private:
    static constexpr std::int64_t kBlock = 8;

    void write_block(std::int64_t begin, std::int64_t count) {
        if (count == kBlock && (load_value<std::uint64_t>(symbols_ + begin) & kAllWithExtra) == 0) return;
        for (std::int64_t i = begin; i < begin + count; ++i) {
            const auto code = static_cast<std::int32_t>(static_cast<std::make_signed_t<Code>>(codes_[i]));
            const auto folded = static_cast<std::uint32_t>(code) << 1 ^ static_cast<std::uint32_t>(code >> 31);
            const unsigned length = kExtraBits.of[symbols_[i]];
            out_.put(folded & ((1u << length) - 1), length);
            out_.flush();
        }
    }

    const Code* codes_;
    const std::uint8_t* symbols_;
    BitWriter out_;
};

template <class Code>
void count_chunks(const HuffmanJob& job, std::int64_t begin, std::int64_t end, SymbolTable* counts) {
    Symbols<Code> symbols;
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
        const std::int64_t count = codes_in(job, chunk);
        const Code* codes = static_cast<const Code*>(job.codes) + (chunk << job.chunk_log);
        count_symbols(symbols.read(codes, count), count, counts[chunk].of);
    }
}

template <class Code>
void encode_chunks(const HuffmanJob& job, std::int64_t begin, std::int64_t end) {
    Symbols<Code> memory;
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
        const std::int64_t* at = job.offsets + chunk * job.sections;
        if (at[0] == at[job.sections]) continue;
        const std::int64_t count = codes_in(job, chunk);
        const Code* codes = static_cast<const Code*>(job.codes) + (chunk << job.chunk_log);
        const std::uint8_t* symbols = memory.read(codes, count);
        if (at[0] != at[1]) write_words(symbols, count, job.words[job.book_of[chunk]], job.stream + at[0]);
        if constexpr (sizeof(Code) > 1) {
            ExtraWriter<Code>(codes, symbols, job.stream + at[1]).write(count, job.stream + at[2]);
        }
    }
}

}  // namespace

void huffman_count(const HuffmanJob& job, std::int64_t begin, std::int64_t end, SymbolTable* counts) {
    switch (job.itemsize) {
        case 1: return count_chunks<std::uint8_t>(job, begin, end, counts);
        case 2: return count_chunks<std::uint16_t>(job, begin, end, counts);
        default: return count_chunks<std::uint32_t>(job, begin, end, counts);
    }
}

void huffman_cost(const SymbolTable* counts, std::int64_t begin, std::int64_t end, const SymbolTable& cost,
                  std::int32_t* sums) {
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
        std::int32_t sum = 0;
        std::int16_t impossible = 0;
        for (int symbol = 0; symbol < kSymbols; ++symbol) {
            sum += counts[chunk].of[symbol] * cost.of[symbol];
            impossible = static_cast<std::int16_t>(impossible | (counts[chunk].of[symbol] & cost.of[symbol] >> 15));
        }
        sums[chunk] = impossible != 0 ? kImpossible : sum;
    }
}

void huffman_encode(const HuffmanJob& job, std::int64_t begin, std::int64_t end) {
    switch (job.itemsize) {
        case 1: return encode_chunks<std::uint8_t>(job, begin, end);
        case 2: return encode_chunks<std::uint16_t>(job, begin, end);
        default: return encode_chunks<std::uint32_t>(job, begin, end);
    }
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
