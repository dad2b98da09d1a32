/*
 * Does a little work whose cost is known: natively on a kernel with x32 and under the runtime it must
 * cost the same, without the runtime's own.
 *
 * work touch KIB, work list TIMES, work threads COUNT, work forks COUNT
 */
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Does nothing; count.c sees it: `nopl 0x5744NNNN(%rax)`. */
#define MARK(number) __asm__ volatile(".byte 0x0f, 0x1f, 0x80, " #number ", 0, 0x44, 0x57" : : : "memory")

static unsigned long spin(unsigned long steps) {
    unsigned long sum = 1;
    for (unsigned long i = 0; i < steps; i++) {
        sum = sum * 69069 + (sum >> 3);
        __asm__ volatile("" : "+r"(sum));
    }
    return sum;
}

static void *work(void *argument) {
    char room[64 * 1024];
    memset(room, 1, sizeof room);
    __asm__ volatile("" : : "r"(room) : "memory");
    spin(100000);
    return argument;
}

static int work_of(const char *kind, long amount) {
    if (strcmp(kind, "touch") == 0) {
        char *block = malloc((size_t)amount * 1024);
        memset(block, 1, (size_t)amount * 1024);
        __asm__ volatile("" : : "r"(block) : "memory");
        spin(300000);
    } else if (strcmp(kind, "list") == 0) {
        for (long i = 0; i < amount; i++) {
            DIR *folder = opendir("/");
            while (readdir(folder) != NULL) {
            }
            closedir(folder);
        }
        spin(300000);
    } else if (strcmp(kind, "threads") == 0) {
        pthread_t threads[64];
        for (long i = 0; i < amount; i++) {
            pthread_create(&threads[i], NULL, work, NULL);
        }
        for (long i = 0; i < amount; i++) {
            pthread_join(threads[i], NULL);
        }
    } else if (strcmp(kind, "forks") == 0) {
        for (long i = 0; i < amount; i++) {
            if (fork() == 0) {
                _exit(spin(10000) == 0);
            }
            wait(NULL);
        }
    } else {
        return 1;
    }
    return 0;
}

int main(int count, char **words) {
    if (count != 3) {
        return 2;
    }
    MARK(1);
    int wrong = work_of(words[1], atol(words[2]));
    MARK(2);
    return wrong;
}
