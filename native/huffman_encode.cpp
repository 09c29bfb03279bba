// Codes to a stream's chunks.
#include "huffman_bits.h"
#include "huffman_symbols.h"
#include "huffman_words.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

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

// In sums of 32 bits, which are faster, of so many chunks that they suffice.
void huffman_sum(const SymbolTable* counts, const std::int64_t* chunks, std::int64_t size, std::int64_t* sums) {
    constexpr std::int64_t at_once = 0x7fffffff / kMostChunk;
    for (std::int64_t begin = 0; begin < size; begin += at_once) {
        std::int32_t partial[kSymbols] = {};
        for (std::int64_t i = begin; i < smaller(size, begin + at_once); ++i) {
            const SymbolTable& chunk = counts[chunks[i]];
            for (int symbol = 0; symbol < kSymbols; ++symbol) partial[symbol] += chunk.of[symbol];
        }
        for (int symbol = 0; symbol < kSymbols; ++symbol) sums[symbol] += partial[symbol];
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
