/*
 * What handlers may do: leave by a jump again and again, fork, exec, exit, make calls, be nested on two
 * stacks.
 */
#include "transcript.h"
#include <setjmp.h>
#include <sys/mman.h>

static sigjmp_buf back;
static char path[512];
static volatile int depth;
static void leaves(int number) { siglongjmp(back, number); }
static void forks(int number) {
    (void)number;
    pid_t child = fork();
    if (child == 0)
        _exit(14);
    ended("fork in a handler", child);
}
static void child_returns(int number) {
    (void)number;
    if (fork() == 0)
        depth = 100;
    else
        wait(NULL);
}
static void execs(int number) {
    (void)number;
    execl(path, "x", "state", NULL);
}
static void exits(int number) { exit(number); }
static void deep(int number) {
    char room[2000];
    memset(room, number, sizeof room);
    if (++depth < 50)
        raise(number);
    for (unsigned i = 0; i < sizeof room; i++)
        if (room[i] != number)
            say("the stack was overwritten");
}
static void by_two(int number) {
    if (number == SIGUSR1)
        raise(SIGUSR2);
    else
        depth += 1000;
}

int main(void) {
    snprintf(path, sizeof path, "%s/child-x32", getenv("PROGRAMS"));
    signal(SIGUSR1, leaves);
    volatile int jumps = 0;
    while (jumps < 5000)
        if (sigsetjmp(back, 1) == 0)
            raise(SIGUSR1);
        else
            jumps++;
    VALUE(jumps);
    signal(SIGUSR1, forks);
    raise(SIGUSR1);
    signal(SIGUSR1, child_returns);
    depth = 0;
    raise(SIGUSR1);
    if (depth == 100) {
        say("the child came back from the handler");
        _exit(0);
    }
    VALUE(depth);
    struct sigaction action = {.sa_handler = deep, .sa_flags = SA_NODEFER};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    VALUE(depth);
    char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = 65536}, NULL);
    action = (struct sigaction){.sa_handler = by_two, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_flags = 0;
    sigaction(SIGUSR2, &action, NULL);
    for (int i = 0; i < 5; i++)
        raise(SIGUSR1);
    VALUE(depth);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGTERM, exits);
        raise(SIGTERM);
    }
    ended("exit in a handler", child);
    child = fork();
    if (child == 0) {
        signal(SIGUSR1, execs);
        raise(SIGUSR1);
    }
    ended("exec in a handler", child);
    /* A frame that does not fit kills. */
    child = fork();
    if (child == 0) {
        signal(SIGUSR1, leaves);
        __asm__ volatile("mov %0, %%rsp\n mov $0x40000027, %%eax\n syscall\n mov %%eax, %%edi\n mov $10, "
                         "%%esi\n mov $0x4000003e, %%eax\n syscall\n ud2"
                         :
                         : "r"((uint64_t)(uintptr_t)0x11000)
                         : "memory");
    }
    ended("no room for the frame", child);
    /* A frame that is forged. */
    child = fork();
    if (child == 0) {
        __asm__ volatile("mov %0, %%rsp\n mov $0x40000201, %%eax\n syscall\n ud2"
                         :
                         : "r"((uint64_t)(uintptr_t)0x11000)
                         : "memory");
    }
    ended("no frame to return from", child);
    return 0;
}
