// A store: so many places, entered and left by any number at once.
//
// The queue is strict: a request for many places is not overtaken by one for few, so that none starves.
// Places are tokens, not belongings: another process than the one that entered may leave, and a cancelled
// process's places stay taken until another process leaves for it. Invariant: 0 <= used <= capacity; the
// first request in the queue does not fit.
#pragma once

#include "widthwise/sim/process.hpp"
#include "widthwise/sim/resource.hpp"

namespace widthwise::sim {

class Store : public Resource {
  public:
    Store(Simulation &sim, std::uint64_t capacity, std::string_view name = "store");
    ~Store() override;

    class Enter : public Awaitable<Enter> {
      public:
        Enter(Store &store, std::uint64_t places) : store_(&store), places_(places) {}
        ~Enter() { give_back(); }
        bool begin(ProcessState &owner);
        void result() const noexcept {}
        void undo() { store_->leave(places_); }
        [[nodiscard]] const Resource &of() const noexcept { return *store_; }

      private:
        friend class Store;
        Store *store_;
        std::uint64_t places_;
    };

    /// More than the capacity throws BadRequest.
    [[nodiscard]] Enter enter(std::uint64_t places = 1) { return {*this, places}; }
    /// More than are used throws ReleaseWithoutSeize.
    void leave(std::uint64_t places = 1);

    [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] std::uint64_t used() const noexcept { return used_; }
    [[nodiscard]] std::size_t waiting() const noexcept { return wait_queue_.size(); }
    /// Places used, over time.
    [[nodiscard]] const TStat &use() const noexcept { return use_; }
    [[nodiscard]] double utilisation() const {
        return use_.mean(sim().now()) / static_cast<double>(capacity_);
    }
    [[nodiscard]] const ObservedWaitQueue &wait_queue() const noexcept { return wait_queue_; }

    [[nodiscard]] std::string report() const override;
    void clear_statistics() override;

  protected:
    [[nodiscard]] const char *kind() const noexcept override { return "store"; }

  private:
    void set_used(std::uint64_t used) {
        use_.set(sim().now(), static_cast<double>(used));
        used_ = used;
    }
    void admit();

    std::uint64_t capacity_;
    std::uint64_t used_ = 0;
    ObservedWaitQueue wait_queue_;
    TStat use_;
};

} // namespace widthwise::sim
