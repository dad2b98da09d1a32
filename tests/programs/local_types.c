/* Known parts: structures that are declared inside of functions. Two of them have one name, and one size in
 * LP64. */
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1000 };

void *kept[3 * COUNT];
int last;

__attribute__((noinline)) static void numbers(void) {
    struct local {
        void *next;
        char kind;
        long values[4];
    };
    struct local *made = malloc(sizeof *made);
    kept[last++] = made;
}

__attribute__((noinline)) static void pointers(void) {
    {
        struct local {
            void *all[6];
        };
        struct local *made = malloc(sizeof *made);
        kept[last++] = made;
    }
}

__attribute__((noinline)) static void named_in_the_line(void) {
    struct single {
        void *first;
        int second;
    };
    struct single *made = malloc(sizeof(struct single));
    kept[last++] = made;
}

int main(void) {
    for (int i = 0; i < COUNT; i++) {
        numbers();
        pointers();
        named_in_the_line();
    }
    return printf("%d\n", last) < 0;
}
