// Order conditions of every rooted tree, with what is exact held exactly.
//
// Why remainders: a condition of order 8 has numbers of some 200 bits. It is a fraction whose numerator is
// bounded; a bounded number that is divisible by enough primes is zero.
#include "check.hpp"

#include "widthwise/sim/tableaus.hpp"

#include <cmath>
#include <string>
#include <vector>

using namespace widthwise::sim;

namespace {

/// A rooted tree by its branches' numbers, smaller trees first.
struct Tree {
    std::vector<std::size_t> branches; // ascending
    int order;
    std::uint64_t density; // gamma: the condition is sum b_i Phi_i = 1 / density
};

/// All trees of up to `most` vertices: 1, 1, 2, 4, 9, 20, 48, 115 of each order (Butcher 1963).
std::vector<Tree> trees(int most) {
    std::vector<Tree> all = {{{}, 1, 1}};
    for (int order = 2; order <= most; ++order) {
        const std::size_t smaller = all.size();
        std::vector<Tree> found;
        const auto grow = [&](const auto &self, std::vector<std::size_t> &branches, std::size_t from,
                              int left, std::uint64_t density) -> void {
            if (left == 0) {
                found.push_back({branches, order, density * static_cast<std::uint64_t>(order)});
                return;
            }
            for (std::size_t i = from; i < smaller; ++i)
                if (all[i].order <= left) {
                    branches.push_back(i);
                    self(self, branches, i, left - all[i].order, density * all[i].density);
                    branches.pop_back();
                }
        };
        std::vector<std::size_t> branches;
        grow(grow, branches, 0, order - 1, 1);
        all.insert(all.end(), found.begin(), found.end());
    }
    return all;
}

/// Numbers modulo a prime below 2^31.
struct Residue {
    static inline std::uint64_t prime = 3;
    std::uint64_t value = 0;
    static Residue of(std::int64_t n) {
        const auto p = static_cast<std::int64_t>(prime);
        return {static_cast<std::uint64_t>((n % p + p) % p)};
    }
    friend Residue operator+(Residue x, Residue y) { return {(x.value + y.value) % prime}; }
    friend Residue operator*(Residue x, Residue y) { return {x.value * y.value % prime}; }
    static Residue inverse(Residue x) {
        Residue power = x;
        Residue result{1};
        for (std::uint64_t e = prime - 2; e != 0; e >>= 1) {
            if ((e & 1) != 0)
                result = result * power;
            power = power * power;
        }
        return result;
    }
    static Residue of(Ratio r) { return of(r.n) * inverse(of(r.d)); }
};

/// sum b_i Phi_i(tree) of every tree.
template <class Number>
std::vector<Number> weights(const std::vector<Tree> &all, const std::vector<Number> &a,
                            const std::vector<Number> &b, Number zero, Number one) {
    const std::size_t stages = b.size();
    std::vector<std::vector<Number>> grown; // by tree: sum_j a_ij Phi_j
    std::vector<Number> sums;
    for (const Tree &tree : all) {
        std::vector<Number> phi(stages, one);
        for (const std::size_t branch : tree.branches)
            for (std::size_t i = 0; i < stages; ++i)
                phi[i] = phi[i] * grown[branch][i];
        Number sum = zero;
        std::vector<Number> through(stages, zero);
        for (std::size_t i = 0; i < stages; ++i) {
            sum = sum + b[i] * phi[i];
            for (std::size_t j = 0; j < i; ++j)
                through[i] = through[i] + a[i * (i - 1) / 2 + j] * phi[j];
        }
        sums.push_back(sum);
        grown.push_back(through);
    }
    return sums;
}

bool is_prime(std::uint64_t n) {
    for (std::uint64_t d = 3; d * d <= n; d += 2)
        if (n % d == 0)
            return false;
    return true;
}

/// Primes just below 2^31, whose product has more bits than any condition's numerator: with D the least
/// common denominator of all coefficients (below 2^40 for each of the tableaus) a condition of order p is a
/// multiple of 1 / (D^p density), and below 2^120 in size.
std::vector<std::uint64_t> primes() {
    std::vector<std::uint64_t> found;
    for (std::uint64_t n = (1u << 31) - 1; found.size() < 20; n -= 2)
        if (is_prime(n))
            found.push_back(n);
    return found;
}

/// The highest order up to which all conditions hold exactly.
int exact_order(const Tableau &tableau, const Ratio *b) {
    const std::vector<Tree> all = trees(9);
    int order = 9;
    for (const std::uint64_t prime : primes()) {
        Residue::prime = prime;
        std::vector<Residue> a;
        std::vector<Residue> w;
        for (int i = 0; i < tableau.stages * (tableau.stages - 1) / 2; ++i)
            a.push_back(Residue::of(tableau.exact_a[i]));
        for (int i = 0; i < tableau.stages; ++i)
            w.push_back(Residue::of(b[i]));
        const auto sums = weights<Residue>(all, a, w, {0}, {1});
        for (std::size_t t = 0; t < all.size(); ++t)
            if ((sums[t] * Residue::of(static_cast<std::int64_t>(all[t].density))).value != 1)
                order = std::min(order, all[t].order - 1);
    }
    return order;
}

/// The greatest residual of the conditions of one order.
long double residual(const Tableau &tableau, const std::vector<long double> &b, int order) {
    const std::vector<Tree> all = trees(order);
    const std::vector<long double> a(tableau.a, tableau.a + tableau.stages * (tableau.stages - 1) / 2);
    const auto sums = weights<long double>(all, a, b, 0.0L, 1.0L);
    long double worst = 0.0L;
    for (std::size_t t = 0; t < all.size(); ++t)
        if (all[t].order == order)
            worst = std::max(worst, std::fabs(sums[t] - 1.0L / static_cast<long double>(all[t].density)));
    return worst;
}

} // namespace

