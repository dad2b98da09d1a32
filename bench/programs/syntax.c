/*
 * syntax COUNT: an interpreter's tables: a tree of expressions, a symbol table with chains, lists of
 * statements; so many functions. As usual in C, all memory comes through one wrapper.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { NUMBER, VARIABLE, BINARY, CALL };

struct symbol {
    struct symbol *next;
    char *name;
    unsigned long hash;
    int depth;
};

struct expression {
    enum kind kind;
    int line;
    union {
        double number;
        struct symbol *symbol;
        struct {
            struct expression *left, *right;
            char operator;
        } binary;
        struct {
            struct symbol *function;
            struct expression **arguments;
            size_t count;
        } call;
    } of;
};

struct statement {
    struct statement *next;
    struct expression *value;
    long first, last;
};

struct function {
    struct function *next;
    struct symbol *name;
    struct statement *body;
    struct symbol **locals;
    size_t count;
};

struct table {
    struct symbol **buckets;
    size_t size, used;
};

static void *allocate(size_t size) {
    void *memory = malloc(size);
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static char *copy(const char *text) {
    char *made = allocate(strlen(text) + 1);
    return strcpy(made, text);
}

static void grow(struct table *table) {
    size_t size = table->size ? 2 * table->size : 64;
    struct symbol **buckets = calloc(size, sizeof(*buckets));
    for (size_t i = 0; i < table->size; i++) {
        for (struct symbol *symbol = table->buckets[i], *next; symbol != NULL; symbol = next) {
            next = symbol->next;
            symbol->next = buckets[symbol->hash % size];
            buckets[symbol->hash % size] = symbol;
        }
    }
    free(table->buckets);
    table->buckets = buckets;
    table->size = size;
}

static struct symbol *find(struct table *table, const char *name) {
    unsigned hash = 5381;
    for (const char *c = name; *c; c++) {
        hash = hash * 33 + (unsigned char)*c;
    }
    if (table->used >= table->size) {
        grow(table);
    }
    for (struct symbol *symbol = table->buckets[hash % table->size]; symbol != NULL; symbol = symbol->next) {
        if (strcmp(symbol->name, name) == 0) {
            return symbol;
        }
    }
    struct symbol *symbol = allocate(sizeof *symbol);
    symbol->name = copy(name);
    symbol->hash = hash;
    symbol->depth = 0;
    symbol->next = table->buckets[hash % table->size];
    table->buckets[hash % table->size] = symbol;
    table->used++;
    return symbol;
}

static struct expression *expression(enum kind kind, int line) {
    struct expression *made = allocate(sizeof(struct expression));
    made->kind = kind;
    made->line = line;
    return made;
}

static struct expression *number(double value, int line) {
    struct expression *made = expression(NUMBER, line);
    made->of.number = value;
    return made;
}

static struct expression *binary(struct table *table, int depth, int line) {
    if (depth == 0) {
        char name[32];
        snprintf(name, sizeof name, "variable_%d", line);
        struct expression *made = expression(VARIABLE, line);
        made->of.symbol = find(table, name);
        return made;
    }
    struct expression *made = expression(BINARY, line);
    made->of.binary.operator= '+';
    made->of.binary.left = binary(table, depth - 1, line);
    made->of.binary.right = number(depth, line);
    return made;
}

static struct expression *call(struct table *table, const char *name, size_t count, int line) {
    struct expression *made = expression(CALL, line);
    made->of.call.function = find(table, name);
    made->of.call.count = count;
    made->of.call.arguments = allocate(count * sizeof(struct expression *));
    for (size_t i = 0; i < count; i++) {
        made->of.call.arguments[i] = binary(table, 3, line);
    }
    return made;
}

int main(int count, char **words) {
    int functions = count > 1 ? atoi(words[1]) : 1000;
    struct table table = {NULL, 0, 0};
    struct function *all = NULL;
    unsigned long sum = 0;
    for (int f = 0; f < functions; f++) {
        char name[32];
        snprintf(name, sizeof name, "function_%d", f);
        struct function *function = allocate(sizeof *function);
        function->name = find(&table, name);
        function->body = NULL;
        function->count = 8;
        function->locals = allocate(function->count * sizeof(struct symbol *));
        for (size_t i = 0; i < function->count; i++) {
            function->locals[i] = function->name;
        }
        for (int line = 0; line < 10; line++) {
            struct statement *statement = allocate(sizeof(struct statement));
            statement->value = call(&table, name, 2, 10 * f + line);
            statement->first = statement->last = line;
            statement->next = function->body;
            function->body = statement;
        }
        function->next = all;
        all = function;
        sum += function->count;
    }
    printf("%lu %lu\n", sum, (unsigned long)table.used);
    return 0;
}
