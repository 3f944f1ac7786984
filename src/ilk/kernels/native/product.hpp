// Mixtures of products over columns: Gaussian numbers and categories, all independent given the component. Levels are
// looked up and counted; the components lie across the lanes, so a cell costs a few instructions for all of them.
#pragma once

#include "mixture.hpp"

namespace ilk {
namespace {

constexpr Index product_height = 2 * strip_rows;  // rows scored before their memberships are found

// Values (components, count) turned over: for each of `count` things the numbers of all components side by side, and
// room for one thing more, that starts with zeros.
class Turned {
public:
    Turned(const double* values, Index components, Index count)
        : width_(rounded_up(components, lanes<double>)), numbers_((count + 1) * width_) {
        for (Index component = 0; values && component < components; ++component)
            for (Index thing = 0; thing < count; ++thing)
                numbers_[thing * width_ + component] = values[component * count + thing];
    }

    double* operator[](Index thing) { return numbers_ + thing * width_; }
    const double* operator[](Index thing) const { return numbers_ + thing * width_; }

    void write(Index components, Index count, double* values) const {
        for (Index component = 0; component < components; ++component)
            for (Index thing = 0; thing < count; ++thing)
                values[component * count + thing] = numbers_[thing * width_ + component];
    }

private:
    Index width_;
    Scratch<double> numbers_;
};

// Where the cells of one row stand among all levels; one place beyond the last where a cell is missing or no level.
// False when every cell is.
ILK_INLINE bool find_places(const Levels& levels, const std::int32_t* codes, Index* places) {
    bool told = false;
    const Index beyond = levels.start[levels.columns];
    for (Index column = 0; column < levels.columns; ++column) {
        const Index begin = levels.start[column], code = codes[column];
        const bool seen = code >= 0 && code < levels.start[column + 1] - begin;
        places[column] = seen ? begin + code : beyond;
        told |= seen;
    }
    return told;
}

class ProductScores {
public:
    ProductScores(const Product& product, const Levels& levels, Index columns)
        : levels_(levels), columns_(columns), width_(rounded_up(product.count, lanes<double>)),
          log_mixing_(product.log_mixing, product.count, 1), mean_(product.mean, product.count, columns),
          precision_(product.precision, product.count, columns), log_norm_(product.log_norm, product.count, columns),
          log_level_(product.log_level, product.count, levels.start[levels.columns]) {}

    // False for a row without an observed number.
    template <class Number>
    bool score(const Number* cells, const Index* places, double* scores) const {
        bool told = false;
        for (Index first = 0; first < width_; first += lanes<double>) {
            Doubles sum = load<Doubles>(log_mixing_[0] + first);
            for (Index column = 0; column < columns_; ++column) {
                const double value = static_cast<double>(cells[column]);
                if (value != value) continue;
                told = true;
                const Doubles away = value - load<Doubles>(mean_[column] + first);
                sum += load<Doubles>(log_norm_[column] + first);
                sum = multiply_add(away * away, load<Doubles>(precision_[column] + first) * -0.5, sum);
            }
            for (Index column = 0; column < levels_.columns; ++column)
                sum += load<Doubles>(log_level_[places[column]] + first);
            store(scores + first, sum);
        }
        return told;
    }

private:
    const Levels& levels_;
    Index columns_, width_;
    Turned log_mixing_, mean_, precision_, log_norm_, log_level_;
};

class ProductTotals {
public:
    ProductTotals(const double* mean, Index components, const Levels& levels, Index columns)
        : levels_(levels), components_(components), columns_(columns), width_(rounded_up(components, lanes<double>)),
          mean_(mean, components, columns), weight_(nullptr, components, 1), observed_(nullptr, components, columns),
          first_(nullptr, components, columns), second_(nullptr, components, columns),
          counts_(nullptr, components, levels.start[levels.columns]) {}

    template <class Number>
    void add(const Number* cells, const Index* places, const double* membership) {
        for (Index first = 0; first < width_; first += lanes<double>) {
            const Doubles share = load<Doubles>(membership + first);
            const auto increase = [&](double* sum, Doubles by) ILK_LAMBDA {
                store(sum + first, load<Doubles>(sum + first) + by);
            };
            increase(weight_[0], share);
            for (Index column = 0; column < columns_; ++column) {
                const double value = static_cast<double>(cells[column]);
                if (value != value) continue;
                const Doubles away = value - load<Doubles>(mean_[column] + first), weighted = away * share;
                increase(observed_[column], share);
                increase(first_[column], weighted);
                increase(second_[column], weighted * away);
            }
            for (Index column = 0; column < levels_.columns; ++column) increase(counts_[places[column]], share);
        }
    }

