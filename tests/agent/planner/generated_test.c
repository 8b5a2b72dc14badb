/* Tests plans of generated code: methods as Mono compiles them. */
#include "agent/planner/generated.h"

#include "tests/support/check.h"

#include <elf.h>

#define BASE UINT64_C(0x41000000)

/* push %rbp; mov %rsp,%rbp; sub $0x10,%rsp; mov %r14,-8(%rbp) */
#define PROLOGUE 0x55, 0x48, 0x8b, 0xec, 0x48, 0x83, 0xec, 0x10, 0x4c, 0x89, 0x75, 0xf8
/* mov $5,%eax; mov -8(%rbp),%r14; leave; ret */
#define EPILOGUE 0xb8, 5, 0, 0, 0, 0x4c, 0x8b, 0x75, 0xf8, 0xc9, 0xc3
/* mov $1,%esi; mov $2,%edi; call somewhere, which throws */
#define THROW 0xbe, 1, 0, 0, 0, 0xbf, 2, 0, 0, 0, 0xe8, 0, 0x10, 0, 0

#define COUNT_OF(items) (sizeof(items) / sizeof(*(items)))

static sj_plan plan;

static const sj_plan_function *plan_one(const uint8_t *bytes, uint32_t size)
{
    const sj_generated_function function = {
        .address = BASE, .size = size, .function = 77, .bytes = bytes};
    sj_plan_free(&plan);
    assert_int_equal(sj_plan_make_generated(EM_X86_64, &function, 1, &plan), SJ_OK);
    assert_int_equal(sj_plan_check(plan.header, plan.size_bytes), SJ_OK);
    assert_int_equal(plan.header->function_count, 1);
    return sj_plan_functions(plan.header);
}

static bool touches(const sj_plan_function *function, uint32_t low, uint32_t high)
{
    const sj_plan_patch *patches = sj_plan_patches(plan.header) + function->first_patch;
    bool found = false;
    for (uint32_t i = 0; i < function->patch_count; i++) {
        found = found || (patches[i].offset < BASE + high &&
                          patches[i].offset + patches[i].bytes > BASE + low);
    }
    return found;
}

static void constants_after_code_that_throws_are_not_code(void **state)
{
    static const uint8_t bytes[] = {PROLOGUE, 0x85,  0xff, 0x0f, 0x84, 11,  0, 0, 0, /* je throw */
                                    EPILOGUE, THROW, 0x06, 0x06, 0x06, 0xff};
    (void)state;
    const sj_plan_function *function = plan_one(bytes, sizeof(bytes));
    assert_true(sj_plan_is_hooked(function));
    assert_int_equal(function->name, 77);
    assert_int_equal(function->source, SJ_SYMBOL_GENERATED);
    assert_int_equal(function->offset, BASE);
    assert_int_equal(function->patch_count, 2);
}

static void the_end_of_a_handler_ends_no_call(void **state)
{
    static const uint8_t bytes[] = {PROLOGUE, 0xeb, 10,         /* jmp over the handler */
                                    0x48,     0x89, 0x65, 0xf0, /* handler */
                                    0x90,     0x48, 0x8b, 0x65, 0xf0, 0xc3, EPILOGUE};
    enum { HANDLER = 14, HANDLER_END = 24 };
    (void)state;
    const sj_plan_function *function = plan_one(bytes, sizeof(bytes));
    assert_true(sj_plan_is_hooked(function));
    assert_int_equal(function->patch_count, 2);
    assert_false(touches(function, HANDLER, HANDLER_END));
}

/* Code that precedes a handler, starts one, leaves it, or ends a method. */
typedef struct piece {
    uint32_t size;
    uint8_t bytes[12];
} piece;

static const piece endings[] = {
    {2, {0xeb, 0xf9}},                             /* jmp back */
    {5, {0xe9, 0xf6, 0xff, 0xff, 0xff}},           /* jmp back */
    {10, {0xbf, 2, 0, 0, 0, 0xe8, 0, 0x10, 0, 0}}, /* mov $2,%edi; call, which throws */
    {5, {0x48, 0x8b, 0x65, 0xf0, 0xc3}},           /* mov -16(%rbp),%rsp; ret: of a handler */
};
static const piece beginnings[] = {
    {1, {0x90}},                             /* nop */
    {2, {0x33, 0xc0}},                       /* xor %eax,%eax */
    {4, {0x48, 0x89, 0x45, 0xe0}},           /* mov %rax,-32(%rbp) */
    {4, {0x48, 0x89, 0x65, 0xf0}},           /* mov %rsp,-16(%rbp) */
    {5, {0xb9, 7, 0, 0, 0}},                 /* mov $7,%ecx */
    {10, {0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7}}, /* movabs */
};
static const piece rests[] = {
    {0, {0}},
    {10, {0x48, 0xb9, 1, 2, 3, 4, 5, 6, 7}}, /* movabs */
    {2, {0xeb, 0}},                          /* jmp to the exit */
};
static const piece exits[] = {
    {2, {0xc9, 0xc3}},                         /* leave; ret */
    {6, {0x4c, 0x8b, 0x75, 0xf8, 0xc9, 0xc3}}, /* mov -8(%rbp),%r14; leave; ret */
    {4, {0x33, 0xc0, 0xc9, 0xc3}},             /* xor %eax,%eax; leave; ret */
    {8, {0xb8, 1, 0, 0, 0, 0x5e, 0x5d, 0xc3}}, /* mov $1,%eax; pop %rsi; pop %rbp; ret */
};

static uint32_t append(uint8_t *bytes, uint32_t at, const piece *more)
{
    memcpy(bytes + at, more->bytes, more->size);
    return at + more->size;
}