TEST("there are as many rooted trees as Cayley counted") {
    std::vector<int> counts(9);
    for (const Tree &tree : trees(8))
        ++counts[static_cast<std::size_t>(tree.order)];
    CHECK(counts == (std::vector<int>{0, 1, 1, 2, 4, 9, 20, 48, 115}));
}

TEST("the denominators are small enough for the proof by remainders") {
    for (const Tableau &tableau : tableaus()) {
        if (tableau.exact_a == nullptr)
            continue;
        long double common = 1.0L;
        std::int64_t lcm = 1;
        const auto take = [&](Ratio r) {
            lcm = std::lcm(lcm, r.d);
            common = static_cast<long double>(lcm);
            CHECK(r.d > 0 && r.d < (std::int64_t{1} << 31));
        };
        for (int i = 0; i < tableau.stages * (tableau.stages - 1) / 2; ++i)
            take(tableau.exact_a[i]);
        for (int i = 0; i < tableau.stages; ++i) {
            take(tableau.exact_b[i]);
            take(tableau.exact_embedded[i]);
        }
        CHECK(common < 1.1e12L); // 2^40
    }
}

TEST("tableaus of fractions have exactly the order they claim, and so have their embedded formulas") {
    int exact = 0;
    for (const Tableau &tableau : tableaus()) {
        if (tableau.exact_a == nullptr)
            continue;
        ++exact;
        if (exact_order(tableau, tableau.exact_b) != tableau.order ||
            exact_order(tableau, tableau.exact_embedded) != tableau.embedded)
            check::fail(__FILE__, __LINE__,
                        std::string(tableau.name) + " has orders " +
                            std::to_string(exact_order(tableau, tableau.exact_b)) + " and " +
                            std::to_string(exact_order(tableau, tableau.exact_embedded)));
    }
    CHECK_EQUAL(exact, 5);
}

TEST("every tableau as used fulfils its conditions to the last digits, and fails those of the next order") {
    for (const Tableau &tableau : tableaus()) {
        const std::vector<long double> b(tableau.b, tableau.b + tableau.stages);
        std::vector<long double> embedded = b;
        for (std::size_t i = 0; i < embedded.size(); ++i)
            embedded[i] -= tableau.error[i];
        // Each coefficient is off by half a unit in its last place; large ones, which cancel, by more.
        long double largest = 100.0L;
        for (int i = 0, at = 0; i < tableau.stages; ++i) {
            long double row = 0.0L;
            for (int j = 0; j < i; ++j)
                row += std::fabs(static_cast<long double>(tableau.a[at++]));
            largest = std::max(largest, row);
        }
        const auto hold = [&](const std::vector<long double> &w, int claimed) {
            for (int order = 1; order <= claimed; ++order)
                if (!(residual(tableau, w, order) < 2e-15L * largest))
                    check::fail(__FILE__, __LINE__,
                                std::string(tableau.name) + " misses order " + std::to_string(order) +
                                    " by " + check::shown(residual(tableau, w, order)));
            CHECK(residual(tableau, w, claimed + 1) > 1e-9L);
        };
        hold(b, tableau.order);
        hold(embedded, tableau.embedded);
        if (tableau.first_same_as_last)
            for (int j = 0; j + 1 < tableau.stages; ++j)
                CHECK_EQUAL(tableau.a[(tableau.stages - 1) * (tableau.stages - 2) / 2 + j], tableau.b[j]);
    }
}
