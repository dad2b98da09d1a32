// Queues, semaphores and barriers: a process waits there, and holds nothing.
//
// Invariants: a semaphore with a count above 0 has no waiting process; a barrier has fewer waiting than its
// size.
#pragma once

#include "widthwise/sim/process.hpp"
#include "widthwise/sim/resource.hpp"

namespace widthwise::sim {

/// Processes that wait, in order, until they are woken.
class Queue : public Resource {
  public:
    explicit Queue(Simulation &sim, std::string_view name = "queue");
    ~Queue() override;

    class Stay : public Awaitable<Stay> {
      public:
        explicit Stay(Queue &queue) : queue_(&queue) {}
        bool begin(ProcessState &owner);
        void result() const noexcept {}
        [[nodiscard]] const Resource &of() const noexcept { return *queue_; }

      private:
        Queue *queue_;
    };

    /// Waits until woken.
    [[nodiscard]] Stay wait() { return Stay(*this); }
    /// Wakes the first, now; an empty reference if there is none.
    ProcessRef wake();
    /// Wakes all, in order; how many.
    std::size_t wake_all();

    [[nodiscard]] bool empty() const noexcept { return wait_queue_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return wait_queue_.size(); }
    [[nodiscard]] ProcessRef first() const noexcept {
        return wait_queue_.empty() ? ProcessRef() : ProcessRef(*sim_, *wait_queue_.first()->process);
    }
    [[nodiscard]] const ObservedWaitQueue &wait_queue() const noexcept { return wait_queue_; }

    [[nodiscard]] std::string report() const override;
    void clear_statistics() override;

  protected:
    [[nodiscard]] const char *kind() const noexcept override { return "queue"; }

  private:
    ObservedWaitQueue wait_queue_;
};

/// Counts permissions.
class Semaphore : public Resource {
  public:
    Semaphore(Simulation &sim, std::uint64_t count, std::string_view name = "semaphore");
    ~Semaphore() override;

    class Acquire : public Awaitable<Acquire> {
      public:
        explicit Acquire(Semaphore &semaphore) : semaphore_(&semaphore) {}
        ~Acquire() { give_back(); }
        bool begin(ProcessState &owner);
        void result() const noexcept {}
        void undo() { semaphore_->release(); }
        [[nodiscard]] const Resource &of() const noexcept { return *semaphore_; }

      private:
        Semaphore *semaphore_;
    };

    [[nodiscard]] Acquire acquire() { return Acquire(*this); }
    void release();
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] std::size_t waiting() const noexcept { return wait_queue_.size(); }
    [[nodiscard]] const ObservedWaitQueue &wait_queue() const noexcept { return wait_queue_; }

    [[nodiscard]] std::string report() const override;
    void clear_statistics() override;

  protected:
    [[nodiscard]] const char *kind() const noexcept override { return "semaphore"; }

  private:
    std::uint64_t count_;
    ObservedWaitQueue wait_queue_;
};

/// Processes wait until `size` of them have arrived. Then all continue, and the barrier starts again.
class Barrier : public Resource {
  public:
    /// A size of 0 throws BadRequest.
    Barrier(Simulation &sim, std::size_t size, std::string_view name = "barrier");
    ~Barrier() override;

    class Arrive : public Awaitable<Arrive> {
      public:
        explicit Arrive(Barrier &barrier) : barrier_(&barrier) {}
        bool begin(ProcessState &owner);
        void result() const noexcept {}
        [[nodiscard]] const Resource &of() const noexcept { return *barrier_; }

      private:
        Barrier *barrier_;
    };

    [[nodiscard]] Arrive arrive() { return Arrive(*this); }
    [[nodiscard]] std::size_t waiting() const noexcept { return wait_queue_.size(); }
    /// How often it has opened.
    [[nodiscard]] std::uint64_t openings() const noexcept { return openings_; }
    [[nodiscard]] const ObservedWaitQueue &wait_queue() const noexcept { return wait_queue_; }

    [[nodiscard]] std::string report() const override;
    void clear_statistics() override;

  protected:
    [[nodiscard]] const char *kind() const noexcept override { return "barrier"; }

  private:
    std::size_t size_;
    std::uint64_t openings_ = 0;
    ObservedWaitQueue wait_queue_;
};

} // namespace widthwise::sim
