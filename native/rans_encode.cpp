// Codes to the words and extra bits of a stream's chunks.
#include "rans_encode_lanes.h"
#include "rans_symbols.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

// Neighbours are often equal, and an increment waits for the one before it: hence several tables.
template <class Symbol, int size>
class Counter {
public:
    void add(const Symbol* symbols, std::int64_t count) {
        std::int64_t i = 0;
        for (; i + kTables <= count; i += kTables) {
#pragma GCC unroll 8
            for (int k = 0; k < kTables; ++k) ++partial_[k][symbols[i + k]];
        }
        for (; i < count; ++i) ++partial_[0][symbols[i]];
    }

    void add_to(std::uint64_t* counts) const {
        for (int symbol = 0; symbol < size; ++symbol) {
            std::uint32_t sum = 0;
            for (int k = 0; k < kTables; ++k) sum += partial_[k][symbol];
            counts[symbol] += sum;
        }
    }

private:
    static constexpr int kTables = size > 256 ? 2 : 4;
    alignas(64) std::uint32_t partial_[kTables][size] = {};
};

std::int64_t codes_in(const RansJob& job, std::int64_t chunk) {
    return smaller(job.count - chunk * job.length, job.length);
}

template <class Code>
const Code* codes_of(const RansJob& job, std::int64_t chunk) {
    return static_cast<const Code*>(job.codes) + chunk * job.length;
}

template <class Code>
void count_chunks(const RansJob& job, std::int64_t begin, std::int64_t end, std::uint64_t* counts) {
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
        SymbolOf<Code> room[kSymbolRoom];
        Counter<SymbolOf<Code>, sizeof(Code) == 1 ? 256 : kRansSymbols> counter;
        const std::int64_t count = codes_in(job, chunk);
        for (std::int64_t i = 0; i < count; i += kRansBlock) {
            const std::int64_t block = smaller<std::int64_t>(kRansBlock, count - i);
            counter.add(to_symbols(codes_of<Code>(job, chunk) + i, block, kRansMostDirect, room), block);
        }
        counter.add_to(counts);
    }
}

// Bits into bytes, from the lowest on. Writes 8 bytes at a time.
struct BitWriter {
    std::uint8_t* to;
    std::uint64_t bits = 0;
    unsigned pending = 0;  // at most 7 after a flush

    void put(std::uint32_t value, unsigned length) {
        bits |= static_cast<std::uint64_t>(value) << pending;
        pending += length;
        store_value(to, bits);
        to += pending >> 3;
        bits >>= pending & 56;
        pending &= 7;
    }
};

template <class Code>
std::int64_t write_extra(const RansJob& job, const Code* codes, std::int64_t count, std::uint8_t* to) {
    std::uint16_t room[kSymbolRoom];
    const std::uint32_t least = 1u << job.direct;
    BitWriter out{to};
    for (std::int64_t i = 0; i < count; i += kRansBlock) {
        const std::int64_t block = smaller<std::int64_t>(kRansBlock, count - i);
        const std::uint16_t* symbols = to_symbols(codes + i, block, job.direct, room);
        for (std::int64_t k = 0; k < block; ++k) {
            if (symbols[k] < least) continue;
            const unsigned length = extra_bits_of(symbols[k], job.direct);
            out.put(fold_code(codes[i + k]) & ((1u << length) - 1), length);
        }
    }
    return out.to - to + (out.pending > 0);
}

// From the last block to the first; gives where the section begins that ends at `end`.
template <class Code>
std::uint8_t* write_section(const RansJob& job, const Code* codes, std::int64_t count, std::uint8_t* end) {
    SymbolOf<Code> room[kSymbolRoom];
    EncodeLanes lanes(job, end);
    for (std::int64_t i = (count - 1) / kRansBlock * kRansBlock; i >= 0; i -= kRansBlock) {
        const std::int64_t block = smaller<std::int64_t>(kRansBlock, count - i);
        lanes.write(to_symbols(codes + i, block, job.direct, room), block);
    }
    return lanes.finish();
}

template <class Code>
void encode_chunks(const RansJob& job, std::int64_t begin, std::int64_t end) {
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
        const Code* codes = codes_of<Code>(job, chunk);
        const std::int64_t count = codes_in(job, chunk);
        std::uint8_t* words_end = job.scratch + chunk * job.region + job.words_region;
        job.words_bytes[chunk] = words_end - write_section(job, codes, count, words_end);
        job.extra_bytes[chunk] = 0;
        if constexpr (sizeof(Code) > 1) {
            if (job.has_extra) job.extra_bytes[chunk] = write_extra(job, codes, count, words_end);
        }
    }
}

}  // namespace

void rans_count(const RansJob& job, std::int64_t begin, std::int64_t end, std::uint64_t* counts) {
    switch (job.itemsize) {
        case 1: return count_chunks<std::uint8_t>(job, begin, end, counts);
        case 2: return count_chunks<std::uint16_t>(job, begin, end, counts);
        default: return count_chunks<std::uint32_t>(job, begin, end, counts);
    }
}

void rans_encode(const RansJob& job, std::int64_t begin, std::int64_t end) {
    switch (job.itemsize) {
        case 1: return encode_chunks<std::uint8_t>(job, begin, end);
        case 2: return encode_chunks<std::uint16_t>(job, begin, end);
        default: return encode_chunks<std::uint32_t>(job, begin, end);
    }
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
