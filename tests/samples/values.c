/* Calls functions with known arguments and prints each argument and result on a line: function,
 * number of the call, position (0: the result), kind, value. With an argument, calls val_odd until
 * it is killed. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __clang__
#define NOT_INLINED __attribute__((noinline))
#else
#define NOT_INLINED __attribute__((noipa))
#endif

/* For a structure in memory, the caller passes a pointer before the other arguments. AArch64 uses a
 * separate register for it. */
#ifdef __x86_64__
enum { BEHIND_RESULT = 2 };
#else
enum { BEHIND_RESULT = 1 };
#endif

typedef struct triple {
    double x;
    double y;
    double z;
} triple;

int val_whole(int a, unsigned b, long c, unsigned long d, signed char e, bool f);
double val_real(float a, double b, int c);
float val_single(int a, double b);
const char *val_text(const char *a, const char *b);
bool val_odd(long a);
long val_tail(long a);
triple val_memory(int a);
void *val_pointer(void *a);

static volatile long sink;

NOT_INLINED int val_whole(int a, unsigned b, long c, unsigned long d, signed char e, bool f)
{
    sink += a + (long)b + c + (long)d + e + f;
    return a - 1;
}

NOT_INLINED double val_real(float a, double b, int c)
{
    sink += c;
    return (double)a * b;
}

NOT_INLINED float val_single(int a, double b)
{
    sink += a;
    return (float)b / 2;
}

NOT_INLINED const char *val_text(const char *a, const char *b)
{
    sink += a != NULL && b != NULL;
    return b;
}

NOT_INLINED bool val_odd(long a)
{
    sink++;
    return a % 2 != 0;
}

/* In optimized code, this ends with a jump to val_odd. Its own result is then not recorded. */
NOT_INLINED long val_tail(long a)
{
    sink++;
    return val_odd(a + 1);
}

NOT_INLINED triple val_memory(int a)
{
    sink++;
    return (triple){a, a * 2.0, a * 3.0};
}

NOT_INLINED void *val_pointer(void *a)
{
    sink++;
    return (char *)a + 16;
}

static void tell_text(const char *function, int call, int position, const char *text)
{
    printf("%s %d %d string %s\n", function, call, position, text);
}

static void whole(int call, int a, unsigned b, long c, unsigned long d, signed char e, bool f)
{
    const int result = val_whole(a, b, c, d, e, f);
    printf("val_whole %d 1 int %d\nval_whole %d 2 uint %u\nval_whole %d 3 long %ld\n", call, a,
           call, b, call, c);
    printf("val_whole %d 4 ulong %lu\nval_whole %d 5 char %d\nval_whole %d 6 bool %d\n", call, d,
           call, e, call, f);
    printf("val_whole %d 0 int %d\n", call, result);
}

static void real(int call, float a, double b, int c)
{
    const double result = val_real(a, b, c);
    printf("val_real %d 1 float %.17g\nval_real %d 2 double %.17g\nval_real %d 1 int %d\n", call,
           (double)a, call, b, call, c);
    printf("val_real %d 0 double %.17g\n", call, result);
    const float single = val_single(c, b);
    printf("val_single %d 1 double %.17g\nval_single %d 0 float %.17g\n", call, b, call,
           (double)single);
}

/* Returns the end of a page behind which no memory can be read. Texts are placed before it: one
 * ends there, another has no end. */
static char *page_end(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages + page, page);
    return pages + page;
}

static void texts(void)
{
    char *end = page_end();
    char longer[80];
    memset(longer, 'x', sizeof(longer));
    longer[79] = '\0';
    memcpy(end - 6, "edge\0z", 6);
    memcpy(end - 21, "0123456789abcde", 15);
    (void)val_text("hello", "");
    tell_text("val_text", 1, 1, "hello");
    tell_text("val_text", 1, 2, "");
    (void)val_text(longer, end - 6);
    printf("val_text 2 1 cut %.64s\n", longer);
    tell_text("val_text", 2, 2, "edge");
    memset(end - 6, 'e', 6);
    (void)val_text(NULL, (const char *)(uintptr_t)0x10);
    printf("val_text 3 1 null -\nval_text 3 2 unreadable -\n");
    (void)val_text(end - 3, "gr\xc3\xbc\xc3\x9f");
    printf("val_text 4 1 cut eee\n");
    tell_text("val_text", 4, 2, "gr\xc3\xbc\xc3\x9f");
}

int main(int argc, char **argv)
{
    (void)argv;
    for (long i = 0; argc > 1; i++) {
        (void)val_odd(i);
        usleep(200);
    }
    whole(1, -5, 4000000000U, -6000000000L, 18446744073709551615UL, -7, true);
    whole(2, 2147483647, 0, 9223372036854775807L, 0, 127, false);
    real(1, 1.5F, -2.25, 7);
    real(2, 0.1F, 1e300, -8);
    texts();
    for (int i = 1; i <= 20; i++) {
        const long value = (long)i * i;
        const bool odd = val_odd(value);
        printf("val_odd %d 1 long %ld\nval_odd %d 0 bool %d\n", i, value, i, odd);
    }
    for (int i = 1; i <= 3; i++) {
        const long result = val_tail(i);
        printf("val_odd %d 1 long %d\nval_odd %d 0 bool %ld\n", 20 + i, i + 1, 20 + i, result);
        printf("val_tail %d 1 long %d\nmaybe val_tail %d 0 long %ld\n", i, i, i, result);
    }
    const triple three = val_memory(9);
    printf("val_memory 1 %d int 9\n", BEHIND_RESULT);
    void *pointer = val_pointer((void *)(uintptr_t)0x7f0000001000);
    printf("val_pointer 1 1 hex 0x7f0000001000\nval_pointer 1 0 pointer 0x%" PRIxPTR "\n",
           (uintptr_t)pointer);
    return three.z == 27.0 ? 0 : 1;
}
