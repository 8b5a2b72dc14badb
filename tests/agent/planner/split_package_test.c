/* Tests limits on what is decompressed of a package of split debug data: only the index if no unit
 * is read, and never more than the limit in total. */
#include "agent/objfile/elf_image.h"
#include "agent/objfile/split_package.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

enum { ZEROS = 32 << 20, LIMIT = 1 << 30, COMPRESSED = 5, PATH_BYTES = 64, UNIT = 7, OTHER = 8 };

static const char *const names[COMPRESSED] = {".debug_info.dwo", ".debug_abbrev.dwo",
                                              ".debug_loc.dwo", ".debug_loclists.dwo",
                                              ".debug_str.dwo"};

/* Writes an index of one unit without parts. */
static void put_index(sj_byte_buffer *to)
{
    const uint32_t counts[] = {5, 0, 1, 2}; /* version, columns, units, slots */
    const uint64_t ids[] = {UNIT, 0};
    const uint32_t rows[] = {1, 0};
    sj_byte_buffer_put(to, counts, sizeof(counts));
    sj_byte_buffer_put(to, ids, sizeof(ids));
    sj_byte_buffer_put(to, rows, sizeof(rows));
}

/* Writes zeros, compressed, in a section whose header claims `said` bytes. */
static void put_zeros(sj_byte_buffer *to, size_t said)
{
    const Elf64_Chdr header = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = said, .ch_addralign = 1};
    uLongf size = compressBound(ZEROS);
    uint8_t *zeros = calloc(1, ZEROS);
    uint8_t *small = malloc(size);
    assert_true(zeros != NULL && small != NULL);
    assert_int_equal(compress2(small, &size, zeros, ZEROS, 1), Z_OK);
    sj_byte_buffer_put(to, &header, sizeof(header));
    sj_byte_buffer_put(to, small, size);
    free(zeros);
    free(small);
}

static void mark_compressed(sj_byte_buffer *image)
{
    Elf64_Ehdr header;
    memcpy(&header, image->bytes, sizeof(header));
    for (size_t i = 0; i < COMPRESSED; i++) { /* skips the empty section */
        Elf64_Shdr section;
        uint8_t *at = image->bytes + header.e_shoff + (i + 1) * sizeof(section);
        memcpy(&section, at, sizeof(section));
        section.sh_flags |= SHF_COMPRESSED;
        memcpy(at, &section, sizeof(section));
    }
}

static size_t most_memory(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (size_t)usage.ru_maxrss << 10;
}

/* Opens a package of zeros. The last compressed section claims `last` bytes. Writes to `before` the
 * most memory that was used until the package is opened. */
static sj_split_package *open_package(size_t last, size_t *before)
{
    char path[PATH_BYTES];
    sj_byte_buffer index = {0};
    sj_byte_buffer zeros[2] = {{0}, {0}};
    sj_byte_buffer image = {0};
    sj_elf_image_section sections[COMPRESSED + 1];
    sj_split_package *package = NULL;
    put_index(&index);
    put_zeros(&zeros[0], ZEROS);
    put_zeros(&zeros[1], last);
    for (size_t i = 0; i < COMPRESSED; i++) {
        const sj_byte_buffer *bytes = &zeros[i + 1 == COMPRESSED];
        sections[i] = (sj_elf_image_section){.name = names[i],
                                             .bytes = {.data = bytes->bytes, .size = bytes->size}};
    }
    sections[COMPRESSED] = (sj_elf_image_section){
        .name = ".debug_cu_index", .bytes = {.data = index.bytes, .size = index.size}};
    sj_elf_image_write(&image, EM_X86_64, sections, COMPRESSED + 1);
    assert_false(image.failed);
    mark_compressed(&image);
    const int file = memfd_create("package", MFD_CLOEXEC);
    assert_int_equal(write(file, image.bytes, image.size), image.size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    *before = most_memory();
    assert_int_equal(sj_split_package_open(path, &package), SJ_OK);
    close(file);
    sj_byte_buffer_deinit(&index);
    sj_byte_buffer_deinit(&zeros[0]);
    sj_byte_buffer_deinit(&zeros[1]);
    sj_byte_buffer_deinit(&image);
    return package;
}

static void test_a_missing_unit_inflates_no_section(void **state)
{
    (void)state;
    sj_byte_buffer file = {0};
    size_t before;
    sj_split_package *package = open_package(ZEROS, &before);
    assert_false(sj_split_package_has(package, OTHER));
    assert_int_equal(sj_split_package_extract(package, OTHER, &file), SJ_ENOTFOUND);
    assert_true(most_memory() - before < ZEROS);
    assert_true(sj_split_package_has(package, UNIT));
    assert_int_equal(sj_split_package_extract(package, UNIT, &file), SJ_ECORRUPT);
    sj_split_package_close(package);
}

/* Each section is within the limit, but all sections together exceed it. */
static void test_all_sections_of_a_unit_share_one_limit(void **state)
{
    (void)state;
    sj_byte_buffer file = {0};
    size_t before;
    sj_split_package *package = open_package(LIMIT, &before);
    assert_int_equal(sj_split_package_extract(package, UNIT, &file), SJ_ELIMIT);
    assert_int_equal(sj_split_package_extract(package, UNIT, &file), SJ_ELIMIT);
    sj_split_package_close(package);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_missing_unit_inflates_no_section),
        cmocka_unit_test(test_all_sections_of_a_unit_share_one_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
