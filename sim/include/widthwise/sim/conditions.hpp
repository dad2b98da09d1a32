// Waiting for several things: any_of and all_of.
//
//     const auto which = co_await any_of(till.seize(), wait(5.0)); // 0: it has the till; 1: its patience
//     ended
//
// Members begin in the order given. any_of continues with the first member that is granted, and withdraws the
// others; all_of continues when the last is granted. An interrupted wait undoes the grants.
// Invariants: a member's `group` is set before it begins, so that a grant is never missed; a group
// schedules its process once.
#pragma once

#include "widthwise/sim/process.hpp"

#include <array>
#include <tuple>

namespace widthwise::sim {

/// What a member reports its grant to.
class Group {
  public:
    void member_granted(Waiter &member) { settle(*this, member); }

  protected:
    void (*settle)(Group &, Waiter &) = nullptr;
};

/// A wait for time as a member of a group.
class Timer : public Awaitable<Timer> {
  public:
    explicit Timer(double delay) : delay_(delay) {}
    bool begin(ProcessState &owner);
    void result() const noexcept {}

  private:
    double delay_;
    TimerNode node_;
};

namespace detail {

inline Timer member(Wait wait) { return Timer(wait.delay()); }
template <Waitable Operation> Operation member(Operation operation) { return operation; }

template <class Self, class... Members> class Several : public Awaitable<Self>, public Group {
  public:
    explicit Several(Members... members) : members_(std::move(members)...) {}

    void undo() {
        std::apply([](auto &...each) { (undo_one(each), ...); }, members_);
    }

  protected:
    template <class Begun> void begin_all(ProcessState &owner, Begun begun) {
        this->withdraw = [](Waiter &self) { static_cast<Several &>(self).withdraw_all(); };
        std::size_t index = 0;
        bool go_on = true;
        const auto one = [&](auto &each) {
            if (!go_on)
                return;
            each.belong_to(owner);
            each.group = this;
            pending_[index] = &each;
            bool at_once = false;
            try {
                at_once = each.begin(owner);
            } catch (...) { // those before it have begun
                pending_[index] = nullptr;
                withdraw_pending();
                undo();
                throw;
            }
            if (at_once) {
                each.granted = true;
                pending_[index] = nullptr;
                go_on = begun(index);
            } else if (each.granted) { // granted from within its own begin
                go_on = begun(index);
            }
            ++index;
        };
        std::apply([&](auto &...each) { (one(each), ...); }, members_);
    }

    /// Marks a member as granted; its number.
    std::size_t take(Waiter &member) noexcept {
        std::size_t index = 0;
        while (pending_[index] != &member)
            ++index;
        pending_[index] = nullptr;
        return index;
    }

    /// From here on the process releases what was granted.
    void keep() noexcept {
        std::apply([](auto &...each) { ((each.granted = false), ...); }, members_);
    }

    void withdraw_pending() {
        for (Waiter *&waiter : pending_)
            if (Waiter *each = std::exchange(waiter, nullptr))
                each->withdraw(*each);
    }

  private:
    template <class Member> static void undo_one(Member &each) {
        if constexpr (requires { each.undo(); })
            if (each.granted)
                each.undo();
        each.granted = false;
    }
    void withdraw_all() {
        withdraw_pending();
        if (!this->process->kernel().ending())
            undo();
    }

    std::tuple<Members...> members_;
    std::array<Waiter *, sizeof...(Members)> pending_{};
};

} // namespace detail

template <class... Members> class AnyOf : public detail::Several<AnyOf<Members...>, Members...> {
  public:
    using detail::Several<AnyOf<Members...>, Members...>::Several;

    bool begin(ProcessState &owner) {
        this->settle = [](Group &group, Waiter &member) {
            auto &self = static_cast<AnyOf &>(group);
            self.first_ = self.take(member);
            if (self.beginning_)
                return;
            self.granted = true;
            self.process->kernel().schedule_now(*self.process);
            self.withdraw_pending(); // may let others continue, after this one
        };
        beginning_ = true;
        bool done = false;
        this->begin_all(owner, [&](std::size_t index) {
            first_ = index;
            done = true;
            return false;
        });
        beginning_ = false;
        if (done)
            this->withdraw_pending();
        return done;
    }
    /// The number of the member that was granted.
    [[nodiscard]] std::size_t result() noexcept {
        this->keep();
        return first_;
    }

  private:
    std::size_t first_ = 0;
    bool beginning_ = false;
};

template <class... Members> class AllOf : public detail::Several<AllOf<Members...>, Members...> {
  public:
    using detail::Several<AllOf<Members...>, Members...>::Several;

    bool begin(ProcessState &owner) {
        this->settle = [](Group &group, Waiter &member) {
            auto &self = static_cast<AllOf &>(group);
            self.take(member);
            if (self.beginning_)
                return;
            if (--self.missing_ > 0)
                return;
            self.granted = true;
            self.process->kernel().schedule_now(*self.process);
        };
        beginning_ = true;
        missing_ = sizeof...(Members);
        this->begin_all(owner, [&](std::size_t) {
            --missing_;
            return true;
        });
        beginning_ = false;
        return missing_ == 0;
    }
    void result() noexcept { this->keep(); }

  private:
    std::size_t missing_ = 0;
    bool beginning_ = false;
};

template <class... Operations> [[nodiscard]] auto any_of(Operations... operations) {
    static_assert(sizeof...(Operations) > 0);
    return AnyOf<decltype(detail::member(std::move(operations)))...>(
        detail::member(std::move(operations))...);
}

template <class... Operations> [[nodiscard]] auto all_of(Operations... operations) {
    static_assert(sizeof...(Operations) > 0);
    return AllOf<decltype(detail::member(std::move(operations)))...>(
        detail::member(std::move(operations))...);
}

} // namespace widthwise::sim
