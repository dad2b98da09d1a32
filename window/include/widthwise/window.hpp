/*
 * C++17 for widthwise/window.h: stores, transactions and pins that end with their scope, handles with the
 * type of what they name, and ranges. Failures throw widthwise::window::error with errno as its code. Thread
 * rules and lifetimes are those of window.h.
 */
#ifndef WIDTHWISE_WINDOW_HPP
#define WIDTHWISE_WINDOW_HPP

#if __cplusplus < 201703L
#error "widthwise/window.hpp needs C++17 or later: compile with -std=c++17"
#endif

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "widthwise/window.h"

namespace widthwise::window {

class error : public std::system_error {
  public:
    error() : std::system_error(errno, std::generic_category(), ww_error()) {}
    error(int code, const char *what) : std::system_error(code, std::generic_category(), what) {}
};

namespace detail {
inline int checked(int result) {
    if (result < 0)
        throw error();
    return result;
}

/* Counts have 64 bits in every ABI: one that is too large for Size must not become a small one. */
template <class T, class Size> Size bytes_of(std::uint64_t count) {
    if (count > std::numeric_limits<Size>::max() / sizeof(T))
        throw error(ERANGE, "so many objects are larger than any store or address space");
    return Size(count) * sizeof(T);
}
} // namespace detail

/* A place of a T in a store: 64 bits in every ABI, to be kept in the store. T must have one layout in all
 * ABIs that use the store: fixed-width members at their natural alignment, handles instead of pointers. */
template <class T> class handle {
  public:
    constexpr handle() = default;
    constexpr explicit handle(ww_handle value)
        : low_(std::uint32_t(value)), high_(std::uint32_t(value >> 32)) {}
    constexpr ww_handle value() const { return std::uint64_t(high_) << 32 | low_; }
    constexpr explicit operator bool() const { return value() != 0; }
    constexpr handle operator+(std::int64_t count) const {
        return handle(value() + static_cast<std::uint64_t>(count) * sizeof(T));
    }
    friend constexpr bool operator==(handle one, handle other) { return one.value() == other.value(); }
    friend constexpr bool operator!=(handle one, handle other) { return one.value() != other.value(); }

  private:
    std::uint32_t low_ = 0, high_ = 0; /* i386 aligns a uint64_t of a structure at 4, other ABIs at 8 */
};

class store {
  public:
    static store create(const std::string &path, std::uint64_t capacity, const ww_options &options = {}) {
        ww_store *own;
        detail::checked(ww_create(path.c_str(), capacity, &options, &own));
        return store(own);
    }
    static store open(const std::string &path, const ww_options &options = {}) {
        ww_store *own;
        detail::checked(ww_open(path.c_str(), &options, &own));
        return store(own);
    }
    store(store &&other) noexcept : own_(std::exchange(other.own_, nullptr)) {}
    store &operator=(store &&other) noexcept {
        std::swap(own_, other.own_);
        return *this;
    }
    ~store() {
        if (own_)
            ww_close(own_);
    }
    ww_store *get() const { return own_; }
    std::uint64_t capacity() const { return ww_capacity(own_); }
    void sync() { detail::checked(ww_sync(own_)); }
    void checkpoint() { detail::checked(ww_checkpoint(own_)); }
    template <class T> handle<T> at(std::uint64_t offset) const {
        ww_handle value;
        detail::checked(ww_handle_at(own_, offset, &value));
        return handle<T>(value);
    }

