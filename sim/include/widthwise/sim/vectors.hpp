// Vectors of space, and movement in it.
//
// Why bodies apart from their state: an integrator wants one row of numbers, a model wants places and
// velocities. `bodies` turns a rule for accelerations into a derivative over x, y, z of every body, then all
// velocities.
#pragma once

#include "widthwise/sim/math.hpp"
#include "widthwise/sim/second_order.hpp"

#include <array>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace widthwise::sim {

struct Vector {
    double x = 0.0;
    double y = 0.0;
    double z = 0.0;

    constexpr Vector &operator+=(Vector b) { return *this = {x + b.x, y + b.y, z + b.z}; }
    constexpr Vector &operator-=(Vector b) { return *this = {x - b.x, y - b.y, z - b.z}; }
    constexpr Vector &operator*=(double s) { return *this = {x * s, y * s, z * s}; }

    friend constexpr Vector operator+(Vector a, Vector b) { return a += b; }
    friend constexpr Vector operator-(Vector a, Vector b) { return a -= b; }
    friend constexpr Vector operator-(Vector a) { return {-a.x, -a.y, -a.z}; }
    friend constexpr Vector operator*(double s, Vector a) { return a *= s; }
    friend constexpr Vector operator*(Vector a, double s) { return a *= s; }
    friend constexpr Vector operator/(Vector a, double s) { return {a.x / s, a.y / s, a.z / s}; }
    friend constexpr bool operator==(Vector, Vector) = default;
};

constexpr double dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
constexpr Vector cross(Vector a, Vector b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
inline double length(Vector a) { return math::sqrt(dot(a, a)); }
/// Of length 1; a vector of length 0 stays as it is.
inline Vector unit(Vector a) {
    const double size = length(a);
    return size > 0.0 ? a / size : a;
}

/// The `i`th vector of a row of numbers.
inline Vector vector_at(std::span<const double> row, std::size_t i) {
    return {row[3 * i], row[3 * i + 1], row[3 * i + 2]};
}
inline void put_vector(std::span<double> row, std::size_t i, Vector v) {
    row[3 * i] = v.x;
    row[3 * i + 1] = v.y;
    row[3 * i + 2] = v.z;
}

/// Where a body is, and how fast.
struct Body {
    Vector place;
    Vector velocity;
};

/// The state of so many bodies: all places, then all velocities.
inline std::vector<double> state_of(std::span<const Body> bodies) {
    std::vector<double> state(6 * bodies.size());
    for (std::size_t i = 0; i < bodies.size(); ++i) {
        put_vector(state, i, bodies[i].place);
        put_vector(state, bodies.size() + i, bodies[i].velocity);
    }
    return state;
}
inline Body body_at(std::span<const double> state, std::size_t i) {
    return {vector_at(state, i), vector_at(state, state.size() / 6 + i)};
}

/// Writes the acceleration of every body.
using Pull = std::function<void(double t, std::span<const Body> bodies, std::span<Vector> acceleration)>;

/// The derivative of `count` bodies' state.
inline Derivative movement(std::size_t count, Pull pull) {
    return [pull = std::move(pull), bodies = std::vector<Body>(count), pulled = std::vector<Vector>(count)](
               double t, std::span<const double> y, std::span<double> rate) mutable {
        const std::size_t n = bodies.size();
        if (y.size() != 6 * n)
            throw BadRequest("the state of bodies needs three places and three velocities for each", {});
        for (std::size_t i = 0; i < n; ++i) {
            bodies[i] = body_at(y, i);
            put_vector(rate, i, bodies[i].velocity);
        }
        pull(t, bodies, pulled);
        for (std::size_t i = 0; i < n; ++i)
            put_vector(rate, n + i, pulled[i]);
    };
}

/// Newton's attraction between bodies with these products of mass and constant of gravitation.
inline Pull gravitation(std::vector<double> strength) {
    return [strength = std::move(strength)](double, std::span<const Body> bodies,
                                            std::span<Vector> acceleration) {
        for (Vector &a : acceleration)
            a = {};
        for (std::size_t i = 0; i < bodies.size(); ++i)
            for (std::size_t j = 0; j < i; ++j) {
                const Vector apart = bodies[j].place - bodies[i].place;
                const double square = dot(apart, apart);
                const double cube = square * math::sqrt(square);
                acceleration[i] += (strength[j] / cube) * apart;
                acceleration[j] -= (strength[i] / cube) * apart;
            }
    };
}

} // namespace widthwise::sim
