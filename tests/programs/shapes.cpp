// Objects with virtual functions, 1000 of each class, whose classes a program without debug information
// names: by the virtual tables that constructors store. Prints the size of each class.
#include <cstdio>
#include <cstdlib>
#include <new>

struct Shape {
    virtual ~Shape();
    virtual long area() const = 0;
    Shape *next = nullptr;
};
Shape::~Shape() { std::puts(next == nullptr ? "" : " "); }

// Its constructor is called.
struct Square : Shape {
    explicit Square(long side);
    long area() const override;
    long side;
};
__attribute__((noinline)) Square::Square(long side) : side(side) {}
long Square::area() const { return side * side; }

// Its constructor is inlined, and calls that of its base.
struct Cube : Square {
    explicit Cube(long side) : Square(side), name("cube") {}
    long area() const override;
    const char *name;
};
long Cube::area() const { return 6 * side * side; }

struct Named {
    virtual ~Named();
    virtual const char *name() const { return text; }
    const char *text = "";
};
Named::~Named() = default;

namespace {
// Several bases, and a name that other files may have too.
struct Sign : Shape, Named {
    long area() const override { return 1; }
    const char *name() const override { return "sign"; }
    void *owner = nullptr;
};
} // namespace

// In memory that malloc gave, in another line.
struct Placed : Shape {
    long area() const override { return 2; }
    long values[3] = {1, 2, 3};
};

// One call of malloc for objects of two classes: the block's class is not known.
struct Even : Shape {
    long area() const override { return 0; }
    void *even[4] = {};
};
struct Odd : Shape {
    long area() const override { return 1; }
    void *odd[4] = {};
};

__attribute__((always_inline)) static inline void *room(std::size_t bytes) {
    void *found = std::malloc(bytes);
    if (found == nullptr) {
        std::abort();
    }
    return found;
}

__attribute__((noinline)) static Shape *either(int number) {
    void *found = std::malloc(sizeof(Even));
    if (found == nullptr) {
        return nullptr;
    }
    if (number % 2 == 0) {
        return ::new (found) Even;
    }
    return ::new (found) Odd;
}

// Objects that are destroyed in the function that makes them: a destructor stores the tables in the opposite
// order.
Cube *last;

__attribute__((noinline)) static long made_and_destroyed(int number) {
    Cube *cube = new Cube(number);
    last = cube;
    const long area = cube->area();
    if (number < 0) {
        delete cube;
        return 0;
    }
    return area;
}

static Shape *all;

static void keep(Shape *shape) {
    shape->next = all;
    all = shape;
}

int main() {
    long sum = 0;
    for (int i = 0; i < 1000; i++) {
        keep(new Square(i));
        sum += made_and_destroyed(i);
        keep(new Sign);
        keep(::new (room(sizeof(Placed))) Placed);
        keep(either(i));
    }
    for (const Shape *shape = all; shape != nullptr; shape = shape->next) {
        sum += shape->area();
    }
    std::printf("%zu %zu %zu %zu\n", sizeof(Square), sizeof(Cube), sizeof(Sign), sizeof(Placed));
    return sum == 0;
}
