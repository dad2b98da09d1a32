// Stack switching by makecontext and swapcontext: portable, and dear, because the signal mask is set by a
// system call with every switch.
#include "switching/stacks.hpp"
#include "switching/switchers.hpp"

#include <cstdint>
#include <new>
#include <ucontext.h>

namespace widthwise::sim {
namespace {

struct UcontextContext : Context {
    ucontext_t there{};
    Switcher::Entry entry = nullptr;
    void *argument = nullptr;
};

class UcontextSwitcher final : public Switcher {
  public:
    explicit UcontextSwitcher(std::size_t stack_size) : stacks_(stack_size) {}

    Context *create(Entry entry, void *argument) override {
        auto context = std::make_unique<UcontextContext>();
        stacks_.take(*context);
        context->entry = entry;
        context->argument = argument;
        getcontext(&context->there);
        context->there.uc_stack.ss_sp = context->stack;
        context->there.uc_stack.ss_size = context->size;
        context->there.uc_link = nullptr;
        // makecontext passes ints only: a pointer takes two.
        const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(context.get()));
        makecontext(&context->there, reinterpret_cast<void (*)()>(&begin), 2,
                    static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
        return context.release();
    }

    void enter(Context &context) noexcept override {
        ucontext_t *const outer = dispatcher_;
        ucontext_t here;
        dispatcher_ = &here;
        swapcontext(&here, &static_cast<UcontextContext &>(context).there);
        dispatcher_ = outer;
    }

    void leave(Context &context, bool) override {
        swapcontext(&static_cast<UcontextContext &>(context).there, dispatcher_);
    }

    void destroy(Context *context) noexcept override {
        stacks_.give_back(*context);
        delete static_cast<UcontextContext *>(context);
    }

  private:
    static void begin(unsigned high, unsigned low) {
        const auto address = static_cast<std::uint64_t>(high) << 32 | low;
        auto &context = *reinterpret_cast<UcontextContext *>(static_cast<std::uintptr_t>(address));
        context.entry(context.argument);
    }

    StackPool stacks_;
    ucontext_t *dispatcher_ = nullptr;
};

} // namespace

std::unique_ptr<Switcher> make_ucontext_switcher(std::size_t stack_size) {
    return std::make_unique<UcontextSwitcher>(stack_size);
}

} // namespace widthwise::sim
