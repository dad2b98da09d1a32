/* Known truth for the heap recorder: every function of C's that gives memory, with sizes that say which it
 * was. It calls nothing else that allocates, and ends as its first word says:
 *
 *   heap return|exit|_exit|abort|kill|fork|threads N|signal exit|signal return|count FILE MICROSECONDS
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile kept;

static void keep(void *block) {
    if (block == NULL) {
        _exit(9);
    }
    kept = block;
}

/* 1 MiB at the end: neither the program's file nor reserved addresses are its memory. */
static void map_memory(void) {
    void *mine = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *other = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *reserved = mmap(NULL, 1 << 22, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int file = open("/proc/self/exe", O_RDONLY);
    void *own_file = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    if (mine == MAP_FAILED || other == MAP_FAILED || munmap(other, 1 << 16) != 0 || reserved == MAP_FAILED ||
        own_file == MAP_FAILED || close(file) != 0 ||
        mremap(mine, 1 << 16, 3 << 18, MREMAP_MAYMOVE) == MAP_FAILED ||
        mprotect(reserved, 1 << 18, PROT_READ | PROT_WRITE) != 0 ||
        mremap(own_file, 4096, 8192, MREMAP_MAYMOVE) == MAP_FAILED) {
        _exit(9);
    }
}

/* 11 blocks of some 1000 bytes come, and 2 of them go: 11065 bytes in all, 9053 at the end, which is the
 * most. */
static void every_function(void) {
    void *block = NULL;
    keep(malloc(1001));
    keep(calloc(1, 1002));
    keep(realloc(NULL, 1003));
    keep(realloc(kept, 1004)); /* 1003 goes */
    if (posix_memalign(&block, 64, 1005) != 0) {
        _exit(9);
    }
    keep(block);
    keep(aligned_alloc(128, 1006));
    keep(memalign(256, 1007));
    keep(reallocarray(NULL, 1, 1008));
    char text[1009];
    memset(text, 'x', sizeof text);
    text[1008] = 0;
    keep(strdup(text));        /* 1009 */
    keep(strndup(text, 2000)); /* 1009 too */
    free(kept);                /* and goes */
    keep(malloc(1011));
    map_memory();
    if (realloc(kept, (size_t)-1 - 8192) != NULL) { /* no room: 1011 stays */
        _exit(9);
    }
}

/* 100 blocks of 1 to 100 bytes, a thousand times; 50 of them are given back by another thread. */
static void *work(void *next) {
    void **slots = next;
    for (int turn = 0; turn < 1000; turn++) {
        void *blocks[100];
        for (int i = 0; i < 100; i++) {
            blocks[i] = malloc((size_t)i + 1);
            if (blocks[i] == NULL) {
                _exit(9);
            }
            memset(blocks[i], 1, (size_t)i + 1);
        }
        for (int i = 0; i < 50; i++) {
            free(__atomic_exchange_n(&slots[i], blocks[i], __ATOMIC_ACQ_REL));
        }
        for (int i = 50; i < 100; i++) {
            free(blocks[i]);
        }
    }
    return NULL;
}

static int child_returns;
static volatile sig_atomic_t is_child;

static void on_signal(int number) {
    (void)number;
    if (fork() == 0) {
        /* Not allowed, but some do. */
        free(malloc(5));
        if (!child_returns) {
            _exit(0);
        }
        is_child = 1;
    }
}

/* Blocks come and go until it is killed after so much work, wherever it is; the file says how many came. */
static void count_in(const char *path, unsigned microseconds) {
    int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(uint64_t)) != 0) {
        _exit(9);
    }
    volatile uint64_t *blocks = mmap(NULL, sizeof *blocks, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (blocks == MAP_FAILED) {
        _exit(9);
    }
    struct itimerval work = {.it_value = {.tv_usec = microseconds}};
    setitimer(ITIMER_VIRTUAL, &work, NULL);
    for (;;) {
        keep(malloc(64));
        ++*blocks;
        free(kept);
    }
}

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "return";
    if (strcmp(how, "threads") == 0) {
        static void *slots[50];
        pthread_t threads[64];
        int wanted = count > 2 ? atoi(words[2]) : 1;
        for (int i = 0; i < wanted; i++) {
            pthread_create(&threads[i], NULL, work, slots);
        }
        for (int i = 0; i < wanted; i++) {
            pthread_join(threads[i], NULL);
        }
        for (int i = 0; i < 50; i++) {
            free(slots[i]);
        }
        return 0;
    }
    if (strcmp(how, "signal") == 0) {
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
        child_returns = count > 2 && strcmp(words[2], "return") == 0;
        sigaction(SIGALRM, &action, NULL);
        keep(malloc(64)); /* glibc's first one holds a lock, which the child would wait for */
        free(kept);
        ualarm(1000, 1000);
        for (int i = 1; i < 2000000; i++) {
            keep(malloc(64));
            free(kept);
            if (is_child) {
                _exit(0);
            }
        }
        ualarm(0, 0);
        while (wait(NULL) > 0) {
        }
        return 0;
    }
    if (strcmp(how, "count") == 0 && count > 3) {
        count_in(words[2], (unsigned)atoi(words[3]));
    }
    every_function();
    if (strcmp(how, "fork") == 0) {
        if (fork() == 0) {
            free(kept); /* the parent's; it stays there */
            keep(malloc(2000));
            _exit(0);
        }
        wait(NULL);
    } else if (strcmp(how, "_exit") == 0) {
        _exit(0);
    } else if (strcmp(how, "exit") == 0) {
        exit(0);
    } else if (strcmp(how, "abort") == 0) {
        abort();
    } else if (strcmp(how, "kill") == 0) {
        kill(getpid(), SIGKILL);
    }
    return 0;
}
