#include "kalman_filter.hpp"

namespace reco {

std::optional<Crossing> advanced(Crossing crossing, const Layer &left, const Layer &next,
                                 const Conditions &conditions) {
    add_scattering(crossing.covariance, crossing.parameters, left);
    const Place middle = half_way(crossing.parameters, left.radius, next.radius);
    const double field = conditions.field(middle.radius, middle.z);
    const auto step = to_cylinder(crossing.parameters, left.radius, next.radius, field);
    if (!step) {
        return std::nullopt;
    }
    return Crossing{next.radius, step->parameters, carried(step->derivatives, crossing.covariance)};
}

Residual residual(const Crossing &crossing, const Hit &hit) {
    const Matrix &c = crossing.covariance;
    const double across = c[ACROSS][ACROSS] + hit.azimuth_variance, along = c[ALONG][ALONG] + hit.z_variance;
    const double both = c[ACROSS][ALONG], determinant = across * along - both * both;
    Residual r;
    r.difference = {normalised(hit.azimuth - crossing.parameters[ACROSS]),
                    hit.z - crossing.parameters[ALONG]};
    r.inverse = {{{along / determinant, -both / determinant}, {-both / determinant, across / determinant}}};
    r.chi2 = square(r.difference[0]) * r.inverse[0][0] + square(r.difference[1]) * r.inverse[1][1] +
             2 * r.difference[0] * r.difference[1] * r.inverse[0][1];
    return r;
}

Crossing updated(const Crossing &crossing, const Residual &residual) {
    Crossing after = crossing;
    const Matrix &c = crossing.covariance;
    for (std::size_t i = 0; i < PARAMETERS; i++) {
        const std::array<double, 2> gain = {
            c[i][ACROSS] * residual.inverse[0][0] + c[i][ALONG] * residual.inverse[1][0],
            c[i][ACROSS] * residual.inverse[0][1] + c[i][ALONG] * residual.inverse[1][1]};
        after.parameters[i] += gain[0] * residual.difference[0] + gain[1] * residual.difference[1];
        for (std::size_t j = 0; j <= i; j++) {
            after.covariance[i][j] -= gain[0] * c[ACROSS][j] + gain[1] * c[ALONG][j];
            after.covariance[j][i] = after.covariance[i][j];
        }
    }
    return after;
}

} // namespace reco
