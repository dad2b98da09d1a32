/* Known parts: an interpreter, whose functions allocate objects of several kinds through one function of the
   machine. The machine's members point to all kinds: the size of a block fits one of them by chance. */
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1000 };

struct kind_1 {
    void *own[1];
    int value;
};
struct kind_2 {
    void *own[3];
    int value;
};
struct kind_3 {
    void *own[5];
    int value;
};
struct kind_4 {
    void *own[7];
    int value;
};
struct kind_5 {
    void *own[9];
    int value;
};
struct slot {
    void *own[2];
    long number;
};
struct machine {
    struct kind_1 *first;
    struct kind_2 *second;
    struct kind_3 *third;
    struct kind_4 *fourth;
    struct kind_5 *fifth;
    struct slot *slot;
    void *kept[5 * COUNT];
    size_t number;
};

static struct machine machine;
struct slot *slots[COUNT];

// Behind the object's size is a table, whose size is that of another kind: 32 bytes with pointers of 8 bytes,
// 24 with those of 4.
#define TABLE(words) (16 + (words)*4 + sizeof(void *) * 2)

__attribute__((noinline)) static void *machine_alloc(struct machine *of, size_t bytes) {
    void *block = malloc(bytes);
    of->kept[of->number++] = block;
    return block;
}

__attribute__((noinline)) static void *fixed_alloc(struct machine *of, size_t bytes) {
    void *block = malloc(bytes);
    of->kept[of->number++] = block;
    return block;
}

__attribute__((noinline)) static size_t bytes_of_slot(void) { return sizeof(struct slot); }

// Its calls have one size each, and name a member in one line.
__attribute__((noinline)) static void make(struct machine *of, size_t index) {
    machine_alloc(of, TABLE(0));
    machine_alloc(of, TABLE(4));
    machine_alloc(of, TABLE(2));
    fixed_alloc(of, TABLE(12));
    of->slot = malloc(bytes_of_slot());
    slots[index] = of->slot;
}

int main(void) {
    for (size_t i = 0; i < COUNT; i++)
        make(&machine, i);
    printf("%zu\n", machine.number);
    return 0;
}