  private:
    explicit store(ww_store *own) : own_(own) {}
    ww_store *own_;
};

/* Count consecutive objects in memory, until the end of its scope; one by default. T const for reading. */
template <class T> class pin {
  public:
    using object = std::remove_const_t<T>;
    static_assert(std::is_trivially_copyable_v<object>, "what is in a store is only bytes");
    pin(ww_store *own, handle<object> first, std::uint64_t count = 1, unsigned more = 0)
        : own_(own), count_(std::size_t(count)) {
        const unsigned mode = std::is_const_v<T> ? unsigned(WW_READ) : unsigned(WW_WRITE);
        detail::checked(
            ww_pin(own, first.value(), detail::bytes_of<T, std::size_t>(count), mode | more, &pinned_));
    }
    pin(pin &&other) noexcept : own_(other.own_), count_(other.count_), pinned_(other.pinned_) {
        other.pinned_.data = nullptr;
    }
    pin &operator=(pin &&) = delete;
    ~pin() {
        if (pinned_.data)
            ww_unpin(own_, &pinned_); /* the next call reports what was caught below it */
    }
    T *get() const { return static_cast<T *>(pinned_.data); }
    T &operator*() const { return *get(); }
    T *operator->() const { return get(); }
    T &operator[](std::size_t i) const { return get()[i]; }
    std::size_t size() const { return count_; }
    T *begin() const { return get(); }
    T *end() const { return get() + count_; }

  private:
    ww_store *own_;
    std::size_t count_;
    ww_pinned pinned_ = {};
};

/* Consecutive objects of a store, one window at a time: for (const T &object : range). Objects must not lie
 * across windows: sizeof(T) divides the window's size, and the first one is aligned to it. With WW_ALLOCATED,
 * nor across an end of what is allocated: objects of more than a page are written as a whole. */
template <class T> class range {
  public:
    class iterator {
      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        using pointer = const T *;
        using reference = const T &;
        const T &operator*() const { return *next_; }
        const T *operator->() const { return next_; }
        iterator &operator++() {
            if (++next_ == end_)
                advance();
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const iterator &one, const iterator &other) {
            return one.next_ == other.next_;
        }
        friend bool operator!=(const iterator &one, const iterator &other) {
            return one.next_ != other.next_;
        }

      private:
        friend class range;
        explicit iterator(range *own) : own_(own) {
            if (own_)
                advance();
        }
        void advance() {
            next_ = end_ = nullptr;
            ww_iterator &pieces = own_->pieces_;
            if (detail::checked(ww_next(own_->own_, &pieces)) == 0)
                return;
            if (pieces.length % sizeof(T) != 0 || (pieces.handle - own_->first_) % sizeof(T) != 0 ||
                reinterpret_cast<std::uintptr_t>(pieces.data) % alignof(T) != 0)
                throw error(EINVAL, "an object of the range lies across windows, or is allocated in part");
            next_ = static_cast<const T *>(pieces.data);
            end_ = next_ + pieces.length / sizeof(T);
        }
        range *own_;
        const T *next_ = nullptr, *end_ = nullptr;
    };

    range(ww_store *own, handle<T> first, std::uint64_t count, unsigned flags = 0)
        : own_(own), first_(first.value()) {
        detail::checked(
            ww_iterate(own, first.value(), detail::bytes_of<T, std::uint64_t>(count), flags, &pieces_));
    }
    range(const range &) = delete;
    range &operator=(const range &) = delete;
    ~range() { ww_iterator_end(own_, &pieces_); }
    iterator begin() { return iterator(this); }
    iterator end() { return iterator(nullptr); }

  private:
    ww_store *own_;
    ww_handle first_;
    ww_iterator pieces_ = {};
};

/* A snapshot, or the writer's transaction, which its end undoes unless it was committed. Pins end before it.
 */
class transaction {
  public:
    transaction(const store &own, unsigned mode) : own_(own.get()) { detail::checked(ww_begin(own_, mode)); }
    transaction(const transaction &) = delete;
    transaction &operator=(const transaction &) = delete;
    ~transaction() {
        if (own_)
            ww_abort(own_);
    }
    void commit() {
        detail::checked(ww_commit(own_));
        own_ = nullptr;
    }
    std::uint64_t version() const { return ww_version(own_); }
    template <class T> pin<const T> read(handle<T> first, std::uint64_t count = 1) const {
        return pin<const T>(own_, first, count);
    }
    template <class T> pin<T> write(handle<T> first, std::uint64_t count = 1) const {
        return pin<T>(own_, first, count);
    }
    template <class T> pin<T> overwrite(handle<T> first, std::uint64_t count = 1) const {
        return pin<T>(own_, first, count, WW_FRESH);
    }
    template <class T> range<T> each(handle<T> first, std::uint64_t count, unsigned flags = 0) const {
        return range<T>(own_, first, count, flags);
    }
    template <class T> handle<T> allocate(std::uint64_t count = 1) const {
        ww_handle value;
        detail::checked(ww_allocate(own_, detail::bytes_of<T, std::uint64_t>(count),
                                    alignof(T) < 8 ? 8 : alignof(T), &value));
        return handle<T>(value);
    }
    template <class T> handle<T> root() const {
        ww_handle value;
        detail::checked(ww_root(own_, &value));
        return handle<T>(value);
    }
    template <class T> void set_root(handle<T> root) const {
        detail::checked(ww_set_root(own_, root.value()));
    }

  private:
    ww_store *own_;
};

} // namespace widthwise::window

#endif
