/* Known truth for stacks that are small, and that come and go. Every stack has 256 KiB of forbidden memory
 * below it, so that a write below its end crashes. It ends with 0 if it saw nothing wrong.
 *
 *   small_stacks threads      8 threads with stacks of PTHREAD_STACK_MIN + 4 KiB
 *   small_stacks coroutines   4 coroutines with stacks of 16 KiB, which take turns
 *   small_stacks neighbour    a coroutine with a stack of 16 KiB, below which its neighbour's memory lies
 *   small_stacks handler      a handler on a stack of MINSIGSTKSZ + 4 KiB allocates. It interrupts a
 * coroutine, whose stack is unmapped then, and main, 100 times each small_stacks crowd        200 threads, 20
 * at a time, and 200 one after another. Each allocates once more when it ends
 *
 *   small_stacks errors       200 threads, one after another, whose last error of dlsym the C library frees
 * when they end. Prints by how many KiB the address space grows from the 20th to the last
 *
 * Each turn of work() asks for 5 blocks and gives all back: 8 * 4000, 4 * 4000, 4000 and 400 * 100 turns.
 * handler() asks for 200 blocks, farewell() for 400. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define GUARD ((size_t)256 << 10)
#define SMALL ((size_t)16 << 10)
#define TURNS 4000
#define COROUTINES 4

static void check(int right, const char *what) {
    if (!right) {
        fprintf(stderr, "small_stacks: %s: errno %d\n", what, errno);
        _exit(9);
    }
}

/* Memory with a guard on both sides. */
static char *guarded(size_t size) {
    char *whole = mmap(NULL, size + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(whole != MAP_FAILED, "mmap");
    check(mprotect(whole + GUARD, size, PROT_READ | PROT_WRITE) == 0, "mprotect");
    return whole + GUARD;
}

static void unguarded(char *stack, size_t size) {
    /* An interposed munmap does not see it. */
    check(syscall(SYS_munmap, stack - GUARD, size + 2 * GUARD) == 0, "munmap");
}

static size_t whole_pages(size_t size) { return (size + 4095) & ~(size_t)4095; }

__attribute__((noinline)) static void work(unsigned turns, void (*between)(void)) {
    for (unsigned turn = 0; turn < turns; turn++) {
        void *aligned = NULL;
        void *first = malloc(1 + turn % 500);
        void *second = calloc(1, 1 + turn % 300);
        void *third = realloc(second, 600);
        void *fourth = malloc(24);
        check(posix_memalign(&aligned, 64, 1 + turn % 100) == 0, "posix_memalign");
        check(first != NULL && third != NULL && fourth != NULL, "no memory");
        memset(first, 1, 1 + turn % 500);
        memset(third, 1, 600);
        if (between != NULL) {
            between();
        }
        free(fourth);
        free(first);
        free(aligned);
        free(third);
    }
}

static void *thread_work(void *turns) {
    work((unsigned)(uintptr_t)turns, NULL);
    return NULL;
}

static void threads(void) {
    pthread_t threads[8];
    size_t size = whole_pages((size_t)PTHREAD_STACK_MIN + 4096);
    for (int i = 0; i < 8; i++) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        check(pthread_attr_setstack(&attributes, guarded(size), size) == 0, "setstack");
        check(pthread_create(&threads[i], &attributes, thread_work, (void *)TURNS) == 0, "pthread_create");
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
    }
}

static ucontext_t main_context, contexts[COROUTINES];
static int current, over[COROUTINES];

static void yield(void) { check(swapcontext(&contexts[current], &main_context) == 0, "swapcontext"); }

static void coroutine(void) {
    work(TURNS, yield);
    over[current] = 1;
}

static void begin(int number, char *stack, size_t size, void (*function)(void)) {
    check(getcontext(&contexts[number]) == 0, "getcontext");
    contexts[number].uc_stack.ss_sp = stack;
    contexts[number].uc_stack.ss_size = size;
    contexts[number].uc_link = &main_context;
    over[number] = 0;
    makecontext(&contexts[number], function, 0);
}

