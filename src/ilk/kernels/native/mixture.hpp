// One EM step of a Gaussian mixture on one block of rows, tile by tile: nothing of size rows x components or
// rows x columns^2 is stored.
#pragma once

#include "mixture_sums.hpp"

namespace ilk {
namespace {

// Scores of a tile, [component][point], turned in place into likelihoods relative to the best component.
class Memberships {
public:
    Memberships(Index components, Index height, bool hard)
        : components_(components), height_(height), hard_(hard), likelihoods_(components * height), cost_(height),
          total_(height) {}

    double* of(Index component) { return likelihoods_ + component * height_; }
    const double* costs() const { return cost_; }

    // Scores become roots of likelihoods; a point impossible under every component costs infinity.
    void find(Index points) {
        for (Index point = 0; point < points; point += group_points) {
            if (hard_) choose(point);
            else share(point);
        }
    }

    // The highest cost of a point.
    double highest_cost(Index points) const {
        Doubles most = everywhere<Doubles>(-infinity);
        for (Index point = 0; point < points; point += lanes<double>) most = larger(load<Doubles>(cost_ + point), most);
        double cost = most[0];
        for (int lane = 1; lane < lanes<double>; ++lane) cost = cost > most[lane] ? cost : most[lane];
        return cost;
    }

    // The component of highest score of each point, the lowest number among equals, and that score; before `find`.
    void rank(Index points, Index* labels, double* top) {
        for (Index point = 0; point < points; point += lanes<double>) {
            Doubles best = everywhere<Doubles>(-infinity);
            Bits which = {};
            for (Index component = 0; component < components_; ++component) {
                const Doubles score = load<Doubles>(of(component) + point);
                which = score > best ? Bits{} + component : which;
                best = larger(score, best);
            }
            store(labels + point, which);
            store(top + point, best);
        }
    }

    // What to multiply likelihoods with to get memberships: weight / total, the weight trimmed. Returns the sum of
    // weight * cost, to be added up over its lanes.
    Doubles weigh(Index points, Trim trim, const double* weight, double* scale) const {
        Doubles sum = {};
        for (Index point = 0; point < points; point += lanes<double>) {
            const Doubles cost = load<Doubles>(cost_ + point), total = load<Doubles>(total_ + point);
            Doubles counted = load<Doubles>(weight + point);
            counted = cost == trim.limit ? counted * trim.share_at_limit : counted;
            counted = cost > trim.limit ? Doubles{} : counted;
            const Doubles share = counted / total;
            store(scale + point, total > 0.0 ? share : Doubles{});
            sum += counted > 0.0 ? counted * cost : Doubles{};
        }
        return sum;
    }

private:
    template <class Visit>
    ILK_INLINE void for_each_part(Index point, Visit visit) {
#pragma GCC unroll 3
        for (int part = 0; part < group_vectors; ++part) visit(part, point + part * lanes<double>);
    }

    void find_best(Index point, Doubles (&best)[group_vectors]) {
        for_each_part(point, [&](int part, Index) ILK_LAMBDA { best[part] = everywhere<Doubles>(-infinity); });
        for (Index component = 0; component < components_; ++component)
            for_each_part(point, [&](int part, Index place) ILK_LAMBDA {
                best[part] = larger(load<Doubles>(of(component) + place), best[part]);
            });
    }

    void share(Index point) {
        Doubles best[group_vectors], total[group_vectors] = {};
        find_best(point, best);
        for (Index component = 0; component < components_; ++component)
            for_each_part(point, [&](int part, Index place) ILK_LAMBDA {
                double* score = of(component) + place;
                const Doubles root = exponential((load<Doubles>(score) - best[part]) * 0.5);
                store(score, root);
                total[part] = multiply_add(root, root, total[part]);
            });
        for_each_part(point, [&](int part, Index place) ILK_LAMBDA {
            const Doubles cost = -(best[part] + logarithm(total[part]));
            store(cost_ + place, total[part] > 0.0 ? cost : everywhere<Doubles>(infinity));
            store(total_ + place, total[part]);
        });
    }

    // Ties go to the lowest number.
    void choose(Index point) {
        Doubles best[group_vectors];
        Bits open[group_vectors];
        find_best(point, best);
        for_each_part(point, [&](int part, Index place) ILK_LAMBDA {
            open[part] = best[part] == best[part];
            store(cost_ + place, -best[part]);
            store(total_ + place, everywhere<Doubles>(1.0));
        });
        for (Index component = 0; component < components_; ++component)
            for_each_part(point, [&](int part, Index place) ILK_LAMBDA {
                double* score = of(component) + place;
                const Bits chosen = open[part] & (load<Doubles>(score) == best[part]);
                store(score, chosen ? everywhere<Doubles>(1.0) : Doubles{});
                open[part] &= ~chosen;
            });
    }

