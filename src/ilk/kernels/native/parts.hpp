// A whole table given to a kernel: its blocks shared among threads, their results folded in order, the user heard.
#pragma once

#include <algorithm>
#include <chrono>

#include "arrays.hpp"
#include "crew.hpp"

namespace ilk::face {

// Whether to go on: looks now and then whether the user has asked for an end, which is then the error that is set.
class Patience {
public:
    bool holds() {  // without the interpreter lock
        const auto now = std::chrono::steady_clock::now();
        if (now < next_) return holds_;
        next_ = now + interval;
        const nb::gil_scoped_acquire acquired;
        return holds_ = holds_ && PyErr_CheckSignals() == 0;
    }
    void check() const {  // with it
        if (!holds_) throw nb::python_error();
    }

private:
    static constexpr std::chrono::milliseconds interval{100};
    std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + interval;
    bool holds_ = true;
};

// A table is cut into parts of so many rows, shared among threads.
struct Parts {
    Index rows, threads;

    Parts(Index part_rows, Index n_threads) : rows(part_rows), threads(n_threads) {
        require(rows > 0 && threads > 0, "parts of at least one row, and one thread at least, are needed");
    }
    Index count(Index table_rows) const { return std::max<Index>(1, (table_rows + rows - 1) / rows); }
    Index slots(Index table_rows) const { return threads == 1 ? 1 : std::min(count(table_rows), 4 * threads); }
};

// Call work(table of a part, number of its first row, slot) for all parts, and fold(part, slot) in their order.
template <class Number, class Work, class Fold>
void share_parts(const Table<Number>& table, Parts parts, Work work, Fold fold) {
    Patience patience;
    {
        const nb::gil_scoped_release released;
        const auto work_on = [&](Index part, Index slot) {
            auto block = table;
            const Index first = part * parts.rows;
            block.raw += first * table.row_step;
            block.rows = std::min(parts.rows, table.rows - first);
            work(block, first, slot);
        };
        const Index count = parts.count(table.rows);
        Job job(count, parts.slots(table.rows), work_on, fold);
        Crew::here().share(job, std::min(parts.threads, count), [&] { return patience.holds(); });
    }
    patience.check();
}

}  // namespace ilk::face
