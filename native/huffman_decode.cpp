// Words to symbols. Whatever the bytes say, nothing is read outside the stream, nor written outside the codes.
#include "huffman_symbols.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

constexpr int kLanesAtOnce = 6;  // more would wait for registers, fewer for each other
constexpr std::uint32_t kWindow = (1u << kMaxWordBits) - 1;

// Steps between two looks at memory, in each of which a lane may take kMaxWordBits.
constexpr int kSteps = 5;
constexpr int kMostSymbols = kSteps * kEntrySymbols, kMostBytes = 7;

// The highest bit marks where the bits end: how many were taken is the number of zeros above it.
constexpr std::uint64_t kMark = std::uint64_t{1} << 63;

inline unsigned taken(std::uint64_t bits) { return static_cast<unsigned>(__builtin_clzll(bits)); }

inline std::uint64_t load_bits(const std::uint8_t* from, unsigned skip) {
    return (load_value<std::uint64_t>(from) | kMark) >> skip;
}

// What an entry says of its symbols, see EntryTable.
inline unsigned numbers_of(std::uint64_t entry) { return static_cast<unsigned>(entry >> 48); }
inline unsigned bits_of(unsigned numbers) { return numbers & 63; }
inline unsigned symbols_of(unsigned numbers) { return numbers >> 8; }

// The bytes of the stream from somewhere on. A chunk may read into the next one: what it took is checked when
// it is done.
struct Stream {
    const std::uint8_t* start;
    const std::uint8_t* end;

    // At least 56 bits from this one on, with zeros for those beyond the end.
    std::uint64_t bits_at(std::int64_t bit) const {
        const std::uint8_t* from = start + (bit >> 3);
        if (end - from >= 8) return load_value<std::uint64_t>(from) >> (bit & 7);
        std::uint64_t bytes = 0;
        for (int k = 0; from + k < end; ++k) bytes |= static_cast<std::uint64_t>(from[k]) << 8 * k;
        return bytes >> (bit & 7);
    }

    // Whether so many bits fill the bytes from `start` to `section_end`, with zeros after the last.
    bool is_filled_by(std::int64_t bits, const std::uint8_t* section_end) const {
        if ((bits + 7) >> 3 != section_end - start) return false;
        return (bits & 7) == 0 || section_end[-1] >> (bits & 7) == 0;
    }
};

// One chunk's words on their way to symbols.
struct Lane {
    const EntryTable* table;
    Stream stream;
    const std::uint8_t* section_end;
    const std::uint8_t* from;
    unsigned skip;  // bits of *from that are taken already
    std::uint8_t* to;
    std::uint8_t* to_end;
    std::int64_t chunk;

    // How many rounds of kSteps may run without a look at the ends. Each reads 8 bytes behind what it took, and
    // writes 8 bytes where its last kEntrySymbols go.
    std::int64_t safe_rounds() const {
        const std::int64_t in = stream.end - from - 8, out = to_end - to - (8 - kEntrySymbols);
        return in < 0 || out < 0 ? 0 : smaller(in / kMostBytes, out / kMostSymbols);
    }

    // The rest, with a look at the ends each time. Whether the words end where their section does.
    bool finish() {
        std::int64_t bit = 8 * (from - stream.start) + skip;
        while (to_end - to >= 8) {
            const std::uint64_t entry = table->entries[stream.bits_at(bit) & kWindow];
            store_value(to, entry);
            bit += bits_of(numbers_of(entry));
            to += symbols_of(numbers_of(entry));
        }
        std::uint8_t last[16];
        std::int64_t found = 0;
        const std::int64_t wanted = to_end - to;
        while (found < wanted) {
            const std::uint64_t entry = table->entries[stream.bits_at(bit) & kWindow];
            store_value(last + found, entry);
            bit += bits_of(numbers_of(entry));
            found += symbols_of(numbers_of(entry));
        }
        while (found > wanted) bit -= table->book.lengths[last[--found]];
        __builtin_memcpy(to, last, wanted);
        return stream.is_filled_by(bit, section_end);
    }
};

