// Corners of the greatest convex function below points whose x rises.
#pragma once

#include "interface.hpp"

namespace ilk {

// Fills `corners` with the numbers of the points it turns at; how many they are.
inline Index lower_hull(const double* x, const double* y, Index points, Index* corners) {
    const auto slope = [&](Index one, Index other) { return (y[other] - y[one]) / (x[other] - x[one]); };
    Index count = 0;
    for (Index point = 0; point < points; ++point) {
        while (count > 1 && slope(corners[count - 2], corners[count - 1]) >= slope(corners[count - 1], point)) --count;
        corners[count++] = point;
    }
    return count;
}

}  // namespace ilk
