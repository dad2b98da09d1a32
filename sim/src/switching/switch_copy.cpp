// Stack copying, the way of peringer-2007, section 3: all processes run on one stack, and what a process has
// on it is copied out when it stops and back when it goes on. A waiting process costs what it uses and no
// more; a switch costs in proportion to that.
//
// Unlike the paper's, the common stack is not the dispatcher's own: the dispatcher copies while standing
// elsewhere, so nothing has to be shifted out of the way first. Pointers to locals are good only while their
// process runs.
#include "switching/first_frame.hpp"
#include "switching/stacks.hpp"
#include "switching/switchers.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

namespace widthwise::sim {
namespace {

struct CopiedContext : Context {
    void *pointer = nullptr;   // stack pointer while it is not entered
    std::byte *copy = nullptr; // of [pointer, top)
    std::size_t capacity = 0;
};

class CopyingSwitcher final : public Switcher {
  public:
    explicit CopyingSwitcher(std::size_t stack_size) : stacks_(stack_size) {
        stacks_.take(common_);
        top_ = reinterpret_cast<std::byte *>(reinterpret_cast<std::uintptr_t>(common_.stack + common_.size) &
                                             ~std::uintptr_t{15});
    }

    Context *create(Entry entry, void *argument) override {
        auto context = std::make_unique<CopiedContext>();
        context->stack = common_.stack;
        context->size = common_.size;
        const FirstFrame frame = first_frame(entry, argument);
        context->pointer = top_ - sizeof frame;
        context->copy = static_cast<std::byte *>(std::malloc(sizeof frame));
        if (context->copy == nullptr)
            throw std::bad_alloc();
        context->capacity = sizeof frame;
        std::memcpy(context->copy, &frame, sizeof frame);
        return context.release();
    }

    void enter(Context &context) noexcept override {
        auto &copied = static_cast<CopiedContext &>(context);
        auto *from = static_cast<std::byte *>(copied.pointer);
        std::memcpy(from, copied.copy, static_cast<std::size_t>(top_ - from));
        ended_ = false;
        widthwise_sim_switch(&dispatcher_, copied.pointer);
        if (ended_ || copied.lost)
            return;
        from = static_cast<std::byte *>(copied.pointer);
        const auto used = static_cast<std::size_t>(top_ - from);
        if (used > copied.capacity || 4 * used < copied.capacity) {
            auto *memory = static_cast<std::byte *>(std::realloc(copied.copy, used));
            if (memory == nullptr)
                std::abort(); // the process's stack would be lost, and no caller could receive an error
            copied.copy = memory;
            copied.capacity = used;
        }
        std::memcpy(copied.copy, from, used);
    }

    void leave(Context &context, bool last) override {
        ended_ = last;
        widthwise_sim_switch(&static_cast<CopiedContext &>(context).pointer, dispatcher_);
    }

    void destroy(Context *context) noexcept override {
        auto *copied = static_cast<CopiedContext *>(context);
        std::free(copied->copy);
        delete copied;
    }

    [[nodiscard]] bool stacks_stay() const noexcept override { return false; }

  private:
    StackPool stacks_;
    Context common_;
    std::byte *top_ = nullptr;
    void *dispatcher_ = nullptr;
    bool ended_ = false;
};

} // namespace

std::unique_ptr<Switcher> make_copying_switcher(std::size_t stack_size) {
    return std::make_unique<CopyingSwitcher>(stack_size);
}

} // namespace widthwise::sim