// All lanes at once, a step each in turn: a step waits for the one before it in its lane, not for the others.
template <int lanes, bool one_table>
void run(Lane* lane) {
    const std::uint64_t* entries[lanes];
    const std::uint8_t* from[lanes];
    std::uint8_t* to[lanes];
    std::uint64_t bits[lanes];
    std::int64_t rounds = kMostChunk;
#pragma GCC unroll 8
    for (int k = 0; k < lanes; ++k) {
        entries[k] = lane[one_table ? 0 : k].table->entries;
        from[k] = lane[k].from;
        to[k] = lane[k].to;
        bits[k] = load_bits(from[k], lane[k].skip);
        rounds = smaller(rounds, lane[k].safe_rounds());
    }
    for (; rounds > 0; --rounds) {
#pragma GCC unroll 8
        for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 8
            for (int k = 0; k < lanes; ++k) {
                const std::uint64_t entry = entries[k][bits[k] & kWindow];
                store_value(to[k], entry);
                bits[k] >>= bits_of(numbers_of(entry));
                to[k] += symbols_of(numbers_of(entry));
            }
        }
#pragma GCC unroll 8
        for (int k = 0; k < lanes; ++k) {
            const unsigned count = taken(bits[k]);
            from[k] += count >> 3;
            bits[k] = load_bits(from[k], count & 7);
        }
    }
#pragma GCC unroll 8
    for (int k = 0; k < lanes; ++k) {
        lane[k].from = from[k];
        lane[k].to = to[k];
        lane[k].skip = taken(bits[k]);
    }
}

// Symbols to codes of 2 and 4 bytes.
template <class Code>
class Unfolder {
public:
    Unfolder(const std::uint8_t* symbols, Code* codes, const Stream& extra) : symbols_(symbols), codes_(codes), extra_(extra) {}

    // Whether the extra bits are as many as the symbols ask for.
    bool unfold_all(std::int64_t count, const std::uint8_t* section_end) {
        constexpr int lanes = kLanes<std::uint32_t>;
        std::int64_t i = 0;
        for (; i + kBlock <= count; i += kBlock) {
            bool any = false;
            for (int k = 0; k < kBlock; k += 8) any |= (load_value<std::uint64_t>(symbols_ + i + k) & kAllWithExtra) != 0;
            if (any) {
                unfold_block(i, kBlock);
                continue;
            }
            for (int k = 0; k < kBlock; k += lanes) {
                store_codes(codes_ + i + k, unfold(widen(load_vector<Bytes>(symbols_ + i + k))));
            }
        }
        unfold_block(i, count - i);
        return extra_.is_filled_by(bit_, section_end);
    }

private:
    static constexpr std::int64_t kBlock = 16;

    void unfold_block(std::int64_t begin, std::int64_t count) {
        const std::uint8_t* from = extra_.start + (bit_ >> 3);
        const bool near_end = extra_.end - from < kBlock * 4 + 8;
        for (std::int64_t i = begin; i < begin + count; ++i) {
            const std::uint64_t bits = near_end ? extra_.bits_at(bit_) : load_value<std::uint64_t>(extra_.start + (bit_ >> 3)) >> (bit_ & 7);
            const unsigned length = kExtraBits.of[symbols_[i]];
            const std::uint32_t folded = kFoldedBases.of[symbols_[i]] | (static_cast<std::uint32_t>(bits) & ((1u << length) - 1));
            codes_[i] = static_cast<Code>(folded >> 1 ^ (0 - (folded & 1)));
            bit_ += length;
        }
    }

    const std::uint8_t* symbols_;
    Code* codes_;
    Stream extra_;
    std::int64_t bit_ = 0;
};

// Where a chunk's symbols go: bytes are codes already, others wait in memory of the lane's own.
template <class Code>
class Codes {
public:
    explicit Codes(const HuffmanJob& job) : job_(job) {}

    std::uint8_t* room_for(std::int64_t, int slot) { return symbols_[slot]; }

    bool take(std::int64_t chunk, const std::uint8_t* symbols) {
        const std::int64_t* at = job_.offsets + 2 * chunk;
        const Stream extra{job_.stream + at[1], job_.stream + job_.offsets[2 * job_.chunks]};
        Code* codes = static_cast<Code*>(job_.codes) + (chunk << job_.chunk_log);
        return Unfolder<Code>(symbols, codes, extra).unfold_all(codes_in(job_, chunk), job_.stream + at[2]);
    }

private:
    const HuffmanJob& job_;
    std::uint8_t symbols_[kLanesAtOnce][kMostChunk];
};

