// Floats and codes <-> residuals <-> bit planes: the quantiser `bound`, the predictor `lorenzo` and the encoder
// `bitpack`, alone or one after another in a single pass over memory.
//
//   encode:  floats --quantise--> codes --predict--> residuals --zigzag, pack--> chunks of bytes
//            or codes                     (dims > 0)            or as they are
//   decode:  the same way back
//
// Work goes line by line. A line is a run of the last dimension: a whole row where rows foretell each other (dims 2
// and 3), otherwise a segment of a row that ends where prediction starts anew.
#pragma once

#include <cstddef>
#include <cstdint>

#include "elements.h"
#include "isa.h"

namespace laconic {

constexpr int kBlockCodes = 32;
constexpr int kChunkCodes = 4096;
constexpr int kSegment = 4096;      // restart of dims 1
constexpr int kSlabRows = 64;       // restart of dims 2
constexpr int kSlabPlanes = 16;     // restart of dims 3
constexpr int kSlack = 128;         // bytes that may be written or read past a scratch buffer's end

// The flat places of exceptions, in order.
struct Places {
    std::int64_t* data = nullptr;
    std::int64_t count = 0, capacity = 0;
    bool failed = false;  // memory ran out
};
void add_place(Places& places, std::int64_t place);

struct CodeJob {
    // Floats to or from; `floats` is null where codes are what comes in or goes out.
    const void* floats_in = nullptr;
    void* floats_out = nullptr;
    Dtype dtype = Dtype::float32;
    const void* steps = nullptr;   // in the arithmetic of the floats, one for each scope
    const void* bounds = nullptr;
    std::int64_t scope = 1;        // elements in a scope
    std::int32_t top_code = 0;

    const void* codes_in = nullptr;
    void* codes_out = nullptr;
    int code_bytes = 1;            // 1, 2 or 4
    bool zigzag = true;            // of codes that are packed: they are signed

    std::int64_t count = 0;        // elements in all
    std::int64_t width = 1, height = 1, depth = 1;  // the last dimensions, as far as `dims` predicts along them
    int dims = 0;

    // Packed chunks, by their offsets from `packed`; null where residuals are stored as they are.
    const std::uint8_t* packed_in = nullptr;
    std::uint8_t* packed_out = nullptr;
    const std::int64_t* offsets = nullptr;
};

// Scratch of one range: lines of codes, a plane of differences, a chunk, and as much to throw away.
struct Scratch {
    void* lines[2];
    void* plane;
    void* chunk;
    void* spare;
};

// The flat range [begin, end) of elements; `begin` is where a chunk begins. `sizes` gets the length of each chunk.
// Gives how many bytes were packed.
LACONIC_DECLARE_KERNEL(std::int64_t encode_codes(const CodeJob& job, std::int64_t begin, std::int64_t end,
                                                 const Scratch& scratch, std::uint32_t* sizes, std::uint8_t* out,
                                                 Places& exceptions))

// The same; `begin` is where prediction starts anew. False where the chunks are corrupt.
LACONIC_DECLARE_KERNEL(bool decode_codes(const CodeJob& job, std::int64_t begin, std::int64_t end,
                                         const Scratch& scratch))

// What Python calls. `encode_stream` gives the length of the stream (0 for codes), `decode_stream` whether it was sound.
std::int64_t encode_stream(CodeJob job, bool packed, std::uint8_t* stream, int threads, Places& exceptions);
bool decode_stream(CodeJob job, const std::uint8_t* stream, std::int64_t size, int threads);

}  // namespace laconic
