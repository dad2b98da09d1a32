#include "thread.h"
#include "account.h"
#include "interception.h"
#include "offsets.h"
#include "settings.h"
#include "signals.h"
#include "site_places.h"
#include "sites.h"

_Static_assert(offsetof(struct thread, self) == THREAD_SELF, "entry.S");
_Static_assert(offsetof(struct thread, program_rsp) == THREAD_PROGRAM_RSP, "entry.S");
_Static_assert(offsetof(struct thread, stack_top) == THREAD_STACK_TOP, "entry.S");
_Static_assert(offsetof(struct thread, pending) == THREAD_PENDING, "entry.S");
_Static_assert(offsetof(struct thread, held_count) == THREAD_HELD_COUNT, "entry.S");
_Static_assert(offsetof(struct thread, held_mask) == THREAD_HELD_MASK, "entry.S");
_Static_assert(offsetof(struct thread, resume_rip) == THREAD_RESUME_RIP, "entry.S");
_Static_assert(offsetof(struct thread, counts) == THREAD_COUNTS, "stubs.c");
_Static_assert(offsetof(struct thread, trap_mask) == THREAD_TRAP_MASK, "entry.S");
_Static_assert(offsetof(struct thread, puts_mask_back) == THREAD_PUTS_MASK_BACK, "entry.S");
_Static_assert(offsetof(struct thread, vdso_stack) == THREAD_VDSO_STACK, "vdso.S");
_Static_assert(offsetof(struct thread, vdso_back) == THREAD_VDSO_BACK, "entry.S");
_Static_assert(offsetof(struct counts, plain) == COUNTS_PLAIN, "stubs.c");
_Static_assert(offsetof(struct sigcontext, fpstate) == 184, "entry.S");
_Static_assert(offsetof(struct frame, r15) == FRAME_R15, "entry.S");
_Static_assert(offsetof(struct frame, rbx) == FRAME_RBX, "entry.S");
_Static_assert(offsetof(struct frame, r9) == FRAME_R9, "entry.S");
_Static_assert(offsetof(struct frame, rdi) == FRAME_RDI, "entry.S");
_Static_assert(offsetof(struct frame, trapped) == FRAME_TRAPPED, "entry.S");
_Static_assert(offsetof(struct frame, rax) == FRAME_RAX, "entry.S");
_Static_assert(offsetof(struct frame, rip) == FRAME_RIP, "entry.S");
_Static_assert(offsetof(struct frame, flags) == FRAME_FLAGS, "entry.S");

/* What the runtime's own code may need: the deepest translation keeps a few hundred bytes and one vector of
 * 64 pieces, and a held signal's vector registers 3 KiB. Pages that are not touched cost nothing. */
#define RUNTIME_STACK 0x8000UL

/* valgrind's frames are larger, and the vector registers are saved by hand. */
#define VALGRIND_ROOM 0x2000UL

u8 x32_has_wrgsbase;

static u64 handler_stack_size;
/* The first thread's, for processors whose signal frames are no larger than today's: no mapping of its own,
 * and no page tables for one. */
LARGE static u8 first_area[0x18000] __attribute__((aligned(PAGE)));

/* Under valgrind the handlers of ours work below all stacks of the program: callgrind takes a handler that
 * works above what it interrupts for one that was left by a jump, and ends when it returns (setup_bbcc in
 * callgrind/bbcc.c, post_signal in callgrind/threads.c). Programs begin at 4 MiB, those of lld at 2. */
#define LOW_STACKS_BEGIN 0x10000UL /* mmap_min_addr */
#define LOW_STACKS_END 0x400000UL
static u64 low_stacks;

static int is_free(u64 from, u64 to) {
    for (u64 page = from; page < to; page += PAGE) {
        u8 is_resident;
        if (KERNEL_3(__NR_mincore, page, PAGE, &is_resident) != -ENOMEM) {
            return 0;
        }
    }
    return 1;
}

/* When the program has been loaded, which may lie there. */
static u64 low_stack(u64 otherwise) {
    for (;;) {
        u64 at = LOW_STACKS_BEGIN + __atomic_fetch_add(&low_stacks, 1, __ATOMIC_RELAXED) * handler_stack_size;
        if (at + handler_stack_size > LOW_STACKS_END) {
            return otherwise;
        }
        if (is_free(at, at + handler_stack_size) &&
            !failed(KERNEL_6(__NR_mmap, at, handler_stack_size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0))) {
            return at;
        }
    }
}

static struct thread *lay_out(u64 area, u64 size) {
    struct thread *thread = (struct thread *)(area + size - ROUND_UP(sizeof(struct thread), 64));
    thread->self = thread;
    thread->stack_top = (u64)thread;
    thread->handler_stack = area;
    thread->handler_stack_size = handler_stack_size;
    thread->alternate.flags = SS_DISABLE;
    return thread;
}

static u64 area_size(void) { return handler_stack_size + RUNTIME_STACK; }

/* Areas of threads that have ended: a new one costs a mapping, its pages and their end, as much as half a
 * thread. */
#define KEPT 8
static struct thread *kept;
static u32 kept_count;

/* The thread that made it touches it, or other threads have their handlers in it: it must not be unmapped. */
static int has_others(const struct thread *thread) {
    return __atomic_load_n(&thread->is_known, __ATOMIC_ACQUIRE) == 0 ||
           __atomic_load_n(&thread->users, __ATOMIC_ACQUIRE) != 0;
}

