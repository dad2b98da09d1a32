// Waiting for several things: any_of and all_of.
//
//     const auto which = co_await any_of(till.seize(), wait(5.0)); // 0: it has the till; 1: its patience
//     ended
//
// Members begin in the order given. any_of continues with the first member that is granted, and withdraws the
// others; all_of continues when the last is granted. An interrupted wait undoes the grants. A member may be
// a group itself: `any_of(all_of(a.seize(), b.seize()), wait(5.0))` has both or gives up. A group that does
// not come first gives back what it was granted. all_of throws WrongState for two members that ask for one
// facility which one of them cannot do without.
// Invariants: a member's `group` is set before it begins, so that a grant is never missed; a group is
// granted once, like every waiter; a member that is granted after its group was granted or withdrawn (the
// withdrawal of another request at the same store may grant it) is undone.
#pragma once

#include "widthwise/sim/process.hpp"

#include <array>
#include <tuple>
#include <type_traits>

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

[[noreturn]] void refuse_twice(const Resource &resource, const ProcessState &process);

inline Timer member(Wait wait) { return Timer(wait.delay()); }
template <Waitable Operation> Operation member(Operation operation) { return operation; }

template <class Self, class... Members> class Several : public Awaitable<Self>, public Group {
  public:
    explicit Several(Members... members) : members_(std::move(members)...) {}

    void undo() {
        std::apply([](auto &...each) { (undo_one(each), ...); }, members_);
    }

    /// Calls `look` with the resource of each request, in groups too, for a thing of which a process can only
    /// have one.
    template <class Look> void look_at_requests(const Look &look) const {
        std::apply([&](const auto &...each) { (look_at(each, look), ...); }, members_);
    }

    /// From here on the process releases what was granted.
    void keep() noexcept {
        std::apply([](auto &...each) { (keep_one(each), ...); }, members_);
    }

  protected:
    /// Begins members until the group is complete. True if it is.
    bool begin_all(ProcessState &owner) {
        this->withdraw = [](Waiter &self) { static_cast<Several &>(self).withdraw_all(); };
        this->settle = [](Group &group, Waiter &member) {
            auto &self = static_cast<Several &>(group);
            const std::size_t index = self.take(member);
            if (self.progress_ != Progress::closed)
                self.count(index);
        };
        progress_ = Progress::beginning;
        std::size_t index = 0;
        try {
            std::apply([&](auto &...each) { (begin_one(each, index++, owner), ...); }, members_);
        } catch (...) { // those before it have begun
            progress_ = Progress::closed;
            withdraw_pending();
            undo();
            throw;
        }
        if (progress_ == Progress::closed)
            return true;
        progress_ = Progress::waiting;
        return false;
    }

    /// Refuses two members that ask for a thing of which a process can only have one, and which one of them
    /// needs: after its grant the process would wait for itself. Two that can do without it may ask for it.
    void refuse_requests_for_one(const ProcessState &owner) const {
        std::apply(
            [&](const auto &...each) {
                const auto look = [&](const Resource &resource) {
                    const int asking = ((asks_for(each, resource) ? 1 : 0) + ...);
                    if (asking > 1 && (needs_one(each, resource) || ...))
                        refuse_twice(resource, owner);
                };
                (look_at(each, look), ...);
            },
            members_);
    }

    [[nodiscard]] bool all_need(const Resource &resource) const {
        return std::apply([&](const auto &...each) { return (needs_one(each, resource) && ...); }, members_);
    }
    [[nodiscard]] bool one_needs(const Resource &resource) const {
        return std::apply([&](const auto &...each) { return (needs_one(each, resource) || ...); }, members_);
    }

    /// The group has what it waits for.
    void complete() {
        if (std::exchange(progress_, Progress::closed) == Progress::waiting)
            this->process->kernel().grant(*this);
    }

    void withdraw_pending() {
        for (Waiter *&waiter : pending_)
            if (Waiter *each = std::exchange(waiter, nullptr))
                each->withdraw(*each);
    }

    /// Undoes the grants of all members but one.
    void undo_all_but(std::size_t kept) {
        std::size_t index = 0;
        const auto one = [&](auto &each) {
            if (index++ != kept)
                undo_one(each);
        };
        std::apply([&](auto &...each) { (one(each), ...); }, members_);
    }

  private:
    enum class Progress : std::uint8_t { beginning, waiting, closed }; // closed: granted or withdrawn

    template <class Member> void begin_one(Member &each, std::size_t index, ProcessState &owner) {
        if (progress_ == Progress::closed)
            return;
        each.belong_to(owner);
        each.group = this;
        pending_[index] = &each;
        bool at_once = false;
        try {
            at_once = each.begin(owner);
        } catch (...) {
            pending_[index] = nullptr;
            throw;
        }
        if (!at_once)
            return;
        each.granted = true;
        if (std::exchange(pending_[index], nullptr) != nullptr && progress_ != Progress::closed)
            count(index);
    }

    template <class Member, class Look> static void look_at(const Member &each, const Look &look) {
        if constexpr (requires { Member::only_once; })
            look(each.of());
        else if constexpr (std::is_base_of_v<Group, Member>)
            each.look_at_requests(look);
    }
    template <class Member> static bool asks_for(const Member &each, const Resource &resource) {
        bool asks = false;
        look_at(each, [&](const Resource &asked) { asks = asks || &asked == &resource; });
        return asks;
    }
    /// Whether it is never granted without the resource.
    template <class Member> static bool needs_one(const Member &each, const Resource &resource) {
        if constexpr (std::is_base_of_v<Group, Member>)
            return each.needs(resource);
        else
            return asks_for(each, resource);
    }

    void count(std::size_t index) { static_cast<Self &>(*this).count(index); }

    /// Marks a member as granted; its number.
    std::size_t take(Waiter &member) noexcept {
        std::size_t index = 0;
        while (pending_[index] != &member)
            ++index;
        pending_[index] = nullptr;
        return index;
    }

    template <class Member> static void undo_one(Member &each) {
        if constexpr (requires { each.undo(); })
            if (each.granted)
                each.undo();
        each.granted = false;
    }
    template <class Member> static void keep_one(Member &each) noexcept {
        if constexpr (requires { each.keep(); })
            each.keep();
        each.granted = false;
    }
    void withdraw_all() {
        progress_ = Progress::closed;
        withdraw_pending();
        if (!this->process->kernel().ending())
            undo();
    }

    std::tuple<Members...> members_;
    std::array<Waiter *, sizeof...(Members)> pending_{};
    Progress progress_ = Progress::beginning;
};

} // namespace detail

