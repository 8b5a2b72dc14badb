#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <vector>
#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noipa))
#endif
#define USED __asm__ volatile("nop; nop; nop" : : : "memory");
enum class color { RED, GREEN = 5 };
struct base {
    short low;
};
struct inner {
    int a;
    double b;
};
struct record : base {
    color of;
    inner both;
    const char *text;
    unsigned char bytes[8];
    long far[20];
    long last;
};
extern "C" {
KEPT int by_pointer(const record *from, int behind)
{
    USED return from == nullptr ? -1 : behind + from->both.a;
}
KEPT int by_reference(const inner &from, std::vector<int> &numbers)
{
    USED return from.a + static_cast<int>(numbers.size());
}
KEPT int by_address(std::vector<inner> copies)
{
    USED return static_cast<int>(copies.size());
}
KEPT int at_end(const inner *from)
{
    USED return from == nullptr;
}
}
int main()
{
    record one{{-7}, color::GREEN, {41, 0.5}, "text", {1}, {2}, 3};
    const inner other{6, -1.25};
    std::vector<int> numbers{1, 2, 3};
    auto *heap = new record(one);
    heap->both.a = 42;
    by_pointer(&one, 1);
    by_pointer(heap, 2);
    by_pointer(nullptr, 3);
    by_reference(other, numbers);
    by_address({other, other});
    char *pages = static_cast<char *>(
        mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    munmap(pages + 4096, 4096);
    auto *last = reinterpret_cast<inner *>(pages + 4096 - 8);
    memcpy(pages + 4096 - 8, "\x09\0\0", 4);
    at_end(last); // its second half is in unmapped memory
    at_end(reinterpret_cast<inner *>(pages + 4096));
    delete heap;
    return 0;
}