/* Nothing touches the area any more. */
static int is_unused(const struct thread *thread) {
    return __atomic_load_n(&thread->has_left, __ATOMIC_ACQUIRE) != 0 && !has_others(thread);
}

static void let_handlers_go(struct thread *thread) {
    if (thread->owner != NULL) {
        __atomic_sub_fetch(&thread->owner->users, 1, __ATOMIC_RELEASE);
        thread->owner = NULL;
    }
}

static struct thread *take_kept(void) {
    sites_hold();
    struct thread **at = &kept;
    while (*at != NULL && !is_unused(*at)) {
        at = &(*at)->next;
    }
    struct thread *thread = *at;
    if (thread != NULL) {
        *at = thread->next;
        kept_count--;
    }
    sites_let_go();
    return thread;
}

static int keep(struct thread *thread) {
    sites_hold();
    /* Under valgrind each has a low stack, of which there are few. */
    int has_room = kept_count < KEPT || has_others(thread) || settings.valgrind;
    if (has_room) {
        kept_count++;
        thread->next = kept;
        kept = thread;
    }
    sites_let_go();
    return has_room;
}

struct thread *thread_make(void) {
    u64 size = area_size();
    struct thread *thread = kept != NULL ? take_kept() : NULL;
    long area = thread != NULL ? (long)thread->area
                               : KERNEL_6(__NR_mmap, 0, size, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (failed(area)) {
        return NULL;
    }
    u64 low = thread != NULL ? thread->handler_stack : 0;
    if (thread != NULL) {
        clear_bytes(thread, sizeof *thread);
    }
    thread = lay_out((u64)area, size);
    if (low != 0) {
        thread->handler_stack = low;
    }
    thread->area = (u64)area;
    thread->area_size = size;
    return thread;
}

void thread_unmake(struct thread *thread) {
    thread->has_left = thread->is_known = 1;
    let_handlers_go(thread);
    if (!keep(thread)) {
        account_area_gone(thread->area);
        KERNEL_2(__NR_munmap, thread->area, thread->area_size);
    }
}

void thread_made(struct thread *thread, u32 id) {
    if (!thread->is_process) {
        __atomic_store_n(&thread->id, id, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&thread->is_known, 1, __ATOMIC_RELEASE);
}

u32 thread_own_id(void) {
    struct thread *thread = this_thread();
    u32 id = __atomic_load_n(&thread->id, __ATOMIC_RELAXED);
    if (id == 0) {
        id = (u32)KERNEL_1(__NR_gettid, 0);
        __atomic_store_n(&thread->id, id, __ATOMIC_RELAXED);
    }
    return id;
}

void thread_end(struct thread *thread, u64 status, u64 number) {
    u64 all = ~0UL;
    KERNEL_4(__NR_rt_sigprocmask, SIG_SETMASK, &all, 0, 8);
    let_handlers_go(thread);
    if (keep(thread)) {
        x32_leave_area(&thread->has_left, status, number);
    }
    account_area_gone(thread->area);
    x32_end_thread(thread->area, thread->area_size, status, number);
}

void thread_settle(struct thread *thread) {
    if (settings.valgrind && thread->handler_stack > LOW_STACKS_END) {
        thread->handler_stack = low_stack(thread->handler_stack);
    }
    struct kernel_stack stack = {.sp = thread->handler_stack, .size = thread->handler_stack_size};
    KERNEL_2(__NR_sigaltstack, &stack, 0);
}

void thread_forked(struct thread *thread) {
    thread->id = 0;
    interception_arm_thread(thread->guards_sigsys);
}

void thread_arm(struct thread *thread) {
    thread_settle(thread);
    interception_arm_thread(thread->guards_sigsys);
}

void thread_die(struct thread *thread) {
    for (;;) {
        /* No call of the list, so the kernel does it. */
        KERNEL_2(__NR_munmap, thread, 0);
    }
}

int thread_adopt_first(u64 signal_frame_size) {
    /* The handler of a trap can be interrupted by a SIGSYS that was sent, that by a signal's, and each by
     * faults in reading the program's memory, or that are sent: five frames, and some room. */
    handler_stack_size = ROUND_UP(5 * signal_frame_size + 2 * PAGE, PAGE);
    if (settings.valgrind) {
        handler_stack_size += VALGRIND_ROOM;
    }
    struct thread *thread =
        area_size() <= sizeof first_area ? lay_out((u64)first_area, area_size()) : thread_make();
    if (thread == NULL) {
        return -ENOMEM;
    }
    thread->area = 0;
    if (x32_has_wrgsbase) {
        __asm__ volatile("wrgsbase %0" : : "r"(thread));
        return 0;
    }
    long result = KERNEL_2(__NR_arch_prctl, ARCH_SET_GS, thread);
    return failed(result) ? (int)result : 0;
}

void x32_thread_begin(struct frame *frame) {
    if (this_thread()->clears_handlers) {
        signals_after_clearing();
    }
    thread_arm(this_thread());
    frame->rax = 0;
    if (frame->trapped) {
        frame->rip = sites_go_on(frame->rip, 0, &frame->flags);
    }
}
