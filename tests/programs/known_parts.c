// A program whose memory differs between ABIs by known parts. Everything stays until it ends.
//
// known_parts PART: `pointers` allocates COUNT nodes of two pointers each, and with `forked` a child writes
// to them, too; `variables` fills an array of pointers and one of long; `mapped` maps pages for 4 * COUNT
// pointers, and `shared` maps shared ones; `stack` fills a deep stack of pointers; `threads` fills THREADS
// stacks; `moved` is `pointers`, and frees small blocks of 2 * COUNT pointers before it allocates one block
// of half as many; `alternating FILE` is `pointers` and `mapped`, and every second run of an ABI maps MORE
// bytes besides. FILE has the number of runs.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT 500000
// As many pointers are 7.2 MB, and a stack of 8 MiB has room for them.
#define STACK_COUNT 900000
#define THREADS 8
#define MORE (8 << 20)
// Microseconds: long enough for the memory series.
#define PAUSE 300000

struct node {
    struct node *next, *other;
};

// Volatile: a compiler removes variables that are only written.
static struct node *volatile table[COUNT];
static volatile long numbers[COUNT];

static struct node *pointers(void) {
    struct node *head = NULL;
    for (int i = 0; i < COUNT; i++) {
        struct node *node = malloc(sizeof(struct node));
        if (node == NULL)
            abort();
        node->next = node->other = head;
        head = node;
    }
    if (head->next == NULL)
        abort();
    return head;
}

// Parent and child have all nodes, each its own.
static void forked(void) {
    struct node *head = pointers();
    pid_t child = fork();
    if (child < 0)
        abort();
    if (child == 0) {
        for (struct node *node = head; node != NULL; node = node->next)
            node->other = NULL;
        usleep(PAUSE);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void variables(void) {
    for (int i = 0; i < COUNT; i++) {
        table[i] = (struct node *)&numbers[i];
        numbers[i] = i;
    }
}

static void mapped(size_t bytes, int sharing) {
    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        abort();
    memset(block, 1, bytes);
}

// A stack of STACK_COUNT pointers.
static void *stack(void *argument) {
    struct node *volatile array[STACK_COUNT];
    for (int i = 0; i < STACK_COUNT; i++)
        array[i] = argument;
    if (argument != NULL)
        pthread_barrier_wait(argument);
    usleep(PAUSE);
    return array[STACK_COUNT / 2];
}

static void threads(void) {
    pthread_t all[THREADS];
    // All stacks are full before the first thread ends.
    pthread_barrier_t full;
    pthread_barrier_init(&full, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&all[i], NULL, stack, &full) != 0)
            abort();
    for (int i = 0; i < THREADS; i++)
        pthread_join(all[i], NULL);
}

// Most is resident for a few milliseconds, which no reading sees.
static void moved(void) {
    enum { SMALL = 1000, BYTES = 2 * COUNT * sizeof(void *) };
    pointers();
    // The first ones first: glibc keeps some of them, and returns no memory below one that it keeps.
    struct node *first = NULL, **end = &first;
    for (int i = 0; i < BYTES / SMALL; i++) {
        *end = malloc(SMALL);
        if (*end == NULL)
            abort();
        memset(*end, 1, SMALL);
        end = &(*end)->next;
    }
    *end = NULL;
    while (first != NULL) {
        struct node *next = first->next;
        free(first);
        first = next;
    }
    char *volatile large = malloc(BYTES / 2);
    if (large == NULL)
        abort();
    memset(large, 1, BYTES / 2);
}

static void alternating(const char *file) {
#ifdef __ILP32__
    const char *abi = "x32";
#else
    const char *abi = sizeof(void *) == 8 ? "x86-64" : "i386";
#endif
    char path[4096];
    snprintf(path, sizeof path, "%s.%s", file, abi);
    int runs = open(path, O_RDWR | O_CREAT | O_APPEND, 0600);
    if (runs < 0 || write(runs, "1", 1) != 1)
        abort();
    off_t number = lseek(runs, 0, SEEK_END);
    close(runs);
    pointers();
    mapped(COUNT * sizeof(void *) + number % 2 * MORE, MAP_PRIVATE);
}

int main(int count, char **words) {
    const char *part = count > 1 ? words[1] : "";
    if (strcmp(part, "pointers") == 0)
        pointers();
    if (strcmp(part, "forked") == 0)
        forked();
    if (strcmp(part, "variables") == 0)
        variables();
    if (strcmp(part, "mapped") == 0)
        mapped(4 * COUNT * sizeof(void *), MAP_PRIVATE);
    if (strcmp(part, "shared") == 0)
        mapped(4 * COUNT * sizeof(void *), MAP_SHARED);
    if (strcmp(part, "moved") == 0)
        moved();
    if (strcmp(part, "alternating") == 0 && count > 2)
        alternating(words[2]);
    if (strcmp(part, "stack") == 0)
        stack(NULL);
    if (strcmp(part, "threads") == 0)
        threads();
    /* Stacks have been read by now. */
    if (strcmp(part, "stack") != 0 && strcmp(part, "threads") != 0)
        usleep(PAUSE);
    puts(part);
    return 0;
}
