// A stream's chunks to codes.
#include "rans_decode_lanes.h"
#include "rans_symbols.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

// The extra bits of a chunk, with zeros for those beyond the end.
class ExtraReader {
public:
    ExtraReader(const std::uint8_t* begin, const std::uint8_t* end) : begin_(begin), end_(end) {}

    // Whether 8 bytes are ahead.
    bool has_many() const { return (end_ - begin_) - (at_ >> 3) >= 8; }

    std::uint32_t take_of_many(unsigned length) {
        const auto bits = load_value<std::uint64_t>(begin_ + (at_ >> 3)) >> (at_ & 7);
        at_ += length;
        return static_cast<std::uint32_t>(bits) & ((1u << length) - 1);
    }

    // At most 30 bits.
    std::uint32_t take(unsigned length) {
        const std::uint8_t* from = begin_ + (at_ >> 3);
        std::uint64_t bytes = 0;
        if (end_ - from >= 8) {
            bytes = load_value<std::uint64_t>(from);
        } else {
            for (int k = 0; from + k < end_; ++k) bytes |= static_cast<std::uint64_t>(from[k]) << 8 * k;
        }
        const auto value = static_cast<std::uint32_t>(bytes >> (at_ & 7)) & ((1u << length) - 1);
        at_ = from < end_ ? at_ + length : kBeyond;
        return value;
    }

    // Whether what was taken fills the bytes, with zeros after the last bit.
    bool is_done() const {
        if ((at_ + 7) >> 3 != end_ - begin_) return false;
        return (at_ & 7) == 0 || end_[-1] >> (at_ & 7) == 0;
    }

private:
    static constexpr std::int64_t kBeyond = std::int64_t{1} << 60;
    const std::uint8_t* const begin_;
    const std::uint8_t* const end_;
    std::int64_t at_ = 0;
};

template <class Code>
void unfold_direct(const std::uint16_t* symbols, std::int64_t count, Code* codes) {
    constexpr int lanes = kLanes<std::uint32_t>;
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) store_codes(codes + i, unfold(widen(load_vector<Halves>(symbols + i))));
    for (; i < count; ++i) codes[i] = unfold_code<Code>(symbols[i]);
}

template <class Code>
void unfold_all(const std::uint16_t* symbols, std::int64_t count, int direct, ExtraReader& extra, Code* codes) {
    const std::uint32_t least = 1u << direct;
    std::int64_t i = 0;
    for (; i < count && extra.has_many(); ++i) {
        const std::uint32_t symbol = symbols[i];
        const bool is_direct = symbol < least;
        const unsigned length = is_direct ? 0 : extra_bits_of(symbol, direct);
        const std::uint32_t high = is_direct ? symbol : (4 + (symbol & 3)) << length;
        codes[i] = unfold_code<Code>(high | extra.take_of_many(length));
    }
    for (; i < count; ++i) {
        std::uint32_t folded = symbols[i];
        if (folded >= least) {
            const unsigned length = extra_bits_of(folded, direct);
            folded = (4 + (folded & 3)) << length | extra.take(length);
        }
        codes[i] = unfold_code<Code>(folded);
    }
}

template <class Code>
bool decode_chunk(const RansJob& job, const std::int64_t* at, Code* codes, std::int64_t count) {
    DecodeLanes lanes(job, job.stream + at[0], job.stream + at[1]);
    if (!lanes.read_states()) return false;
    if constexpr (sizeof(Code) == 1) {
        lanes.read(codes, count);
        return lanes.is_done();
    } else {
        std::uint16_t symbols[kSymbolRoom];
        ExtraReader extra(job.stream + at[1], job.stream + at[2]);
        for (std::int64_t i = 0; i < count; i += kRansBlock) {
            const std::int64_t block = smaller<std::int64_t>(kRansBlock, count - i);
            lanes.read(symbols, block);
            if (job.has_extra) {
                unfold_all(symbols, block, job.direct, extra, codes + i);
            } else {
                unfold_direct(symbols, block, codes + i);
            }
        }
        return lanes.is_done() && extra.is_done();
    }
}

template <class Code>
bool decode_chunks(const RansJob& job, std::int64_t begin, std::int64_t end) {
    bool sound = true;
    for (std::int64_t chunk = begin; sound && chunk < end; ++chunk) {
        Code* codes = static_cast<Code*>(job.codes) + chunk * job.length;
        sound = decode_chunk(job, job.offsets + 2 * chunk, codes, smaller(job.count - chunk * job.length, job.length));
    }
    return sound;
}

}  // namespace

bool rans_decode(const RansJob& job, std::int64_t begin, std::int64_t end) {
    switch (job.itemsize) {
        case 1: return decode_chunks<std::uint8_t>(job, begin, end);
        case 2: return decode_chunks<std::uint16_t>(job, begin, end);
        default: return decode_chunks<std::uint32_t>(job, begin, end);
    }
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
