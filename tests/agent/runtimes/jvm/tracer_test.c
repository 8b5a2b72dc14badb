/* The tracing functions of the installed JVM are found with its symbols and without them, but only
 * if symbols and probes agree. The JVM's description of a class is read unchanged, or refused. */
#include "agent/runtimes/jvm/class_listing.h"
#include "agent/runtimes/jvm/tracer.h"
#include "tests/support/check.h"

#include <elf.h>

static void open_jvm(sj_elf *elf)
{
    assert_int_equal(sj_elf_open(JVM_LIBRARY, elf, NULL), SJ_OK);
}

static sj_elf_section *section_of(sj_elf *elf, const char *name)
{
    sj_elf_section *section = NULL;
    for (uint32_t i = 0; i < elf->section_count && section == NULL; i++) {
        section = strcmp(elf->sections[i].name, name) == 0 ? &elf->sections[i] : NULL;
    }
    assert_non_null(section);
    return section;
}

static void test_the_tracer_is_found_with_symbols_and_without(void **state)
{
    sj_elf elf;
    sj_tracer tracer;
    sj_tracer stripped;
    (void)state;
    open_jvm(&elf);
    assert_int_equal(sj_tracer_find(&elf, &tracer), SJ_OK);
    assert_true(tracer.entry != 0 && tracer.exit != 0 && tracer.entry != tracer.exit);
    section_of(&elf, ".symtab")->type = SHT_PROGBITS;
    assert_int_equal(sj_tracer_find(&elf, &stripped), SJ_OK);
    assert_int_equal(stripped.entry, tracer.entry);
    assert_int_equal(stripped.exit, tracer.exit);
    sj_elf_close(&elf);
}

static void test_the_tracer_is_not_found_without_its_probes(void **state)
{
    sj_elf elf;
    sj_tracer tracer;
    (void)state;
    open_jvm(&elf);
    sj_elf_section *base = section_of(&elf, ".stapsdt.base");
    base->address += 4096; /* The probes now lie in other functions than the symbols name. */
    assert_int_equal(sj_tracer_find(&elf, &tracer), SJ_ENOTFOUND);
    base->address -= 4096;
    section_of(&elf, ".note.stapsdt")->name = "";
    assert_int_equal(sj_tracer_find(&elf, &tracer), SJ_ENOTFOUND);
    sj_elf_close(&elf);
    assert_int_equal(sj_elf_open("/proc/self/exe", &elf, NULL), SJ_OK);
    assert_int_equal(sj_tracer_find(&elf, &tracer), SJ_ENOTFOUND);
    sj_elf_close(&elf);
}

static sj_status read_listing(const char *bytes, size_t size, sj_class_file *file)
{
    return sj_class_listing_read((sj_slice){(const uint8_t *)bytes, size}, file, NULL);
}

static void test_a_class_listing_of_the_jvm_is_parsed(void **state)
{
    /* The terminator of the last text is the string's own. */
    static const char listing[] = "a/B\0+run\0(I)V\0-gone\0()V";
    sj_class_file file;
    (void)state;
    assert_int_equal(read_listing(listing, sizeof(listing), &file), SJ_OK);
    assert_true(sj_class_text_is(file.name, "a/B"));
    assert_int_equal(file.method_count, 2);
    assert_true(sj_class_text_is(file.methods[0].name, "run"));
    assert_true(sj_class_text_is(file.methods[0].descriptor, "(I)V"));
    assert_int_not_equal(file.methods[0].code, 0);
    assert_int_equal(file.methods[1].code, 0);
    sj_class_file_deinit(&file);
    for (size_t size = 0; size < sizeof(listing); size++) {
        const bool is_whole = size == sizeof("a/B") || size == sizeof("a/B\0+run\0(I)V");
        assert_int_equal(read_listing(listing, size, &file), is_whole ? SJ_OK : SJ_ECORRUPT);
        sj_class_file_deinit(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_tracer_is_found_with_symbols_and_without),
        cmocka_unit_test(test_the_tracer_is_not_found_without_its_probes),
        cmocka_unit_test(test_a_class_listing_of_the_jvm_is_parsed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