static void go_on(int number) {
    current = number;
    check(swapcontext(&main_context, &contexts[number]) == 0, "swapcontext");
}

static void coroutines(void) {
    for (int i = 0; i < COROUTINES; i++) {
        begin(i, guarded(SMALL), SMALL, coroutine);
    }
    for (int left = COROUTINES; left > 0;) {
        left = 0;
        for (int i = 0; i < COROUTINES; i++) {
            if (!over[i]) {
                go_on(i);
                left += !over[i];
            }
        }
    }
}

static void neighbour(void) {
    char *memory = guarded(GUARD + SMALL);
    memset(memory, 0x5a, GUARD);
    begin(0, memory + GUARD, SMALL, coroutine);
    while (!over[0]) {
        go_on(0);
    }
    for (size_t i = 0; i < GUARD; i++) {
        check(memory[i] == 0x5a, "the memory below a stack was written to");
    }
}

static void *volatile of_handler;

/* Raised, not sent: the interrupted code is not inside malloc, so that the handler may call it. */
__attribute__((noinline)) static void handler(int number) {
    (void)number;
    of_handler = malloc(33);
    check(of_handler != NULL, "no memory");
    free(of_handler);
}

static void interrupted(void) {
    raise(SIGUSR1);
    over[current] = 1;
}

static void handlers(void) {
    size_t size = whole_pages((size_t)sysconf(_SC_MINSIGSTKSZ) + 4096);
    stack_t stack = {.ss_sp = guarded(size), .ss_size = size};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    check(sigaltstack(&stack, NULL) == 0, "sigaltstack");
    check(sigaction(SIGUSR1, &action, NULL) == 0, "sigaction");
    for (int i = 0; i < 100; i++) {
        char *coroutine_stack = guarded(SMALL);
        begin(0, coroutine_stack, SMALL, interrupted);
        go_on(0);
        check(over[0], "the coroutine has not ended");
        unguarded(coroutine_stack, SMALL);
        raise(SIGUSR1);
    }
}

static pthread_key_t key;

__attribute__((noinline)) static void farewell(void *block) {
    free(block);
    block = malloc(77);
    check(block != NULL, "no memory");
    free(block);
}

static void *one_of_the_crowd(void *nothing) {
    pthread_setspecific(key, malloc(55));
    work(100, NULL);
    return nothing;
}

static void crowd(void) {
    check(pthread_key_create(&key, farewell) == 0, "pthread_key_create");
    for (int together = 20; together > 0; together -= 19) {
        for (int i = 0; i < 200; i += together) {
            pthread_t threads[20];
            for (int j = 0; j < together; j++) {
                check(pthread_create(&threads[j], NULL, one_of_the_crowd, NULL) == 0, "pthread_create");
            }
            for (int j = 0; j < together; j++) {
                pthread_join(threads[j], NULL);
            }
        }
    }
}

static void *one_with_an_error(void *nothing) {
    check(dlsym(RTLD_DEFAULT, "no such function") == NULL, "dlsym");
    return nothing;
}

static long address_space(void) {
    char text[64] = "";
    int file = open("/proc/self/statm", O_RDONLY);
    check(file >= 0 && read(file, text, sizeof text - 1) > 0, "statm");
    close(file);
    return strtol(text, NULL, 10) * 4;
}

static void errors(void) {
    long before = 0;
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        check(pthread_create(&thread, NULL, one_with_an_error, NULL) == 0, "pthread_create");
        pthread_join(thread, NULL);
        before = i < 20 ? address_space() : before;
    }
    printf("%ld\n", address_space() - before);
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    if (strcmp(what, "threads") == 0) {
        threads();
    } else if (strcmp(what, "coroutines") == 0) {
        coroutines();
    } else if (strcmp(what, "neighbour") == 0) {
        neighbour();
    } else if (strcmp(what, "handler") == 0) {
        handlers();
    } else if (strcmp(what, "crowd") == 0) {
        crowd();
    } else if (strcmp(what, "errors") == 0) {
        errors();
    } else {
        return 2;
    }
    return 0;
}
