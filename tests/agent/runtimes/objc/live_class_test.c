/* Reads classes in the memory of a process, here this one, as GCC's runtime and libobjc2 arrange
 * them. */
#include "agent/runtimes/objc/objc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct fake_class {
    const struct fake_class *meta;
    const struct fake_class *super;
    const char *name;
    uint64_t version;
    uint64_t info;
} fake_class;

static sj_live_class read_class(const fake_class *class, bool is_one)
{
    sj_live_class live;
    assert_int_equal(sj_objc_read_live_class(getpid(), (uint64_t)(uintptr_t) class, &live), is_one);
    return live;
}

static void check_pair(const fake_class *class, const fake_class *meta)
{
    sj_live_class live = read_class(class, true);
    assert_string_equal(live.name, "Made");
    assert_string_equal(live.super, "Root");
    assert_false(live.is_meta);
    live = read_class(meta, true);
    assert_string_equal(live.name, "Made");
    assert_true(live.is_meta);
}

static void classes_of_both_runtimes_are_read(void **state)
{
    (void)state;
    const uint64_t gcc = 8 | 4; /* Bits: resolved, initialized. */
    const uint64_t libobjc2 = 1 << 9 | 1 << 8 | 1 << 10;
    fake_class meta = {.name = "Root"};
    fake_class root = {.meta = &meta, .name = "Root"};
    fake_class made_meta = {.meta = &meta, .super = &meta, .name = "Made"};
    fake_class made = {.meta = &made_meta, .super = &root, .name = "Made"};
    meta.meta = &meta;
    meta.super = &root;
    root.info = made.info = gcc | 1;
    meta.info = made_meta.info = gcc | 2;
    check_pair(&made, &made_meta);
    root.info = made.info = libobjc2;
    meta.info = made_meta.info = libobjc2 | 1;
    check_pair(&made, &made_meta);
}

static void malformed_classes_are_not_read(void **state)
{
    (void)state;
    fake_class meta = {.name = "Root", .info = 2};
    fake_class class = {.meta = &meta, .name = "Root", .info = 2 | 1};
    meta.meta = &meta;
    (void)read_class(&class, false); /* A class of both kinds at once. */
    class.info = 1;
    (void)read_class(&class, true);
    class.name = "no\nname";
    (void)read_class(&class, false);
    class.name = "Root";
    class.meta = NULL;
    (void)read_class(&class, false);
    class.meta = &meta;
    meta.info = 4; /* Not a metaclass of either runtime. */
    (void)read_class(&class, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_of_both_runtimes_are_read),
        cmocka_unit_test(malformed_classes_are_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
