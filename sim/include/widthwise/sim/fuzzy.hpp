// Fuzzy sets, rules and controllers, after Mamdani.
//
// Why outputs are polygons and not samples: a set cut off at some height, and the greatest of several, are
// made of straight lines. Their centre of gravity is exact, and its cost does not depend on a resolution.
// References: Zadeh, Information and Control 8 (1965) 338-353; Mamdani and Assilian, International Journal of
// Man-Machine Studies 7 (1975) 1-13.
#pragma once

#include "widthwise/sim/errors.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace widthwise::sim::fuzzy {

/// A set with a name: how far x belongs to it, from 0 to 1, by straight lines through points whose xs do not
/// descend; level outside of them.
class Set {
  public:
    /// Throws BadRequest for points that go back, or a grade that is none.
    Set(std::string_view name, std::vector<std::pair<double, double>> points)
        : name_(name), points_(std::move(points)) {
        bool sound = !points_.empty();
        for (std::size_t i = 0; i < points_.size(); ++i)
            sound = sound && points_[i].second >= 0.0 && points_[i].second <= 1.0 &&
                    (i == 0 || points_[i - 1].first <= points_[i].first);
        if (!sound)
            throw BadRequest("the fuzzy set \"" + name_ + "\" needs grades from 0 to 1, from left to right",
                             {});
    }
    static Set triangle(std::string_view name, double left, double top, double right) {
        return {name, {{left, 0.0}, {top, 1.0}, {right, 0.0}}};
    }
    static Set trapezium(std::string_view name, double left, double top_left, double top_right,
                         double right) {
        return {name, {{left, 0.0}, {top_left, 1.0}, {top_right, 1.0}, {right, 0.0}}};
    }
    static Set rising(std::string_view name, double from, double to) {
        return {name, {{from, 0.0}, {to, 1.0}}};
    }
    static Set falling(std::string_view name, double from, double to) {
        return {name, {{from, 1.0}, {to, 0.0}}};
    }

    [[nodiscard]] const std::string &name() const noexcept { return name_; }
    [[nodiscard]] const std::vector<std::pair<double, double>> &points() const noexcept { return points_; }

    [[nodiscard]] double grade(double x) const {
        const auto after = std::upper_bound(points_.begin(), points_.end(), x,
                                            [](double v, const auto &point) { return v < point.first; });
        if (after == points_.begin())
            return points_.front().second;
        if (after == points_.end())
            return points_.back().second;
        const auto &[x0, y0] = *(after - 1);
        const auto &[x1, y1] = *after;
        return y0 + (y1 - y0) * ((x - x0) / (x1 - x0));
    }

  private:
    std::string name_;
    std::vector<std::pair<double, double>> points_;
};

/// How far something holds, from 0 to 1.
struct Grade {
    double value;
    friend Grade operator&&(Grade a, Grade b) { return {std::min(a.value, b.value)}; }
    friend Grade operator||(Grade a, Grade b) { return {std::max(a.value, b.value)}; }
    friend Grade operator!(Grade a) { return {1.0 - a.value}; }
};
/// "very": sharper; "more_or_less" is its inverse where that is wanted as a set of one's own.
inline Grade very(Grade a) { return {a.value * a.value}; }

/// A quantity that is spoken of by sets.
class Quantity {
  public:
    Quantity(std::string_view name, double low, double high, std::vector<Set> sets)
        : name_(name), low_(low), high_(high), sets_(std::move(sets)) {
        if (!(low < high) || sets_.empty())
            throw BadRequest("the fuzzy quantity \"" + name_ + "\" needs low < high and a set", {});
        put(0.0);
    }
    [[nodiscard]] double low() const noexcept { return low_; }
    [[nodiscard]] double high() const noexcept { return high_; }
    [[nodiscard]] std::size_t index(std::string_view set) const {
        for (std::size_t i = 0; i < sets_.size(); ++i)
            if (sets_[i].name() == set)
                return i;
        throw BadRequest("the fuzzy quantity \"" + name_ + "\" has no set \"" + std::string(set) + "\"", {});
    }
    [[nodiscard]] const Set &set(std::size_t i) const { return sets_[i]; }
    [[nodiscard]] std::size_t size() const noexcept { return sets_.size(); }
    /// How far its value belongs to a set. Values beyond the ends count as the ends, also that before the
    /// first put(), which is 0.
    [[nodiscard]] Grade is(std::string_view set) const { return {sets_[index(set)].grade(value_)}; }
    void put(double value) { value_ = std::clamp(value, low_, high_); }

  private:
    std::string name_;
    double low_;
    double high_;
    std::vector<Set> sets_;
    double value_ = 0.0;
};

enum class Defuzzification { centre_of_gravity, mean_of_maxima, weighted_tops };

/// A conclusion under way: each set of the output as high as the rules have made it.
class Conclusion {
  public:
    explicit Conclusion(const Quantity &output) : output_(&output), heights_(output.size()) {}