static bool covers(const sj_plan_function *function, uint32_t place)
{
    const sj_plan_patch *patches = sj_plan_patches(plan.header) + function->first_patch;
    bool found = false;
    for (uint32_t i = 0; i < function->patch_count; i++) {
        found = found || (patches[i].offset < BASE + place &&
                          patches[i].offset + patches[i].bytes > BASE + place);
    }
    return found;
}

/* Plans a method of the shape `number`. The start of its handler must not be covered, because the
 * runtime enters the handler by its own tables, which do not exist yet. True if the method is
 * hooked. */
static bool check_shape(uint32_t number)
{
    static const piece prologue = {8, {0x55, 0x48, 0x8b, 0xec, 0x48, 0x83, 0xec, 0x10}};
    uint8_t bytes[64];
    uint32_t at = append(bytes, 0, &prologue);
    at = append(bytes, at, &(piece){5, {0xe8, 0, 0x10, 0, 0}}); /* calls keep their place */
    at = append(bytes, at, &endings[number % COUNT_OF(endings)]);
    number /= COUNT_OF(endings);
    const uint32_t handler = at;
    at = append(bytes, at, &beginnings[number % COUNT_OF(beginnings)]);
    number /= COUNT_OF(beginnings);
    at = append(bytes, at, &rests[number % COUNT_OF(rests)]);
    number /= COUNT_OF(rests);
    at = append(bytes, at, &exits[number]);
    const sj_plan_function *function = plan_one(bytes, at);
    assert_false(covers(function, handler));
    return sj_plan_is_hooked(function);
}

static void patches_begin_at_handlers_or_avoid_them(void **state)
{
    enum { SHAPES = COUNT_OF(endings) * COUNT_OF(beginnings) * COUNT_OF(rests) * COUNT_OF(exits) };
    uint32_t hooked = 0;
    (void)state;
    for (uint32_t i = 0; i < SHAPES; i++) {
        hooked += check_shape(i);
    }
    assert_true(hooked > SHAPES * 3 / 4);
}

static void faulting_instructions_and_calls_are_not_moved(void **state)
{
    /* sub $8,%rsp; mov 0x10(%rdi),%rax; add $8,%rsp; ret */
    static const uint8_t faults[] = {0x48, 0x83, 0xec, 8,    0x48, 0x8b, 0x47,
                                     0x10, 0x48, 0x83, 0xc4, 8,    0xc3};
    /* sub $8,%rsp; nop; movabs $1,%r11; call *%r11; add $8,%rsp; ret */
    static const uint8_t calls[] = {0x48, 0x83, 0xec, 8,    0x90, 0x49, 0xbb, 1,    0,    0, 0,   0,
                                    0,    0,    0,    0x41, 0xff, 0xd3, 0x48, 0x83, 0xc4, 8, 0xc3};
    (void)state;
    const sj_plan_function *function = plan_one(faults, sizeof(faults));
    assert_false(sj_plan_is_hooked(function));
    assert_int_not_equal(function->skip, SJ_SKIP_NONE);
    function = plan_one(calls, sizeof(calls));
    assert_true(!sj_plan_is_hooked(function) || !touches(function, 5, 18));
}

static void functions_with_unknown_control_flow_are_not_hooked(void **state)
{
    static const uint8_t jumps[] = {PROLOGUE, 0xff, 0xe0, EPILOGUE}; /* jmp *%rax */
    static const uint8_t endless[] = {PROLOGUE, 0xeb, 0xfe};
    static const uint8_t cut[] = {PROLOGUE, 0xb8, 5};
    (void)state;
    assert_int_equal(plan_one(jumps, sizeof(jumps))->skip, SJ_SKIP_NO_CFI);
    assert_int_equal(plan_one(endless, sizeof(endless))->skip, SJ_SKIP_NO_CFI);
    assert_false(sj_plan_is_hooked(plan_one(cut, sizeof(cut))));
}

static void overlapping_and_distant_functions_are_refused(void **state)
{
    static const uint8_t bytes[] = {PROLOGUE, EPILOGUE};
    const sj_generated_function over[] = {
        {.address = BASE, .size = sizeof(bytes), .function = 1, .bytes = bytes},
        {.address = BASE + 4, .size = sizeof(bytes), .function = 2, .bytes = bytes}};
    const sj_generated_function far[] = {
        {.address = BASE, .size = sizeof(bytes), .function = 1, .bytes = bytes},
        {.address = BASE + SJ_GENERATED_SPAN_BYTES, .size = 8, .function = 2, .bytes = bytes}};
    (void)state;
    sj_plan_free(&plan);
    assert_int_equal(sj_plan_make_generated(EM_X86_64, over, 2, &plan), SJ_ECORRUPT);
    assert_int_equal(sj_plan_make_generated(EM_X86_64, far, 2, &plan), SJ_ECORRUPT);
    assert_int_equal(sj_plan_make_generated(EM_X86_64, over, 0, &plan), SJ_ECORRUPT);
    assert_int_equal(sj_plan_make_generated(EM_AARCH64, over, 1, &plan), SJ_EUNSUPPORTED);
}

static int free_plan(void **state)
{
    (void)state;
    sj_plan_free(&plan);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_after_code_that_throws_are_not_code),
        cmocka_unit_test(the_end_of_a_handler_ends_no_call),
        cmocka_unit_test(patches_begin_at_handlers_or_avoid_them),
        cmocka_unit_test(faulting_instructions_and_calls_are_not_moved),
        cmocka_unit_test(functions_with_unknown_control_flow_are_not_hooked),
        cmocka_unit_test(overlapping_and_distant_functions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, free_plan);
}