template <class... Members> class AnyOf : public detail::Several<AnyOf<Members...>, Members...> {
  public:
    using detail::Several<AnyOf<Members...>, Members...>::Several;

    bool begin(ProcessState &owner) {
        if (!this->begin_all(owner))
            return false;
        withdraw_others();
        return true;
    }
    [[nodiscard]] bool needs(const Resource &resource) const { return this->all_need(resource); }
    /// The number of the member that was granted.
    [[nodiscard]] std::size_t result() noexcept {
        this->keep();
        return first_;
    }

  private:
    friend detail::Several<AnyOf, Members...>;

    void count(std::size_t index) {
        first_ = index;
        this->complete();
        if (this->granted)     // no longer beginning
            withdraw_others(); // may let others continue, after this one
    }
    void withdraw_others() {
        this->withdraw_pending();
        if (!this->process->kernel().ending())
            this->undo_all_but(first_);
    }

    std::size_t first_ = 0;
};

template <class... Members> class AllOf : public detail::Several<AllOf<Members...>, Members...> {
  public:
    using detail::Several<AllOf<Members...>, Members...>::Several;

    bool begin(ProcessState &owner) {
        this->refuse_requests_for_one(owner);
        return this->begin_all(owner);
    }
    [[nodiscard]] bool needs(const Resource &resource) const { return this->one_needs(resource); }
    void result() noexcept { this->keep(); }

  private:
    friend detail::Several<AllOf, Members...>;

    void count(std::size_t) {
        if (--missing_ == 0)
            this->complete();
    }

    std::size_t missing_ = sizeof...(Members);
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
