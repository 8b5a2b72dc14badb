// Uses of freed ordinary blocks. The delayed free list, the virtual tables of freed
// objects, and the guards by size and call site must find them. Each number selects one mistake.
// "-": reads the numbers from the lines of the input, and prints each when it is done.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <pthread.h>
#include <string>
#include <typeinfo>

#define KEPT __attribute__((noinline))

static volatile int sink;

struct named {
    virtual ~named() = default;
    virtual const char *name() const
    {
        return "named";
    }
    long filler[3] = {1, 2, 3};
};

struct counted {
    virtual ~counted() = default;
    virtual long count() const
    {
        return 7;
    }
    long number = 5;
};

struct big {
    long words[12];
};

namespace zoo
{
struct duck : named, counted {
    const char *name() const override
    {
        return "duck";
    }
    long count() const override
    {
        return 8;
    }
    virtual double speed() const
    {
        return 2.5;
    }
    virtual big measures() const
    {
        return big{{1}};
    }
};
} // namespace zoo

KEPT static char *make_block(size_t bytes)
{
    char *block = (char *)malloc(bytes);
    memset(block, 'x', bytes);
    return block;
}

KEPT static char *make_named_block(size_t bytes)
{
    char *block = (char *)malloc(bytes);
    sink = block != NULL;
    return block;
}

KEPT static void drop_block(char *block)
{
    free(block);
    sink = 0;
}

KEPT static void write_block(volatile char *block, long offset)
{
    block[offset] = 'y';
    sink = 1;
}

KEPT static void read_block(const volatile char *block, long offset)
{
    sink = block[offset];
}

KEPT static zoo::duck *make_duck()
{
    return new zoo::duck;
}

KEPT static void drop_duck(named *gone)
{
    delete gone;
    sink = 2;
}

KEPT static void write_after_free()
{
    char *block = make_block(100);
    drop_block(block);
    write_block(block, 40);
}

KEPT static void free_twice()
{
    char *block = make_block(64);
    drop_block(block);
    drop_block(block);
}

KEPT static void resize_freed()
{
    char *block = make_block(48);
    drop_block(block);
    block = (char *)realloc(block, 96);
    write_block(block, 95);
    sink = 3;
}

KEPT static void ask_name(const named *one)
{
    sink = one->name() == nullptr;
}

KEPT static void call_name()
{
    named *one = make_duck();
    drop_duck(one);
    ask_name(one);
}

KEPT static void ask_count(const counted *one)
{
    sink = (int)one->count() + 1;
}

KEPT static void call_count() // a virtual function of the second base class
{
    zoo::duck *one = make_duck();
    const counted *as_counted = one;
    drop_duck(one);
    ask_count(as_counted);
}

KEPT static void ask_speed(const zoo::duck *one)
{
    sink = (int)one->speed() + 1;
}

KEPT static void call_speed()
{
    zoo::duck *one = make_duck();
    drop_duck(one);
    ask_speed(one);
}

KEPT static void ask_measures(const zoo::duck *one)
{
    sink = (int)one->measures().words[1] + 1;
}

KEPT static void call_measures() // its result is in memory
{
    zoo::duck *one = make_duck();
    drop_duck(one);
    ask_measures(one);
}

KEPT static void delete_again()
{
    named *one = make_duck();
    drop_duck(one);
    drop_duck(one);
}

KEPT static void read_of_size() // 777 bytes are always guarded
{
    char *block = make_block(777);
    drop_block(block);
    read_block(block, 5);
}

KEPT static void read_of_site() // blocks that this function allocates are always guarded
{
    char *block = make_named_block(60);
    drop_block(block);
    read_block(block, 7);
}

// Grows a block. Its caller then writes to the old block through a kept pointer.
KEPT static char *grow(char *block)
{
    char *grown = (char *)realloc(block, 3000);
    sink = 5;
    return grown;
}

KEPT static void write_after_growing()
{
    char *block = make_block(120);
    char *grown = grow(block);
    write_block(block, 50);
    drop_block(grown);
}

// Has eight more virtual functions than the previous class.
template <int number> struct many : many<number - 1> {
    template <int place> using same = char (*)[number * 8 + place];
    virtual long call(same<0>) const
    {
        return 0;
    }
    virtual long call(same<1>) const
    {
        return 1;
    }
    virtual long call(same<2>) const
    {
        return 2;
    }
    virtual long call(same<3>) const
    {
        return 3;
    }
    virtual long call(same<4>) const
    {
        return 4;
    }
    virtual long call(same<5>) const
    {
        return 5;
    }
    virtual long call(same<6>) const
    {
        return 6;
    }
    virtual long call(same<7>) const
    {
        return 7;
    }
};

template <> struct many<0> {
    virtual ~many() = default;
};

enum { MANY = 50, LAST = MANY * 8 + 7 };

KEPT static void ask_last(const many<MANY> *one) // its 402nd virtual function
{
    sink = (int)one->call((char(*)[LAST]) nullptr) + 1;
}

KEPT static void drop_many(many<MANY> *gone)
{
    delete gone;
    sink = 4;
}

KEPT static void call_last()
{
    many<MANY> *one = new many<MANY>;
    drop_many(one);
    ask_last(one);
}

KEPT static void no_mistake()
{
    for (int i = 0; i < 20000; i++) {
        char *block = make_block((size_t)(i * 13 % 3000 + 1));
        block = (char *)realloc(block, (size_t)(i * 7 % 4000 + 1));
        write_block(block, (long)malloc_usable_size(block) - 1);
        drop_block(block);
        named *one = make_duck();
        ask_name(one);
        drop_duck(one);
    }
}

static void *work(void *unused)
{
    no_mistake();
    return unused;
}

KEPT static void threads_without_mistake()
{
    pthread_t threads[8];
    for (pthread_t &thread : threads) {
        pthread_create(&thread, nullptr, work, nullptr);
    }
    for (pthread_t &thread : threads) {
        pthread_join(thread, nullptr);
    }
}

static void (*const mistakes[])() = {no_mistake,          write_after_free, free_twice,
                                     resize_freed,        call_name,        call_count,
                                     call_speed,          call_measures,    delete_again,
                                     read_of_size,        read_of_site,     threads_without_mistake,
                                     write_after_growing, call_last};

static int obey(const char *word)
{
    const size_t number = strtoul(word, nullptr, 10);
    if (number >= sizeof(mistakes) / sizeof(mistakes[0])) {
        return 2;
    }
    mistakes[number]();
    puts(word);
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    static char line[64];
    int status = 0;
    if (argc == 2 && strcmp(argv[1], "-") == 0) {
        puts("ready");
        fflush(stdout);
        while (status == 0 && fgets(line, sizeof(line), stdin) != nullptr) {
            line[strcspn(line, "\n")] = '\0';
            status = obey(line);
        }
        return status;
    }
    for (int i = 1; i < argc && status == 0; i++) {
        status = obey(argv[i]);
    }
    return status;
}
