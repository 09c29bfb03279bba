// What a sample of codes tells of all of them: how often each symbol stands, how wide blocks are, which rows repeat.
#pragma once

#include <cstdint>

namespace laconic {

// Where the numbers of a survey are; ops/survey.py has the same.
constexpr int kSurveyWidths = 256, kSurveyHuffman = 289, kSurveyPairs = 290, kSurveyEqual = 291, kSurveyClasses = 292;
constexpr int kSurveyMostAlike = 32, kSurveySize = kSurveyClasses + kSurveyMostAlike;

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
