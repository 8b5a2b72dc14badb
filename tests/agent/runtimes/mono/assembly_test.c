/* Reads a whole assembly of the framework, undamaged and damaged: names are right, and memory stays
 * intact. SJ_LONG=1: damages it 200 times instead of 6. */
#include "agent/runtimes/mono/key_token.h"
#include "agent/runtimes/mono/methods.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ASSEMBLY "/usr/lib/mono/4.5/mscorlib.dll"

typedef struct seen_methods {
    uint32_t count;
    bool has_abort, has_compare, is_ordered;
    bool has_native, has_abstract; /* They have no code of their own. */
    size_t longest;
} seen_methods;

static sj_status note_method(void *context, uint32_t token, const char *name, bool has_code)
{
    seen_methods *seen = context;
    seen->is_ordered = (seen->count == 0 || seen->is_ordered) && token == seen->count + 1;
    seen->count++;
    seen->has_abort |= strcmp(name, "System.Threading.Thread:Abort()") == 0;
    seen->has_compare |=
        strcmp(name, "System.Collections.Generic.GenericComparer`1:Compare(T,T)") == 0;
    seen->has_native |= !has_code && strcmp(name, "System.Object:GetType()") == 0;
    seen->has_abstract |= !has_code && strcmp(name, "System.IO.Stream:Flush()") == 0;
    assert_true(has_code || strcmp(name, "System.Threading.Thread:Abort()") != 0);
    seen->longest = strlen(name) > seen->longest ? strlen(name) : seen->longest;
    assert_null(strpbrk(name, "\n\r\t"));
    return SJ_OK;
}

static sj_status refuse(void *context, uint32_t token, const char *name, bool has_code)
{
    (void)context;
    (void)token;
    (void)name;
    (void)has_code;
    return SJ_EFULL;
}

static void every_method_has_its_name(void **state)
{
    (void)state;
    seen_methods seen = {0};
    assert_int_equal(sj_mono_read_file(ASSEMBLY, (sj_slice){0}, note_method, &seen), SJ_OK);
    assert_true(seen.count > 20000 && seen.is_ordered);
    assert_true(seen.has_native && seen.has_abstract);
    assert_true(seen.has_abort && seen.has_compare);
    assert_true(seen.longest < SJ_MONO_NAME_BYTES);
}

static sj_status find_super(void *context, const char *name, const char *super)
{
    if (strcmp(name, "System.ArgumentNullException") == 0) {
        snprintf(context, 64, "%s", super != NULL ? super : "");
    }
    return SJ_OK;
}

static void the_superclass_of_each_class_is_read(void **state)
{
    (void)state;
    char super[64] = "";
    assert_int_equal(sj_mono_read_classes(ASSEMBLY, (sj_slice){0}, find_super, super), SJ_OK);
    assert_string_equal(super, "System.ArgumentException");
}

static uint64_t token_of(const char *text)
{
    return sj_key_token_of((sj_slice){.data = (const uint8_t *)text, .size = strlen(text)});
}

/* The hash is checked with examples from its standard and with the key of ECMA. */
static void tokens_of_public_keys_are_computed(void **state)
{
    (void)state;
    static const uint8_t ecma[16] = {[8] = 4};
    char long_text[201] = "";
    memset(long_text, 'a', sizeof(long_text) - 1);
    assert_int_equal(token_of("abc"), UINT64_C(0x9dd8d09c6cc25078));
    assert_int_equal(token_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
                     UINT64_C(0xf17046e5e52951f9));
    assert_int_equal(token_of(long_text), UINT64_C(0x404ac21971d7a26c));
    assert_int_equal(sj_key_token_of((sj_slice){.data = ecma, .size = sizeof(ecma)}),
                     UINT64_C(0xb77a5c561934e089));
    assert_true(sj_mono_is_framework(ASSEMBLY, (sj_slice){0}));
    assert_false(sj_mono_is_framework("/bin/sh", (sj_slice){0}));
}

static void other_files_are_refused(void **state)
{
    (void)state;
    static const uint8_t id[SJ_ASSEMBLY_ID_BYTES] = {1};
    const sj_slice other = {.data = id, .size = sizeof(id)};
    seen_methods seen = {0};
    assert_int_equal(sj_mono_read_file("/bin/sh", (sj_slice){0}, note_method, &seen), SJ_ECORRUPT);
    assert_int_equal(sj_mono_read_file("/nowhere", (sj_slice){0}, note_method, &seen),
                     SJ_ENOTFOUND);
    assert_int_equal(sj_mono_read_file("/dev/zero", (sj_slice){0}, note_method, &seen),
                     SJ_ECORRUPT);
    assert_int_equal(sj_mono_read_file(ASSEMBLY, other, note_method, &seen), SJ_EVERSION);
    assert_int_equal(seen.count, 0);
    assert_int_equal(sj_mono_read_file(ASSEMBLY, (sj_slice){0}, refuse, NULL), SJ_EFULL);
}

static uint8_t *load(size_t *size)
{
    FILE *file = fopen(ASSEMBLY, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static sj_status count_only(void *context, uint32_t token, const char *name, bool has_code)
{
    (void)token;
    (void)has_code;
    *(size_t *)context += strlen(name);
    return SJ_OK;
}

static void damaged_tables_cause_no_wrong_access(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = load(&size);
    uint64_t random = 1;
    size_t names = 0;
    const int rounds = getenv("SJ_LONG") != NULL ? 200 : 6;
    for (int round = 0; round < rounds; round++) {
        uint8_t *copy = malloc(size);
        assert_non_null(copy);
        memcpy(copy, bytes, size);
        for (int i = 0; i < 200; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407U;
            copy[(random >> 20) % size] = (uint8_t)(random >> 50);
        }
        const size_t cut = round % 3 == 0 ? (random >> 20) % size : size;
        sj_assembly assembly;
        if (sj_assembly_open((sj_slice){.data = copy, .size = cut}, &assembly) == SJ_OK) {
            assert_int_equal(sj_mono_each_method(&assembly, count_only, &names), SJ_OK);
        }
        free(copy);
    }
    assert_true(names > 0);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_has_its_name),
        cmocka_unit_test(the_superclass_of_each_class_is_read),
        cmocka_unit_test(tokens_of_public_keys_are_computed),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(damaged_tables_cause_no_wrong_access),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
