/* For each number that is given, frees a block with a function of another allocator family.
 * Afterwards frees blocks correctly. */
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

__attribute__((noinline)) static void delete_malloced(void *block)
{
    ::operator delete(block);
}

__attribute__((noinline)) static void free_new(void *block)
{
    free(block);
}

__attribute__((noinline)) static void delete_array(void *block)
{
    ::operator delete[](block);
}

__attribute__((noinline)) static void delete_one(void *block)
{
    ::operator delete(block, std::size_t(24));
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        switch (atoi(argv[i])) {
        case 1:
            delete_malloced(malloc(40));
            break;
        case 2:
            free_new(::operator new(50));
            break;
        case 3:
            delete_array(::operator new(60));
            break;
        case 4:
            delete_one(::operator new[](24));
            break;
        default:
            break;
        }
    }
    for (int i = 0; i < 100; i++) {
        delete new std::string(100, 'x');
        delete[] new int[10];
        delete new (std::nothrow) int;
        free(realloc(malloc(10), 20));
        std::free(std::calloc(2, 3));
    }
    puts("done");
}
