// Stack switching by switch.S.
#include "switching/first_frame.hpp"
#include "switching/stacks.hpp"
#include "switching/switchers.hpp"

#include <new>

namespace widthwise::sim {
namespace {

struct AssemblyContext : Context {
    void *pointer = nullptr; // stack pointer while it is not entered
};

class AssemblySwitcher final : public Switcher {
  public:
    explicit AssemblySwitcher(std::size_t stack_size) : stacks_(stack_size) {}

    Context *create(Entry entry, void *argument) override {
        auto context = std::make_unique<AssemblyContext>();
        stacks_.take(*context);
        const auto top =
            reinterpret_cast<std::uintptr_t>(context->stack + context->size) & ~std::uintptr_t{15};
        auto *frame = reinterpret_cast<FirstFrame *>(top - sizeof(FirstFrame));
        *frame = first_frame(entry, argument);
        context->pointer = frame;
        return context.release();
    }

    void enter(Context &context) noexcept override {
        void *const outer = dispatcher_;
        widthwise_sim_switch(&dispatcher_, static_cast<AssemblyContext &>(context).pointer);
        dispatcher_ = outer;
    }

    void leave(Context &context, bool) override {
        widthwise_sim_switch(&static_cast<AssemblyContext &>(context).pointer, dispatcher_);
    }

    void destroy(Context *context) noexcept override {
        stacks_.give_back(*context);
        delete static_cast<AssemblyContext *>(context);
    }

  private:
    StackPool stacks_;
    void *dispatcher_ = nullptr;
};

} // namespace

std::unique_ptr<Switcher> make_assembly_switcher(std::size_t stack_size) {
    return std::make_unique<AssemblySwitcher>(stack_size);
}

} // namespace widthwise::sim
