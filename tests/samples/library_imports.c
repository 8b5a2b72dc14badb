/* Has every kind of import, in modules that are bound lazily. Each part of this file is a module.
 * The program prints "calls MODULE NAME COUNT". library_imports PLUGIN */
#include <stdio.h>

enum { ROUNDS = 10 };

int imports_versioned(void);
int imports_resolved(int value);
int imports_local(int value);
long imports_run(void);
__attribute__((weak)) int imports_never(void); /* no module defines it */
extern int imports_data;
extern __thread int imports_thread;

#if defined(PART_MORE)
/* A function with two versions, a function that a resolver chooses, and data that other modules
 * refer to. */
int imports_data = 7;
__thread int imports_thread = 5;
int versioned_old(void);
int versioned_new(void);

int versioned_old(void)
{
    return 1;
}

int versioned_new(void)
{
    return 2;
}

__asm__(".symver versioned_old, imports_versioned@V1");
__asm__(".symver versioned_new, imports_versioned@@V2");

static int resolved(int value)
{
    return value + imports_data;
}

static int (*resolve(void))(int)
{
    return resolved;
}

__attribute__((ifunc("resolve"))) int imports_resolved(int value);

#elif defined(PART_LOCAL)
/* Only the plugin's scope contains this function. */
int imports_local(int value)
{
    return value * 2;
}

#elif defined(PART_LIBRARY) || defined(PART_PLUGIN)
/* The library asks for the old version. The plugin, linked without PART_MORE, asks for none. */
#ifdef PART_LIBRARY
__asm__(".symver imports_versioned, imports_versioned@V1");
#endif

long imports_run(void)
{
    long sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        sum += imports_versioned() + imports_resolved(i);
#ifdef PART_PLUGIN
        sum += imports_local(i);
#else
        sum += imports_thread;
#endif
        sum += sum < 0 ? imports_never() : 0;
    }
    return sum;
}

#else
#include <dlfcn.h>

static void print_calls(const char *module, int has_local)
{
    printf("calls %s imports_versioned %d\n", module, ROUNDS);
    printf("calls %s imports_resolved %d\n", module, ROUNDS);
    if (has_local) {
        printf("calls %s imports_local %d\n", module, ROUNDS);
    }
}

int main(int argc, char **argv)
{
    imports_data++; /* changes the program's own copy of the data */
    printf("library %ld, new %d\n", imports_run(), imports_versioned());
    print_calls("liblibrary.so", 0);
    void *plugin = argc > 1 ? dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL) : NULL;
    if (plugin == NULL) {
        return 1;
    }
    long (*run)(void) = (long (*)(void))dlsym(plugin, "imports_run");
    printf("plugin %ld\n", run());
    print_calls("plugin.so", 1);
    return 0;
}
#endif