    /// A rule: "if `grade`, then the output is `set`". The greatest of several for one set counts.
    void then(Grade grade, std::string_view set) {
        double &height = heights_[output_->index(set)];
        height = std::max(height, grade.value);
    }

    /// How far x belongs to what was concluded: the greatest of the sets, each cut off at its height.
    [[nodiscard]] double grade(double x) const {
        double most = 0.0;
        for (std::size_t i = 0; i < heights_.size(); ++i)
            most = std::max(most, std::min(heights_[i], output_->set(i).grade(x)));
        return most;
    }

    /// One number. The middle of the quantity where nothing was concluded.
    [[nodiscard]] double value(Defuzzification how = Defuzzification::centre_of_gravity) const {
        const double low = output_->low();
        const double high = output_->high();
        double weight = 0.0;
        double moment = 0.0;
        if (how == Defuzzification::weighted_tops) {
            for (std::size_t i = 0; i < heights_.size(); ++i) {
                weight += heights_[i];
                moment += heights_[i] * top(output_->set(i));
            }
        } else {
            const std::vector<double> xs = corners();
            double most = 0.0;
            for (const double x : xs)
                most = std::max(most, grade(x));
            for (std::size_t i = 0; i + 1 < xs.size(); ++i) {
                const double a = xs[i];
                const double b = xs[i + 1];
                // Within a piece the grade is a straight line: two points define it, and jumps at its
                // ends do no harm.
                const double first = grade(a + 0.25 * (b - a));
                const double last = grade(a + 0.75 * (b - a));
                const double ga = first - 0.5 * (last - first);
                const double gb = last + 0.5 * (last - first);
                if (how == Defuzzification::centre_of_gravity) {
                    weight += (b - a) * (ga + gb) / 2.0;
                    moment += (b - a) * (a * (2.0 * ga + gb) + b * (ga + 2.0 * gb)) / 6.0;
                } else if (std::min(first, last) >= most - 1e-12) {
                    weight += b - a;
                    moment += (b - a) * (a + b) / 2.0;
                }
            }
            if (how == Defuzzification::mean_of_maxima && weight == 0.0 && most > 0.0)
                for (const double x : xs) // peaks only
                    if (grade(x) >= most - 1e-12) {
                        weight += 1.0;
                        moment += x;
                    }
        }
        return weight > 0.0 ? moment / weight : 0.5 * (low + high);
    }

  private:
    /// The middle of where a set is highest within the quantity's ends.
    [[nodiscard]] double top(const Set &set) const {
        const auto clamp = [&](double x) { return std::clamp(x, output_->low(), output_->high()); };
        double most = std::max(set.grade(output_->low()), set.grade(output_->high()));
        for (const auto &point : set.points())
            most = std::max(most, set.grade(clamp(point.first)));
        double first = output_->high();
        double last = output_->low();
        const auto take = [&](double x) {
            if (set.grade(x) >= most) {
                first = std::min(first, x);
                last = std::max(last, x);
            }
        };
        take(output_->low());
        take(output_->high());
        for (const auto &point : set.points())
            take(clamp(point.first));
        return 0.5 * (first + last);
    }

    /// Between which xs the grade is a straight line.
    [[nodiscard]] std::vector<double> corners() const {
        const double low = output_->low();
        const double high = output_->high();
        std::vector<double> xs = {low, high};
        const auto add = [&](double x) {
            if (x > low && x < high)
                xs.push_back(x);
        };
        struct WaitQueue {
            double x0, y0, x1, y1;
        };
        std::vector<WaitQueue> lines;
        for (std::size_t i = 0; i < heights_.size(); ++i) {
            const auto &points = output_->set(i).points();
            lines.push_back({low, heights_[i], high, heights_[i]});
            for (std::size_t k = 0; k < points.size(); ++k) {
                add(points[k].first);
                if (k > 0 && points[k].first > points[k - 1].first)
                    lines.push_back(
                        {points[k - 1].first, points[k - 1].second, points[k].first, points[k].second});
            }
        }
        for (std::size_t i = 0; i < lines.size(); ++i)
            for (std::size_t k = 0; k < i; ++k) {
                const double si = (lines[i].y1 - lines[i].y0) / (lines[i].x1 - lines[i].x0);
                const double sk = (lines[k].y1 - lines[k].y0) / (lines[k].x1 - lines[k].x0);
                if (si != sk)
                    add((lines[k].y0 - sk * lines[k].x0 - lines[i].y0 + si * lines[i].x0) / (si - sk));
            }
        std::sort(xs.begin(), xs.end());
        xs.erase(std::unique(xs.begin(), xs.end()), xs.end());
        return xs;
    }

    const Quantity *output_;
    std::vector<double> heights_;
};

} // namespace widthwise::sim::fuzzy
