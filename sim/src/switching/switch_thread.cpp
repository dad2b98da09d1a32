// A thread of the operating system for each process, one of which runs at a time: they hand a baton over. The
// dearest way by far, and the one every debugger understands.
#include "switching/stacks.hpp"
#include "switching/switchers.hpp"

#include <cerrno>
#include <new>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace widthwise::sim {
namespace {

class Baton {
  public:
    Baton() { sem_init(&semaphore_, 0, 0); }
    ~Baton() { sem_destroy(&semaphore_); }
    Baton(const Baton &) = delete;
    Baton &operator=(const Baton &) = delete;
    void give() noexcept { sem_post(&semaphore_); }
    void wait() noexcept {
        while (sem_wait(&semaphore_) != 0 && errno == EINTR) {
        }
    }

  private:
    sem_t semaphore_;
};

/// Thrown from the last leave() to the thread's first function: a thread should end by returning.
struct ThreadEnds {};

struct ThreadContext : Context {
    pthread_t thread{};
    Baton go;
    Switcher *switcher = nullptr;
    Switcher::Entry entry = nullptr;
    void *argument = nullptr;
};

class ThreadSwitcher final : public Switcher {
  public:
    // The C library keeps its thread descriptor and thread-local variables on the stack too: 8 KiB are for
    // them.
    explicit ThreadSwitcher(std::size_t stack_size)
        : stacks_((stack_size < 8192 ? std::size_t{8192} : stack_size) + 8192) {}

    Context *create(Entry entry, void *argument) override {
        auto context = std::make_unique<ThreadContext>();
        stacks_.take(*context);
        context->is_thread = true;
        context->switcher = this;
        context->entry = entry;
        context->argument = argument;
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        int error = pthread_attr_setstack(&attributes, context->stack, context->size);
        if (error == 0)
            error = pthread_create(&context->thread, &attributes, &begin, context.get());
        pthread_attr_destroy(&attributes);
        if (error != 0) {
            stacks_.give_back(*context);
            throw std::bad_alloc();
        }
        return context.release();
    }

    void enter(Context &context) noexcept override {
        static_cast<ThreadContext &>(context).go.give();
        dispatcher_.wait();
    }

    void leave(Context &context, bool last) override {
        if (context.lost) { // on the emergency stack: there is no frame to return to
            dispatcher_.give();
            syscall(SYS_exit, 0);
        }
        if (last)
            throw ThreadEnds();
        dispatcher_.give();
        static_cast<ThreadContext &>(context).go.wait();
    }

    void destroy(Context *context) noexcept override {
        auto *thread = static_cast<ThreadContext *>(context);
        pthread_join(thread->thread, nullptr);
        stacks_.give_back(*context);
        delete thread;
    }

  private:
    static void *begin(void *argument) {
        auto &context = *static_cast<ThreadContext *>(argument);
        auto &self = static_cast<ThreadSwitcher &>(*context.switcher);
        context.go.wait();
        {
            const StackWatch watch(context.switcher);
            entered.context = &context;
            try {
                context.entry(context.argument);
            } catch (const ThreadEnds &) {
            }
            entered.context = nullptr;
        }
        self.dispatcher_.give();
        return nullptr;
    }

    StackPool stacks_;
    Baton dispatcher_;
};

} // namespace

std::unique_ptr<Switcher> make_thread_switcher(std::size_t stack_size) {
    return std::make_unique<ThreadSwitcher>(stack_size);
}

} // namespace widthwise::sim