    void write(ProductSums out) const {
        weight_.write(components_, 1, out.weight);
        observed_.write(components_, columns_, out.observed);
        first_.write(components_, columns_, out.first);
        second_.write(components_, columns_, out.second);
        counts_.write(components_, levels_.start[levels_.columns], out.counts);
    }

private:
    const Levels& levels_;
    Index components_, columns_, width_;
    Turned mean_, weight_, observed_, first_, second_, counts_;
};

// Call visit(first row, number of rows, encoded cells, width of a row of cells) strip by strip, two strips at a time.
template <class Number, class Visit>
ILK_INLINE void for_each_stretch(const Table<Number>& table, Visit visit) {
    const Encoder<Number> encoder(table);
    const Index width = encoder.width();
    Scratch<Number> cells(product_height * width + overhang);
    for (Index first = 0; first < table.rows; first += product_height) {
        const Index count = table.rows - first < product_height ? table.rows - first : product_height;
        for (Index done = 0; done < count && table.columns > 0; done += strip_rows)
            encoder.encode(first + done, count - done < strip_rows ? count - done : strip_rows, cells + done * width);
        visit(first, count, static_cast<const Number*>(cells), width);
    }
}

// [row][component] to [component][row], whole vectors at a time; impossible where a score is undefined.
inline void turn_scores(const double* scores, Index width, Index components, Memberships& memberships) {
    constexpr int count = lanes<double>;
    for (Index row = 0; row < product_height; row += count)
        for (Index first = 0; first < components; first += count) {
            Doubles vectors[count];
            for (int lane = 0; lane < count; ++lane) vectors[lane] = load<Doubles>(scores + (row + lane) * width + first);
            transpose<count / 2>(vectors);
            for (int lane = 0; lane < count; ++lane)
                if (first + lane < components)
                    store(memberships.of(first + lane) + row, larger(vectors[lane], everywhere<Doubles>(-infinity)));
        }
}

// Memberships, [row][component], from the roots of likelihoods and what to multiply them with.
inline void turn_memberships(Memberships& memberships, const double* scale, Index width, Index components,
                             double* membership) {
    constexpr int count = lanes<double>;
    for (Index row = 0; row < product_height; row += count)
        for (Index first = 0; first < components; first += count) {
            Doubles vectors[count] = {};
            for (int lane = 0; lane < count; ++lane)
                if (first + lane < components) {
                    const Doubles root = load<Doubles>(memberships.of(first + lane) + row);
                    vectors[lane] = root * root * load<Doubles>(scale + row);
                }
            transpose<count / 2>(vectors);
            for (int lane = 0; lane < count; ++lane) store(membership + (row + lane) * width + first, vectors[lane]);
        }
}

// Sum of membership * -log membership of one row, the logarithms from its scores and its cost.
ILK_INLINE Doubles entropy_of(const double* membership, const double* scores, double cost, Index width) {
    Doubles sum = {};
    for (Index first = 0; first < width; first += lanes<double>) {
        const Doubles share = load<Doubles>(membership + first);
        const Doubles surprise = -(load<Doubles>(scores + first) + cost);
        sum += share > 0.0 ? share * surprise : Doubles{};
    }
    return sum;
}

template <class Number>
void product_scores(const Table<Number>& table, Levels levels, Product product, double* scores) {
    const ProductScores densities(product, levels, table.columns);
    Scratch<double> own(rounded_up(product.count, lanes<double>));
    Scratch<Index> places(levels.columns);
    for_each_stretch(table, [&](Index first, Index count, const Number* cells, Index width) {
        for (Index row = 0; row < count; ++row) {
            find_places(levels, levels.codes + (first + row) * levels.columns, places);
            densities.score<Number>(cells + row * width, places, own);
            for (Index component = 0; component < product.count; ++component) {
                const double score = own[component];
                scores[(first + row) * product.count + component] = score > -infinity ? score : -infinity;
            }
        }
    });
}

template <class Number>
void product_step(const Table<Number>& table, Levels levels, const double* weight, Product product, bool hard,
                  Trim trim, ProductSums out) {
    const ProductScores densities(product, levels, table.columns);
    const Index across = rounded_up(product.count, lanes<double>);
    ProductTotals totals(product.mean, product.count, levels, table.columns);
    Memberships memberships(product.count, product_height, hard);
    Scratch<double> scores(product_height * across), membership(product_height * across);
    Scratch<double> counted(product_height), scale(product_height);
    Scratch<Index> places(product_height * levels.columns);
    Doubles cost = {}, entropy = {};
    if (trim.limit == infinity) trim.share_at_limit = 1.0;
    for_each_stretch(table, [&](Index first, Index count, const Number* cells, Index width) {
        for (Index row = 0; row < product_height; ++row) {
            counted[row] = 0.0;
            if (row >= count) continue;
            Index* own = places + row * levels.columns;
            const bool category = find_places(levels, levels.codes + (first + row) * levels.columns, own);
            const bool number = densities.score(cells + row * width, own, scores + row * across);
            if (category || number) counted[row] = weight ? weight[first + row] : 1.0;
        }
        turn_scores(scores, across, product.count, memberships);
        memberships.find(product_height);
        cost += memberships.weigh(product_height, trim, counted, scale);
        turn_memberships(memberships, scale, across, product.count, membership);
        for (Index row = 0; row < count; ++row) {
            const double* shares = membership + row * across;
            totals.add(cells + row * width, places + row * levels.columns, shares);
            entropy += entropy_of(shares, scores + row * across, memberships.costs()[row], across);
        }
    });
    totals.write(out);
    *out.cost = *out.entropy = 0.0;
    for (int lane = 0; lane < lanes<double>; ++lane) *out.cost += cost[lane], *out.entropy += entropy[lane];
}

template <class Number>
void product_sums(const Table<Number>& table, Levels levels, const double* membership, const double* mean,
                  Index components, ProductSums out) {
    ProductTotals totals(mean, components, levels, table.columns);
    Scratch<double> shares(rounded_up(components, lanes<double>));
    Scratch<Index> places(levels.columns);
    for_each_stretch(table, [&](Index first, Index count, const Number* cells, Index width) {
        for (Index row = 0; row < count; ++row) {
            const double* own = membership + (first + row) * components;
            std::memcpy(shares, own, static_cast<std::size_t>(components) * sizeof(double));
            find_places(levels, levels.codes + (first + row) * levels.columns, places);
            totals.add<Number>(cells + row * width, places, shares);
        }
    });
    totals.write(out);
}

}  // namespace
}  // namespace ilk