    Index components_, height_;
    bool hard_;
    Scratch<double> likelihoods_, cost_, total_;
};

// Call visit(first row, number of rows, the encoded rows) with every tile of the table; of the rows only a strip is
// there unless they are kept.
template <class Number, class Visit>
ILK_INLINE void for_each_tile(const Table<Number>& table, const Encoder<Number>& encoder, Tile& tile, bool kept,
                              Visit visit) {
    Scratch<Number> rows((kept ? tile.height() : strip_rows) * encoder.width() + overhang);
    for (Index first = 0; first < table.rows; first += tile.height()) {
        const Index count = table.rows - first < tile.height() ? table.rows - first : tile.height();
        tile.fill<Number>(encoder, first, count, rows, kept ? strip_rows * encoder.width() : 0);
        visit(first, count, EncodedRows<Number>{rows, encoder.width()});
    }
}

// The same with every tile scored.
template <class Number, class Visit>
ILK_INLINE void for_each_scored_tile(const Table<Number>& table, const Components& components, Tile& tile, bool kept,
                                     Memberships& memberships, Visit visit) {
    const Encoder<Number> encoder(table);
    Densities densities(components, table.columns);
    for_each_tile(table, encoder, tile, kept, [&](Index first, Index count, const EncodedRows<Number>& rows) {
        densities.score(tile, memberships.of(0), encoder.ahead(first + tile.height(), tile.height()));
        visit(first, count, rows);
    });
}

template <class Number>
void mixture_step(const Table<Number>& table, const double* weight, Components components, bool hard, Trim trim,
                  MixtureStep out) {
    Tile tile(table.columns, components.diagonal);
    Memberships memberships(components.count, tile.height(), hard);
    MixtureSums sums(components, table.columns, table.rows, tile);
    Scratch<double> counted(tile.height()), scale(tile.height());
    Doubles cost = {};
    if (trim.limit == infinity) trim.share_at_limit = 1.0;
    const auto add = [&](Index first, Index count, const EncodedRows<Number>& rows) {
        for (Index point = 0; point < tile.points(); ++point)
            counted[point] = point >= count ? 0.0 : weight ? weight[first + point] : 1.0;
        memberships.find(tile.points());
        cost += memberships.weigh(tile.points(), trim, counted, scale);
        const double highest = memberships.highest_cost(tile.points());
        sums.begin(tile, scale);
        for (Index component = 0; component < components.count; ++component)
            sums.add(component, tile, rows, memberships.of(component), highest);
        sums.end(tile);
    };
    for_each_scored_tile(table, components, tile, sums.by_row(), memberships, add);
    sums.write(out);
    *out.cost = 0.0;
    for (int lane = 0; lane < lanes<double>; ++lane) *out.cost += cost[lane];
}

template <class Number>
void mixture_scores(const Table<Number>& table, Components components, double* scores) {
    Tile tile(table.columns, components.diagonal);
    Memberships memberships(components.count, tile.height(), false);
    for_each_scored_tile(table, components, tile, false, memberships, [&](Index first, Index count, auto) {
        for (Index component = 0; component < components.count; ++component) {
            const double* from = memberships.of(component);
            double* to = scores + first * components.count + component;
            for (Index point = 0; point < count; ++point) to[point * components.count] = from[point];
        }
    });
}

template <class Number>
void mixture_labels(const Table<Number>& table, Components components, bool hard, RowResults out) {
    Tile tile(table.columns, components.diagonal);
    Memberships memberships(components.count, tile.height(), hard);
    Scratch<Index> labels(tile.height());
    Scratch<double> top(tile.height());
    for_each_scored_tile(table, components, tile, false, memberships, [&](Index first, Index count, auto) {
        memberships.rank(tile.points(), labels, top);
        memberships.find(tile.points());
        for (Index point = 0; point < count; ++point) {
            out.labels[first + point] = static_cast<std::int32_t>(labels[point]);
            out.top[first + point] = top[point];
            out.cost[first + point] = memberships.costs()[point];
        }
    });
}

// The sums of mixture_step under given memberships or labels; of the components only the means count.
template <class Number>
void mixture_gather(const Table<Number>& table, const double* weight, Components components, Given given,
                    MixtureStep out) {
    Tile tile(table.columns, components.diagonal);
    MixtureSums sums(components, table.columns, table.rows, tile);
    Scratch<double> scale(tile.height()), column(tile.height());
    const Encoder<Number> encoder(table);
    for_each_tile(table, encoder, tile, sums.by_row(), [&](Index first, Index count, const EncodedRows<Number>& rows) {
        for (Index point = 0; point < tile.points(); ++point)
            scale[point] = point >= count ? 0.0 : weight ? weight[first + point] : 1.0;
        sums.begin(tile, scale);
        for (Index component = 0; component < components.count; ++component) {
            if (given.labels) {
                const std::int32_t *from = given.labels + first, own = static_cast<std::int32_t>(component);
                for (Index point = 0; point < count; ++point) column[point] = from[point] == own ? 1.0 : 0.0;
            } else if (!given.membership) {
                for (Index point = 0; point < count; ++point) column[point] = 1.0;
            } else {
                const double* from = given.membership + first * components.count + component;
                for (Index point = 0; point < count; ++point) column[point] = from[point * components.count];
                for (Index point = 0; point < tile.points(); point += lanes<double>)
                    store(column + point, square_root(load<Doubles>(column + point)));
            }
            sums.add(component, tile, rows, column, infinity);
        }
        sums.end(tile);
    });
    sums.write(out);
}

// Memberships and costs from scores (rows, components), those of mixture_step but for rounding.
inline void memberships(const double* scores, Index rows, Index components, bool hard, double* membership,
                        double* cost) {
    constexpr Index height = 2 * strip_rows;
    Memberships tile(components, height, hard);
    Scratch<double> weight(height), scale(height);
    for (Index first = 0; first < rows; first += height) {
        const Index count = rows - first < height ? rows - first : height;
        for (Index component = 0; component < components; ++component)
            for (Index point = 0; point < count; ++point) {
                const double score = scores[(first + point) * components + component];
                tile.of(component)[point] = score > -infinity ? score : -infinity;
            }
        tile.find(height);
        for (Index point = 0; point < count; ++point) weight[point] = 1.0;
        tile.weigh(height, {infinity, 1.0}, weight, scale);
        for (Index component = 0; component < components; ++component)
            for (Index point = 0; point < count; ++point) {
                const double root = tile.of(component)[point];
                membership[(first + point) * components + component] = root * root * scale[point];
            }
        std::memcpy(cost + first, tile.costs(), static_cast<std::size_t>(count) * sizeof(double));
    }
}

}  // namespace
}  // namespace ilk
