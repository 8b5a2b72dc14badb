// Mistakes with C++ objects, one for each number. The zombie monitor must find them.
#include <cstdio>
#include <cstdlib>
#include <list>
#include <memory>
#include <string>
#include <vector>

#define KEPT __attribute__((noinline))

static volatile int sink;

struct shape {
    long filler[5] = {1, 2, 3, 4, 5};
    virtual ~shape() = default;
    virtual int sides() const
    {
        return 0;
    }
};

struct square : shape {
    int sides() const override
    {
        return 4;
    }
};

KEPT static shape *make_shape()
{
    return new square;
}

KEPT static void drop_shape(shape *gone)
{
    delete gone;
    sink = 0;
}

KEPT static void count_sides(const shape *one)
{
    sink = one->sides() + 1;
}

KEPT static void read_filler(const volatile shape *one)
{
    sink = (int)one->filler[3];
}

KEPT static void call_after_delete()
{
    shape *one = make_shape();
    drop_shape(one);
    count_sides(one);
}

KEPT static void member_after_delete()
{
    shape *one = make_shape();
    drop_shape(one);
    read_filler(one);
}

KEPT static void delete_twice()
{
    square *one = static_cast<square *>(make_shape());
    ::operator delete(one);
    ::operator delete(one);
    sink = 2;
}

KEPT static void read_number(const volatile int *number)
{
    sink = *number;
}

KEPT static void element_after_growth()
{
    std::vector<int> numbers(7, 3);
    const int *third = &numbers[2];
    numbers.resize(900);
    read_number(third);
}

KEPT static void element_after_erase()
{
    std::list<int> numbers{1, 2, 3};
    const int *first = &numbers.front();
    numbers.pop_front();
    read_number(first);
}

KEPT static void read_letter(const volatile char *text)
{
    sink = text[40];
}

KEPT static void text_after_scope()
{
    const char *letters = nullptr;
    {
        std::string text(100, 'x');
        letters = text.c_str();
    }
    read_letter(letters);
}

KEPT static void pointer_after_reset()
{
    std::unique_ptr<shape> owner(make_shape());
    const shape *one = owner.get();
    owner.reset();
    read_filler(one);
}

static void (*const mistakes[])() = {call_after_delete,    member_after_delete, delete_twice,
                                     element_after_growth, element_after_erase, text_after_scope,
                                     pointer_after_reset};

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        mistakes[std::atoi(argv[i])]();
        std::printf("%s\n", argv[i]);
        std::fflush(stdout);
    }
    return 0;
}
