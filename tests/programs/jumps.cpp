// Known truth for functions that do not return: they throw, or a signal's handler leaves them by a jump. It ends with 0 if
// it saw nothing wrong.
//
//   jumps throw        operators throw std::bad_alloc, new-handlers throw or give up: 4 * 1000 times. succeeds() asks for
//                      4000 blocks meanwhile, and gives 2000 back
//   jumps malloc       a handler jumps out of malloc and free, 300 times out of the library that malloc is in. It needs an
//                      allocator that this does not harm (own_allocator.c)
//   jumps context      the same by setcontext(), which no one stands in front of
//   jumps mmap         the same out of mmap and munmap, 50 times; this never harms
//   jumps handler      a handler that allocates interrupts malloc and free, 300 times in malloc's library. It needs such an
//                      allocator too
//
// The last four ask for 100000 blocks in after() at the end, and give 50000 back. They print a line: how often a handler
// ran, how many blocks during() asked for at least, and how many at most.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <link.h>
#include <new>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static void *volatile kept;

static void check(bool right, const char *what) {
    if (!right) {
        fprintf(stderr, "jumps: %s\n", what);
        _exit(9);
    }
}

static const volatile size_t too_much = (size_t)-1 - 8192;

struct Refused {};
[[noreturn]] static void throws_its_own() { throw Refused(); }
[[noreturn]] static void throws_bad_alloc() { throw std::bad_alloc(); }
static void gives_up() { std::set_new_handler(nullptr); }

__attribute__((noinline)) static void succeeds(size_t size) {
    void *block = ::operator new(size);
    kept = block;
    if (size % 2 == 0) {
        ::operator delete(block);
    }
}

// 1: std::bad_alloc, 2: Refused, 3: a null pointer.
__attribute__((noinline)) static int fails(bool is_nothrow) {
    try {
        kept = is_nothrow ? ::operator new[](too_much, std::nothrow) : ::operator new[](too_much);
        return kept == nullptr ? 3 : 0;
    } catch (const std::bad_alloc &) {
        return 1;
    } catch (const Refused &) {
        return 2;
    }
}

static int throwing() {
    for (size_t i = 1; i <= 1000; i++) {
        std::set_new_handler(nullptr);
        check(fails(false) == 1, "no std::bad_alloc");
        succeeds(i);
        std::set_new_handler(throws_its_own);
        check(fails(false) == 2, "not what the new-handler throws");
        succeeds(i);
        std::set_new_handler(throws_bad_alloc);
        check(fails(true) == 3, "no null pointer");
        succeeds(i);
        std::set_new_handler(gives_up);
        check(fails(false) == 1, "no std::bad_alloc of one who gives up");
        succeeds(i);
    }
    return 0;
}

// The library that malloc is in.
static uintptr_t library_low, library_high;

static int find_library(struct dl_phdr_info *info, size_t, void *place) {
    uintptr_t low = UINTPTR_MAX, high = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) &segment = info->dlpi_phdr[i];
        uintptr_t begins = info->dlpi_addr + segment.p_vaddr;
        if (segment.p_type == PT_LOAD) {
            low = begins < low ? begins : low;
            high = begins + segment.p_memsz > high ? begins + segment.p_memsz : high;
        }
    }
    if ((uintptr_t)place < low || (uintptr_t)place >= high) {
        return 0;
    }
    library_low = low;
    library_high = high;
    return 1;
}

static bool is_in_library(const void *context) {
    const auto &registers = static_cast<const ucontext_t *>(context)->uc_mcontext.gregs;
#ifdef __x86_64__
    auto place = (uintptr_t)registers[REG_RIP];
#else
    auto place = (uintptr_t)registers[REG_EIP];
#endif
    return place - library_low < library_high - library_low;
}

static sigjmp_buf before;
static ucontext_t context_before;
static volatile sig_atomic_t handled, within_library, may_jump, jumped;
static bool by_context;

static void jumps(int, siginfo_t *, void *context) {
    if (may_jump) {
        handled++;
        within_library += is_in_library(context);
        jumped = 1;
        if (by_context) {
            setcontext(&context_before);
        }
        siglongjmp(before, 1);
    }
}

__attribute__((noinline)) static void allocates(int, siginfo_t *, void *context) {
    handled++;
    within_library += is_in_library(context);
    free(malloc(5));
}

// A signal every 100 microseconds, until it has come often enough where it is wanted.
static void begin_signals(void (*handler)(int, siginfo_t *, void *), const char *function) {
    void *place = dlsym(RTLD_DEFAULT, function);
    check(dl_iterate_phdr(find_library, place) == 1, "no library");
    struct sigaction action = {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    check(sigaction(SIGALRM, &action, nullptr) == 0, "sigaction");
    struct itimerval every = {{0, 100}, {0, 100}};
    check(setitimer(ITIMER_REAL, &every, nullptr) == 0, "setitimer");
}

static void end_signals() {
    struct itimerval none = {};
    setitimer(ITIMER_REAL, &none, nullptr);
    signal(SIGALRM, SIG_IGN);
}

static volatile unsigned asked;

__attribute__((noinline)) static void during() {
    void *block = malloc(1 + asked % 100);
    asked = asked + 1;
    check(block != nullptr, "no memory");
    free(block);
}

static char *region;

__attribute__((noinline)) static void during_mmap() {
    void *found = mmap(region, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    check(found == region, "mmap");
    munmap(region, 8192);
}

__attribute__((noinline)) static void after() {
    for (unsigned i = 0; i < 100000; i++) {
        kept = malloc(1 + i % 200);
        check(kept != nullptr, "no memory");
        if (i % 2 == 0) {
            free(kept);
        }
    }
}

// `once`, until handlers have left it often enough.
static void jump_out_of(void (*once)(), const char *function, unsigned often) {
    begin_signals(jumps, function);
    while ((unsigned)within_library < often) {
        jumped = 0;
        if (by_context) {
            getcontext(&context_before);
        } else {
            (void)sigsetjmp(before, 1);
        }
        if (!jumped) {
            may_jump = 1;
            for (unsigned i = 0; i < 1000; i++) {
                once();
            }
        }
        may_jump = 0;
    }
    end_signals();
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    if (strcmp(what, "throw") == 0) {
        return throwing();
    }
    unsigned more = 0;
    by_context = strcmp(what, "context") == 0;
    if (by_context || strcmp(what, "malloc") == 0) {
        jump_out_of(during, "malloc", 300);
        more = (unsigned)handled; // a block may have come that was not counted
    } else if (strcmp(what, "mmap") == 0) {
        region = (char *)mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        check(region != MAP_FAILED, "mmap");
        jump_out_of(during_mmap, "mmap", 50);
        munmap(region, 8192);
    } else if (strcmp(what, "handler") == 0) {
        begin_signals(allocates, "malloc");
        while (within_library < 300) {
            during();
        }
        end_signals();
    } else {
        return 2;
    }
    after();
    printf("%d %u %u\n", (int)handled, asked, asked + more);
    return 0;
}
