// A stream's chunks to codes.
#include "huffman_lanes.h"
#include "huffman_symbols.h"
#include "huffman_unfold.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

constexpr int kLanesAtOnce = 6;  // more would wait for registers, fewer for each other

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
    Decoder(const HuffmanJob& job, std::int64_t begin, std::int64_t end)
        : job_(job), codes_(job), begin_(begin), end_(end), next_(begin) {}

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
    void run_lanes() {
        switch (job_.window_bits) {
            case kLeastWindowBits: return run_with<kLeastWindowBits>();
            case kMaxWordBits: return run_with<kMaxWordBits>();
            default: return run_with<kMostWindowBits>();
        }
    }

    // Registers are short: one table for all is faster than one each.
    template <int window_bits>
    void run_with() {
        bool one_table = true;
        for (int i = 1; i < lanes_; ++i) one_table = one_table && lane_[i].table == lane_[0].table;
        switch (lanes_) {
            case 6: return one_table ? run<window_bits, 6, true>(lane_) : run<window_bits, 6, false>(lane_);
            case 5: return run<window_bits, 5, false>(lane_);
            case 4: return run<window_bits, 4, false>(lane_);
            case 3: return run<window_bits, 3, false>(lane_);
            case 2: return run<window_bits, 2, false>(lane_);
            default: return run<window_bits, 1, false>(lane_);
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
        const Stream stream{start, job_.stream + job_.offsets[job_.chunks * job_.sections]};
        return {job_.entries + job_.book_of[chunk], (1u << job_.window_bits) - 1, stream, job_.stream + at[1],
                start, 0, to, to + codes_in(job_, chunk), chunk};
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
