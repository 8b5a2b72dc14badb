/* Sends messages of every kind through the sample dispatcher and checks the results. `hook` is
 * called first, `unhook` in the middle. Both may be NULL. */
#include "messages.h"

#include "dispatcher.h"

#include <complex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

typedef struct Big {
    double reals[4];
    long whole[6];
} Big;
typedef struct Mixed {
    long whole;
    double real;
} Mixed;

#if defined(__x86_64__)
#define SEND_BIG objc_msgSend_stret
#else
#define SEND_BIG objc_msgSend
#endif

static sample_class base, base_meta, derived, derived_meta;
static sample_object object = {.isa = &derived};
static int failures;
static int frames_seen;
static jmp_buf buffer;

#define CHECK(...)                                                                                 \
    do {                                                                                           \
        if (!(__VA_ARGS__)) {                                                                      \
            failures++;                                                                            \
            printf("FAILED line %d: %s\n", __LINE__, #__VA_ARGS__);                                \
        }                                                                                          \
    } while (0)

#define SELECTOR(name) sel_registerName(name)

static long recurse(sample_object *self, sample_selector selector, long depth)
{
    long (*send)(sample_object *, sample_selector, long) = (void *)objc_msgSend;
    return depth != 0 ? depth + send(self, selector, depth - 1) : 0;
}

static double many(sample_object *self, sample_selector selector, long a, long b, long c, long d,
                   long e, long f, long g, double h, double i, double j, double k, double l,
                   double m, double n, double o, double p)
{
    (void)self;
    (void)selector;
    return a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8 + i * 9 + j * 10 + k * 11 +
           l * 12 + m * 13 + n * 14 + o * 15 + p * 16;
}

static Big big(sample_object *self, sample_selector selector, Big value, int times)
{
    Big (*send)(sample_object *, sample_selector, Big, int) = (void *)SEND_BIG;
    if (times != 0) {
        value = send(self, selector, value, times - 1);
        value.reals[0] += 1;
        value.whole[5] += 2;
    }
    return value;
}

static Mixed mixed(sample_object *self, sample_selector selector, long whole)
{
    (void)self;
    (void)selector;
    return (Mixed){whole, (double)whole * 1.5};
}

static long double triple(sample_object *self, sample_selector selector, long double value)
{
    (void)self;
    (void)selector;
    return value * 3;
}

static _Complex double conjugate(sample_object *self, sample_selector selector,
                                 _Complex double value)
{
    (void)self;
    (void)selector;
    return conj(value);
}

static int sum_of(sample_object *self, sample_selector selector, int count, ...)
{
    va_list arguments;
    double sum = 0;
    (void)self;
    (void)selector;
    va_start(arguments, count);
    for (int i = 0; i < count; i++) {
        sum += va_arg(arguments, double);
    }
    va_end(arguments);
    return (int)sum;
}

static long forward(sample_object *self, sample_selector selector, long value)
{
    (void)self;
    CHECK(strcmp(selector, "unknown:") == 0);
    return value * 2;
}

static void jump(sample_object *self, sample_selector selector)
{
    (void)self;
    (void)selector;
    longjmp(buffer, 1);
}

static _Unwind_Reason_Code count_frame(struct _Unwind_Context *context, void *count)
{
    (void)context;
    ++*(int *)count;
    return _URC_NO_REASON;
}

/* Calls itself through `depth` messages, then counts the stack frames that the unwinder finds. */
static long unwind(sample_object *self, sample_selector selector, long depth)
{
    long (*send)(sample_object *, sample_selector, long) = (void *)objc_msgSend;
    if (depth != 0) {
        return send(self, selector, depth - 1) + 1;
    }
    frames_seen = 0;
    _Unwind_Backtrace(count_frame, &frames_seen);
    return 0;
}

static void make_classes(void)
{
    sample_class_init(&base, &base_meta, NULL, "Base");
    sample_class_init(&derived, &derived_meta, &base, "Derived");
    sample_class_add(&base, "recurse:", (sample_code)recurse);
    sample_class_add(&base, "many", (sample_code)many);
    sample_class_add(&base, "big:", (sample_code)big);
    sample_class_add(&derived, "mixed:", (sample_code)mixed);
    sample_class_add(&derived, "triple:", (sample_code)triple);
    sample_class_add(&derived, "conjugate:", (sample_code)conjugate);
    sample_class_add(&derived, "sum:", (sample_code)sum_of);
    sample_class_add(&base, "forward", (sample_code)forward);
    sample_class_add(&base, "jump", (sample_code)jump);
    sample_class_add(&base, "unwind:", (sample_code)unwind);
    sample_class_add(&base_meta, "answer:", (sample_code)forward);
}

static void send_all(void)
{
    double (*send_many)(void *, sample_selector, long, long, long, long, long, long, long, double,
                        double, double, double, double, double, double, double, double) =
        (void *)objc_msgSend;
    long (*send_long)(void *, sample_selector, long) = (void *)objc_msgSend;
    Big (*send_big)(void *, sample_selector, Big, int) = (void *)SEND_BIG;
    Mixed (*send_mixed)(void *, sample_selector, long) = (void *)objc_msgSend;
    long double (*send_triple)(void *, sample_selector, long double) = (void *)objc_msgSend;
    _Complex double (*send_complex)(void *, sample_selector, _Complex double) =
        (void *)objc_msgSend;
    int (*send_sum)(void *, sample_selector, int, ...) = (void *)objc_msgSend;
    void (*send_void)(void *, sample_selector) = (void *)objc_msgSend;

    CHECK(send_many(&object, SELECTOR("many"), 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7, 8, 9) ==
          140 + 8 + 18 + 30 + 44 + 60 + 78 + 98 + 120 + 144);
    CHECK(send_long(&object, SELECTOR("recurse:"), 30) == 465);
    Big value = {{1, 2, 3, 4}, {1, 2, 3, 4, 5, 6}};
    value = send_big(&object, SELECTOR("big:"), value, 4);
    CHECK(value.reals[0] == 5 && value.reals[3] == 4 && value.whole[5] == 14);
    const Mixed pair = send_mixed(&object, SELECTOR("mixed:"), 4);
    CHECK(pair.whole == 4 && pair.real == 6);
    CHECK(send_triple(&object, SELECTOR("triple:"), 2.0L) == 6.0L);
    const _Complex double number = send_complex(&object, SELECTOR("conjugate:"), 3.0 + 4.0 * I);
    CHECK(creal(number) == 3 && cimag(number) == -4);
    CHECK(send_sum(&object, SELECTOR("sum:"), 4, 1.0, 2.0, 3.0, 4.5) == 10);
    CHECK(send_long(&object, SELECTOR("unknown:"), 21) == 42);
    CHECK(send_long(NULL, SELECTOR("recurse:"), 3) == 0);
    if (setjmp(buffer) == 0) {
        send_void(&object, SELECTOR("jump"));
        CHECK(0);
    }
    CHECK(send_long(&object, SELECTOR("recurse:"), 3) == 6);
}

static int count_frames(long depth)
{
    long (*send)(void *, sample_selector, long) = (void *)objc_msgSend;
    CHECK(send(&object, SELECTOR("unwind:"), depth) == depth);
    return frames_seen;
}

int send_messages(void (*hook)(void), void (*unhook)(void))
{
    make_classes();
    send_all();
    const int plain = count_frames(5) - count_frames(0);
    CHECK(plain == 5);
    if (hook != NULL) {
        hook();
        for (int i = 0; i < 3; i++) {
            send_all();
        }
        /* Each recorded call adds the frame of its thunk. No frame behind a thunk may be lost. */
        CHECK(count_frames(5) - count_frames(0) == 2 * plain);
    }
    if (unhook != NULL) {
        unhook();
        send_all();
        CHECK(count_frames(5) - count_frames(0) == plain);
    }
    return failures;
}
