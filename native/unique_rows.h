// Codes as their different rows and an index, and back; docs/format.md says what is in the index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "repeats.h"

namespace laconic {

// What will be kept of rows, found out before there is room for it.
class UniqueRows {
public:
    // Where the rows were looked up, `given` says for each of them: those of the same number are taken as equal,
    // which is checked.
    UniqueRows(const Rows& rows, const std::int64_t* given, int threads);

    bool has_memory() const { return memory_; }

    // A row that differs from one that was looked up at the same place, and which one that is; or -1.
    std::int64_t lying() const { return lying_; }
    std::int64_t lying_before() const { return lying_ - back_[lying_]; }

    std::int64_t row_bytes() const { return rows_.bytes; }
    std::int64_t kept() const { return kept_; }
    std::int64_t index_size() const { return static_cast<std::int64_t>(index_size_); }

    void write(std::uint8_t* rows, std::uint8_t* index) const;

private:
    void find(const std::int64_t* given, int threads);
    void make_index();
    std::int64_t pack_index();
    std::int64_t encode_index();

    Rows rows_;
    bool memory_ = true;
    std::int64_t lying_ = -1, kept_;
    std::size_t index_size_ = 0;
    std::unique_ptr<std::int32_t[]> ids_, back_;
    std::unique_ptr<std::uint8_t[]> index_;
};

// `count` rows of those that were kept; false where the index is none for just so many of each.
bool read_unique_rows(const Rows& kept, const std::uint8_t* index, std::size_t size, std::int64_t count,
                      std::uint8_t* to, int threads);

}  // namespace laconic
