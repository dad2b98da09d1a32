#include "switching/stacks.hpp"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cxxabi.h>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

namespace widthwise::sim {
namespace {

// Linux 6.13: guard pages inside of a mapping, which mprotect can only make by splitting it (and
// vm.max_map_count allows 65530 mappings). include/uapi/asm-generic/mman-common.h
constexpr int madv_guard_install = 102;

constexpr std::size_t stagger_lines = 63; // of 64 bytes, within one extra page

std::size_t round_up(std::size_t size, std::size_t to) { return (size + to - 1) / to * to; }

} // namespace

constinit thread_local Entered entered;

std::size_t page_size() noexcept {
    static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return size;
}

// ---------------------------------------------------------------------------------------------------------------

StackPool::StackPool(std::size_t size) : size_(round_up(size < 4096 ? 4096 : size, page_size())) {}

StackPool::~StackPool() {
    for (std::byte *mapping : all_)
        munmap(mapping, size_ + 2 * page_size());
}

/// Clears the sanitizer's marks of a stack's last frames, which were left without a return.
static void forget_frames([[maybe_unused]] std::byte *stack, [[maybe_unused]] std::size_t size) noexcept {
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(stack, size);
#endif
}

void StackPool::take(Context &context) {
    const std::size_t page = page_size();
    if (!free_.empty()) {
        context.stack = free_.back().first;
        context.size = free_.back().second;
        free_.pop_back();
        return forget_frames(context.stack, context.size);
    }
    if (all_.size() == all_.capacity()) {
        const std::size_t more = 2 * all_.size() + 16;
        free_.reserve(more); // so that giving back cannot fail
        all_.reserve(more);
    }
    const std::size_t bytes = size_ + 2 * page;
    void *mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (mapping == MAP_FAILED)
        throw std::bad_alloc();
    if (madvise(mapping, page, madv_guard_install) != 0 && mprotect(mapping, page, PROT_NONE) != 0) {
        munmap(mapping, bytes);
        throw std::bad_alloc();
    }
    auto *base = static_cast<std::byte *>(mapping);
    all_.push_back(base);
    context.stack = base + page;
    context.size = size_ + 64 * (all_.size() % (stagger_lines + 1)) % page;
    forget_frames(context.stack, size_ + page); // of an earlier mapping
}

void StackPool::give_back(Context &context) noexcept { free_.emplace_back(context.stack, context.size); }

// ---------------------------------------------------------------------------------------------------------------
// Overflow

/// The signal stack and the emergency stack of one thread.
struct StackWatch::Alternative {
    static constexpr std::size_t half = 65536;
    stack_t before{};
    std::byte *memory = nullptr;
};

namespace {

std::mutex handler_lock;
int handler_users = 0;
struct sigaction handler_before;

/// Where a thread continues after its stack overflowed.
[[noreturn]] void land() {
    Context &context = *entered.context;
    leave_context(*entered.switcher, context, true);
    std::abort();
}

void on_fault(int signal, siginfo_t *info, void *where) {
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    Context *context = entered.context;
    if (context != nullptr && !context->lost) {
        const auto stack = reinterpret_cast<std::uintptr_t>(context->stack);
        if (address < stack && address >= stack - page_size()) {
            context->lost = true;
            auto &registers = static_cast<ucontext_t *>(where)->uc_mcontext.gregs;
            // As if just called: the return address's slot lies just below a multiple of 16.
            const auto top = reinterpret_cast<std::uintptr_t>(entered.emergency) & ~std::uintptr_t{15};
            const auto landing = reinterpret_cast<std::uintptr_t>(&land);
#if defined(__x86_64__)
            registers[REG_RSP] = static_cast<greg_t>(top - 64 - 8);
            registers[REG_RIP] = static_cast<greg_t>(landing);
#else
            registers[REG_ESP] = static_cast<greg_t>(top - 64 - 4);
            registers[REG_EIP] = static_cast<greg_t>(landing);
#endif
            return;
        }
    }
    // Not ours: as if this handler had never been there. The instruction faults again.
    struct sigaction before = handler_before;
    sigaction(signal, &before, nullptr);
}

void hold_handler() {
    const std::lock_guard lock(handler_lock);
    if (handler_users++ > 0)
        return;
    struct sigaction action = {};
    action.sa_sigaction = &on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &handler_before);
}

void let_go_of_handler() {
    const std::lock_guard lock(handler_lock);
    if (--handler_users > 0)
        return;
    struct sigaction now = {};
    sigaction(SIGSEGV, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == &on_fault)
        sigaction(SIGSEGV, &handler_before, nullptr);
}

} // namespace

StackWatch::StackWatch(Switcher *switcher) : switcher_(switcher) {
    if (switcher == nullptr)
        return;
    outer_ = entered.switcher;
    if (entered.emergency == nullptr) {
        void *memory = mmap(nullptr, 2 * Alternative::half, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            throw std::bad_alloc();
        alternative_ = new Alternative();
        alternative_->memory = static_cast<std::byte *>(memory);
        stack_t stack = {};
        stack.ss_sp = memory;
        stack.ss_size = Alternative::half;
        sigaltstack(&stack, &alternative_->before);
        entered.emergency = alternative_->memory + 2 * Alternative::half;
        hold_handler();
    }
    entered.switcher = switcher;
    entered.exceptions = reinterpret_cast<ExceptionGlobals *>(abi::__cxa_get_globals());
}

StackWatch::~StackWatch() {
    if (switcher_ == nullptr)
        return;
    entered.switcher = outer_;
    if (alternative_ == nullptr)
        return;
    let_go_of_handler();
    if ((alternative_->before.ss_flags & SS_DISABLE) != 0)
        alternative_->before.ss_size = Alternative::half;
    sigaltstack(&alternative_->before, nullptr);
    munmap(alternative_->memory, 2 * Alternative::half);
    delete alternative_;
    entered.emergency = nullptr;
}

} // namespace widthwise::sim