template <>
class Codes<std::uint8_t> {
public:
    explicit Codes(const HuffmanJob& job) : job_(job) {}

    std::uint8_t* room_for(std::int64_t chunk, int) {
        return static_cast<std::uint8_t*>(job_.codes) + (chunk << job_.chunk_log);
    }

    bool take(std::int64_t, const std::uint8_t*) { return true; }

private:
    const HuffmanJob& job_;
};

// Keeps kLanesAtOnce chunks under way: where one ends, the next takes its place.
template <class Code>
class Decoder {
public:
    Decoder(const HuffmanJob& job, std::int64_t begin, std::int64_t end) : job_(job), codes_(job), begin_(begin), end_(end), next_(begin) {}

    bool run_all() {
        for (int slot = 0; slot < kLanesAtOnce; ++slot) begin_next(slot);
        while (ok_ && lanes_ > 0) {
            run_lanes();
            for (int i = lanes_ - 1; i >= 0 && ok_; --i) {
                if (lane_[i].safe_rounds() == 0) replace(i);
            }
        }
        return ok_;
    }

private:
    // Registers are short: one table for all is faster than one each.
    void run_lanes() {
        bool one_table = true;
        for (int i = 1; i < lanes_; ++i) one_table = one_table && lane_[i].table == lane_[0].table;
        switch (lanes_) {
            case 6: return one_table ? run<6, true>(lane_) : run<6, false>(lane_);
            case 5: return run<5, false>(lane_);
            case 4: return one_table ? run<4, true>(lane_) : run<4, false>(lane_);
            case 3: return run<3, false>(lane_);
            case 2: return run<2, false>(lane_);
            default: return run<1, false>(lane_);
        }
    }

    void replace(int i) {
        const Lane lane = lane_[i];
        const int slot = slot_[i];
        lane_[i] = lane_[--lanes_];
        slot_[i] = slot_[lanes_];
        end_lane(lane, slot);
        begin_next(slot);
    }

    void end_lane(Lane lane, int slot) {
        ok_ = ok_ && lane.finish() && codes_.take(lane.chunk, codes_.room_for(lane.chunk, slot));
    }

    // Chunks too short for a lane are done at once.
    void begin_next(int slot) {
        for (std::int64_t chunk = next_chunk(); ok_ && chunk < end_; chunk = next_chunk()) {
            const Lane lane = lane_of(chunk, slot);
            if (lane.from == lane.section_end) {
                __builtin_memset(lane.to, lane.table->first_symbol, lane.to_end - lane.to);
                ok_ = codes_.take(lane.chunk, lane.to);
            } else if (lane.safe_rounds() == 0) {
                end_lane(lane, slot);
            } else {
                lane_[lanes_] = lane;
                slot_[lanes_++] = slot;
                return;
            }
        }
    }

    // All chunks of one book, then those of the next.
    std::int64_t next_chunk() {
        for (; book_ < kMostBooks; ++book_, next_ = begin_) {
            while (next_ < end_ && job_.book_of[next_] != book_) ++next_;
            if (next_ < end_) return next_++;
        }
        return end_;
    }

    Lane lane_of(std::int64_t chunk, int slot) {
        const std::int64_t* at = job_.offsets + chunk * job_.sections;
        const std::uint8_t* start = job_.stream + at[0];
        std::uint8_t* to = codes_.room_for(chunk, slot);
        return {job_.entries + job_.book_of[chunk], {start, job_.stream + job_.offsets[job_.chunks * job_.sections]},
                job_.stream + at[1], start, 0, to, to + codes_in(job_, chunk), chunk};
    }

    const HuffmanJob& job_;
    Codes<Code> codes_;
    const std::int64_t begin_, end_;
    std::int64_t next_;
    int book_ = 0;
    Lane lane_[kLanesAtOnce];
    int slot_[kLanesAtOnce];
    int lanes_ = 0;
    bool ok_ = true;
};

}  // namespace

bool huffman_decode(const HuffmanJob& job, std::int64_t begin, std::int64_t end) {
    switch (job.itemsize) {
        case 1: return Decoder<std::uint8_t>(job, begin, end).run_all();
        case 2: return Decoder<std::uint16_t>(job, begin, end).run_all();
        default: return Decoder<std::uint32_t>(job, begin, end).run_all();
    }
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
