#include "costs.h"
#include "account.h"
#include "calls.h"
#include "diagnostics.h"
#include "interception.h"
#include "settings.h"
#include "sites.h"
#include "space.h"

#define LOOPS 5
#define NOTE 0x5744U
#define TIMERS_ON 0x5754U
#define TIMERS_OFF 0x5755U
#define NATIVE 3

extern const u8 x32_costs_program[], x32_costs_program_end[];

static const char *const names[NATIVE + LOOPS + 1] = {"native-plain", "native-entering", "native-i386",
                                                      "plain",        "entering",        "entering-timed",
                                                      "i386",         "trapped",         "timers"};
/* Ticks of COSTS_CALLS calls, round by round; the program makes two rounds more, of which the first are not
 * kept. */
LARGE static u32 ticks[NATIVE + LOOPS + 1][COSTS_ROUNDS + 2];
static u32 rounds;

static u32 native_loop(long number, u64 argument) {
    u64 began = account_ticks();
    for (int i = 0; i < COSTS_CALLS; i++) {
        KERNEL_3(number, argument, 0, 0);
    }
    return (u32)(account_ticks() - began);
}

__attribute__((noreturn)) void costs_measure(void) {
    for (int i = 0; i < COSTS_ROUNDS + 2; i++) {
        ticks[0][i] = native_loop(__NR_getppid, 0);
        ticks[1][i] = native_loop(__NR_arch_prctl, 0);
        ticks[2][i] = native_loop(__NR_getdents64, ~0UL);
    }
    u64 size = (u64)(x32_costs_program_end - x32_costs_program);
    long text = space_map(0, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (failed(text)) {
        give_up(126, "no memory below 4 GiB: %s", error_name(-text));
    }
    u64 start = (u64)text + 64;
    copy_bytes((void *)start, x32_costs_program, size);
    KERNEL_3(__NR_mprotect, text, PAGE, PROT_READ | PROT_EXEC);
    sites_text((u64)text, PAGE);
    interception_begin(settings.valgrind, settings.seccomp);
    thread_settle(this_thread());
    x32_start((u64)text + 2 * PAGE - 64, start);
}

int costs_note(const struct frame *frame) {
    struct counts *counts = this_thread()->counts;
    u32 code = (u32)frame->rdi;
    if (code == TIMERS_ON) {
        settings.costs = 2;
        counts->sampled_ticks = 0;
    } else if (code == TIMERS_OFF) {
        settings.costs = 1;
        ticks[NATIVE + LOOPS][rounds] = (u32)counts->sampled_ticks;
    } else if (code >= NOTE && code < NOTE + LOOPS && rounds < COSTS_ROUNDS + 2) {
        ticks[NATIVE + code - NOTE][rounds] = (u32)frame->rsi;
        rounds += code == NOTE + LOOPS - 1;
    } else {
        return 0;
    }
    return 1;
}

/* A line for each: its name, then the ticks of COSTS_CALLS calls in each round. */
void costs_print(void) {
    for (int i = 0; i < NATIVE + LOOPS + 1; i++) {
        struct text line = {.size = 0};
        text_add(&line, "%s", names[i]);
        for (int round = 2; round < COSTS_ROUNDS + 2; round++) {
            text_add(&line, " %u", (u64)ticks[i][round]);
        }
        text_add(&line, "\n");
        text_write(&line, 1);
    }
}
