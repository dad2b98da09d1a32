#include "helix.hpp"

#include <cmath>

#include "elementary.hpp"

namespace reco {

namespace {

// Seen from the track. The vector from the beam has the component a along the direction and -b to its left,
// with a = r cos(alpha) and b = r sin(alpha), where alpha is the angle between direction and radius. Along a
// circle
//
//     b - curvature r^2 / 2 = constant                        (1)
//
// since db/ds = curvature r cos(alpha) and dr/ds = cos(alpha). So b at another radius is known at once.
struct Seen {
    double a, b;
};

Seen seen(const Vector &from, double radius) {
    const double alpha = from[DIRECTION] - from[ACROSS];
    return {radius * cosine(alpha), radius * sine(alpha)};
}

// An arc from one point to another.
struct Arc {
    double length;
    double turn;         // curvature * length
    double sine, cosine; // of the turn
    double along, aside; // the second point, seen from the first: sin(turn)/curvature, (1 - cos)/curvature
    double along_change, aside_change; // their derivatives by the curvature at constant length
};

// Of the arc, `along` is known.
Arc arc_of(double along, double curvature) {
    Arc arc;
    arc.along = along;
    arc.sine = curvature * along;
    arc.cosine = std::sqrt(1 - square(arc.sine));
    arc.aside = arc.sine * along / (1 + arc.cosine);
    arc.length = along * arcsine_ratio(arc.sine);
    const double x = arc.turn = curvature * arc.length, y = x * x, length2 = square(arc.length);
    // (x cos x - sin x) / x^2 and (x sin x + cos x - 1) / x^2 as series: both cancel where the turn is small,
    // and it is below half a radian in every step of this detector.
    arc.along_change = length2 * x * (-1 / 3.0 + y * (1 / 30.0 + y * (-1 / 840.0 + y / 45360.0)));
    arc.aside_change = length2 * (1 / 2.0 + y * (-1 / 8.0 + y * (1 / 144.0 - y / 5760.0)));
    return arc;
}

// Fills in what follows from the derivatives of `across` (azimuth or d0) and of the length of the arc by
// alpha and by the curvature of this step.
struct Derivative {
    double by_alpha, by_curvature;
};

Step finished(const Vector &from, const Arc &arc, double curvature, double field, Derivative length) {
    Step step{from, {}};
    step.parameters[ALONG] += from[SLOPE] * arc.length;
    step.parameters[DIRECTION] += arc.turn;

    Matrix &d = step.derivatives;
    d[ALONG][ACROSS] = -from[SLOPE] * length.by_alpha;
    d[ALONG][ALONG] = 1;
    d[ALONG][DIRECTION] = from[SLOPE] * length.by_alpha;
    d[ALONG][SLOPE] = arc.length;
    d[ALONG][CURVATURE] = from[SLOPE] * length.by_curvature * field;
    d[DIRECTION][ACROSS] = -curvature * length.by_alpha;
    d[DIRECTION][DIRECTION] = 1 + curvature * length.by_alpha;
    d[DIRECTION][CURVATURE] = (arc.length + curvature * length.by_curvature) * field;
    d[SLOPE][SLOPE] = 1;
    d[CURVATURE][CURVATURE] = 1;
    return step;
}

} // namespace

std::optional<Step> to_cylinder(const Vector &from, double radius, double target, double field) {
    const double curvature = from[CURVATURE] * field;
    const auto [a1, b1] = seen(from, radius);
    const double constant = b1 - curvature * square(radius) / 2;
    const double b2 = constant + curvature * square(target) / 2; // (1)
    if (std::fabs(b2) > 0.95 * target) {
        return std::nullopt; // it turns back, or comes in so flat that nothing is known well
    }
    const double a2 = std::sqrt(square(target) - square(b2));
    // The circle's centre, seen from the track, turns with it: from (curvature a1, 1 - curvature b1) to that
    // of 2.
    const double along =
        (a2 * (1 - curvature * b1) - a1 * (1 - curvature * b2)) / (1 - 2 * curvature * constant);
    if (std::fabs(curvature * along) > 0.5) {
        return std::nullopt;
    }
    const Arc arc = arc_of(along, curvature);

    // From r^2 = (a1 + along)^2 + (aside - b1)^2 at constant r.
    const Derivative length = {
        (arc.along * b1 + arc.aside * a1) / a2,
        -((a1 + arc.along) * arc.along_change + (arc.aside - b1) * arc.aside_change) / a2,
    };
    const Derivative alpha = {a1 / a2, (square(target) - square(radius)) / (2 * a2)};
    Step step = finished(from, arc, curvature, field, length);
    step.parameters[ACROSS] = step.parameters[DIRECTION] - arctangent(b2, a2);
    Vector &across = step.derivatives[ACROSS];
    across = step.derivatives[DIRECTION];
    across[ACROSS] += alpha.by_alpha;
    across[DIRECTION] -= alpha.by_alpha;
    across[CURVATURE] -= alpha.by_curvature * field;
    return step;
}

Step to_perigee(const Vector &from, double radius, double field) {
    const double curvature = from[CURVATURE] * field;
    const auto [a1, b1] = seen(from, radius);
    const double constant = b1 - curvature * square(radius) / 2;
    // There, a is 0 and b is d0, and (1) is a quadratic equation for it.
    const double root = std::sqrt(1 - 2 * curvature * constant); // = 1 - curvature d0
    const double d0 = 2 * constant / (1 + root);
    const Arc arc = arc_of(-a1 / root, curvature);

    // From a = 0 there, and da/ds = 1 - curvature b.
    const Derivative length = {
        (b1 * arc.cosine + a1 * arc.sine) / root,
        -(arc.along_change * arc.cosine + arc.aside_change * arc.sine - d0 * arc.length) / root,
    };
    Step step = finished(from, arc, curvature, field, length);
    step.parameters[ACROSS] = d0;
    step.derivatives[ACROSS] = {-a1 / root, 0, a1 / root, 0,
                                (square(d0) - square(radius)) / (2 * root) * field};
    return step;
}

Vector from_perigee(const Vector &perigee) {
    Vector point = perigee;
    point[ACROSS] = perigee[DIRECTION] - (perigee[ACROSS] < 0 ? -PI / 2 : PI / 2);
    return point;
}

Place half_way(const Vector &from, double radius, double target) {
    return {(radius + target) / 2, from[ALONG] + from[SLOPE] * (target - radius) / 2};
}

double scattering_angle(const Vector &crossing, const Layer &layer) {
    const double stretch = std::sqrt(1 + square(crossing[SLOPE])); // 1 / sin(theta)
    const double path = layer.thickness * stretch / cosine(crossing[DIRECTION] - crossing[ACROSS]);
    const double momentum = BEND / std::fabs(crossing[CURVATURE]) * stretch;
    return 0.0136 / momentum * std::sqrt(path) * (1 + 0.038 * logarithm(path));
}

// With theta turned by d: cot(theta) changes by -d / sin^2(theta), and the transverse momentum is p
// sin(theta).
Vector scattered(const Vector &crossing, double around, double against) {
    const double stretch2 = 1 + square(crossing[SLOPE]);
    Vector after = crossing;
    after[DIRECTION] += around * std::sqrt(stretch2);
    after[SLOPE] += against * stretch2;
    after[CURVATURE] *= std::sqrt((1 + square(after[SLOPE])) / stretch2);
    return after;
}

void add_scattering(Matrix &covariance, const Vector &crossing, const Layer &layer) {
    const double variance = square(scattering_angle(crossing, layer));
    const double slope = 1 + square(crossing[SLOPE]), curvature = crossing[CURVATURE] * crossing[SLOPE];
    covariance[DIRECTION][DIRECTION] += variance * slope;
    covariance[SLOPE][SLOPE] += variance * square(slope);
    covariance[SLOPE][CURVATURE] += variance * slope * curvature;
    covariance[CURVATURE][SLOPE] += variance * slope * curvature;
    covariance[CURVATURE][CURVATURE] += variance * square(curvature);
}

Matrix carried(const Matrix &derivatives, const Matrix &covariance) {
    Matrix half{}, whole{};
    for (int i = 0; i < PARAMETERS; i++) {
        for (int j = 0; j < PARAMETERS; j++) {
            for (int k = 0; k < PARAMETERS; k++) {
                half[i][j] += derivatives[i][k] * covariance[k][j];
            }
        }
    }
    for (int i = 0; i < PARAMETERS; i++) {
        for (int j = 0; j <= i; j++) {
            for (int k = 0; k < PARAMETERS; k++) {
                whole[i][j] += half[i][k] * derivatives[j][k];
            }
            whole[j][i] = whole[i][j];
        }
    }
    return whole;
}

} // namespace reco
