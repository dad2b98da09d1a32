// Stack switching by Boost.Context's fcontext, where the build found it.
#include "switching/switchers.hpp"

#if defined(WIDTHWISE_SIM_BOOST_CONTEXT)

#include "switching/stacks.hpp"

#include <boost/context/detail/fcontext.hpp>
#include <new>

namespace widthwise::sim {
namespace {

namespace fc = boost::context::detail;

struct BoostContext : Context {
    fc::fcontext_t there = nullptr;
    Switcher::Entry entry = nullptr;
    void *argument = nullptr;
    fc::fcontext_t *dispatcher = nullptr;
};

class BoostSwitcher final : public Switcher {
  public:
    explicit BoostSwitcher(std::size_t stack_size) : stacks_(stack_size) {}

    Context *create(Entry entry, void *argument) override {
        auto context = std::make_unique<BoostContext>();
        stacks_.take(*context);
        context->entry = entry;
        context->argument = argument;
        context->dispatcher = &dispatcher_;
        context->there = fc::make_fcontext(context->stack + context->size, context->size, &begin);
        return context.release();
    }

    void enter(Context &context) noexcept override {
        auto &boost = static_cast<BoostContext &>(context);
        const fc::fcontext_t outer = dispatcher_;
        const fc::transfer_t from = fc::jump_fcontext(boost.there, &boost);
        boost.there = from.fctx;
        dispatcher_ = outer;
    }

    void leave(Context &, bool) override {
        const fc::transfer_t from = fc::jump_fcontext(dispatcher_, nullptr);
        dispatcher_ = from.fctx;
    }

    void destroy(Context *context) noexcept override {
        stacks_.give_back(*context);
        delete static_cast<BoostContext *>(context);
    }

  private:
    static void begin(fc::transfer_t from) {
        auto &context = *static_cast<BoostContext *>(from.data);
        *context.dispatcher = from.fctx;
        context.entry(context.argument);
    }

    StackPool stacks_;
    fc::fcontext_t dispatcher_ = nullptr;
};

} // namespace

std::unique_ptr<Switcher> make_boost_switcher(std::size_t stack_size) {
    return std::make_unique<BoostSwitcher>(stack_size);
}

bool has_boost_context() noexcept { return true; }

} // namespace widthwise::sim

#else

namespace widthwise::sim {

std::unique_ptr<Switcher> make_boost_switcher(std::size_t) { return nullptr; }
bool has_boost_context() noexcept { return false; }

} // namespace widthwise::sim

#endif
