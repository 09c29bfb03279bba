// What a sample of codes tells of all of them: how often each symbol stands, how wide blocks are, which rows repeat.
#pragma once

#include <cstdint>

namespace laconic {

// What a survey finds, in this order; ops/survey.py says more.
enum SurveyNumber {
    kCodes, kKinds, kSquares, kEntropy, kHuffman, kExtra, kBlocks, kPlanes, kWords, kSeenWords,
    kRows, kRowPairs, kEqualRows, kAlikeRows, kRowKinds
};
constexpr int kMostAlike = 32, kSurveySize = kRowKinds + kMostAlike;

struct SurveyJob {
    const void* codes;
    std::int64_t count;
    int itemsize;
    bool zigzag;               // as `bitpack` has them: signed
    std::int64_t row;          // codes in a row; 0: there are none
    std::int64_t most_blocks;  // of 32 codes
    std::int64_t most_rows;
};

// Fills `found`, of kSurveySize; false without memory.
bool survey(const SurveyJob& job, std::int64_t* found);

}  // namespace laconic
