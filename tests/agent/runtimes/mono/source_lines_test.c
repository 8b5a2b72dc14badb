/* Reads symbol files of two formats, of one build of the sample Covered.cs, whole and damaged. */
#include "agent/runtimes/mono/assembly.h"
#include "agent/runtimes/mono/source_lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MDB_ID = 16, SOURCE_LINES = 64, MAIN_TOKEN = 18, FILE_BYTES = 64 * 1024 };

typedef struct seen_lines {
    uint32_t points;
    bool has[SOURCE_LINES];
    uint32_t main_offset; /* Offset of line 36 in Main. */
    bool is_named;
} seen_lines;

typedef struct symbol_file {
    uint8_t bytes[FILE_BYTES];
    size_t size;
} symbol_file;

static void load(const char *name, symbol_file *file)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", CORPUS, name);
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    file->size = fread(file->bytes, 1, sizeof(file->bytes), stream);
    fclose(stream);
    assert_true(file->size > 100 && file->size < sizeof(file->bytes));
}

static sj_status note_method(void *context, const sj_container_line *line)
{
    seen_lines *seen = context;
    seen->is_named =
        (seen->points == 0 || seen->is_named) && strcmp(line->file, "/src/Covered.cs") == 0;
    seen->points++;
    assert_true(line->line > 0 && line->line < SOURCE_LINES);
    if (line->token == MAIN_TOKEN && line->line == 36 && !seen->has[36]) {
        seen->main_offset = line->offset;
    }
    seen->has[line->line] = true;
    return SJ_OK;
}

static sj_slice whole(const symbol_file *file)
{
    return (sj_slice){.data = file->bytes, .size = file->size};
}

static sj_slice mdb_id(const symbol_file *file)
{
    return (sj_slice){.data = file->bytes + MDB_ID, .size = SJ_ASSEMBLY_ID_BYTES};
}

static sj_slice pdb_id(const symbol_file *file)
{
    sj_metadata metadata;
    assert_int_equal(sj_metadata_open(whole(file), &metadata), SJ_OK);
    return (sj_slice){.data = metadata.pdb.data, .size = SJ_PORTABLE_PDB_ID_BYTES};
}

/* Checks that exactly the lines that contain code have points, as the source shows. */
static void check_lines(const seen_lines *seen)
{
    static const uint8_t short_ones[] = {8, 11, 12, 13, 21, 22, 23, 24, 30};
    uint32_t count = 0;
    for (uint32_t line = 0; line < SOURCE_LINES; line++) {
        count += seen->has[line];
        assert_true(line < 33 || line > 49 || seen->has[line]);
    }
    for (size_t i = 0; i < sizeof(short_ones); i++) {
        assert_true(seen->has[short_ones[i]]);
    }
    assert_int_equal(count, sizeof(short_ones) + 49 - 33 + 1);
    assert_true(seen->is_named);
    assert_int_equal(seen->main_offset, 18);
}

static void read_embedded(const symbol_file *file, seen_lines *seen, sj_status expected)
{
    uint8_t bytes[SJ_PORTABLE_PDB_ID_BYTES];
    assert_true(sj_assembly_pdb_id(whole(file), bytes));
    const sj_slice id = {.data = bytes, .size = sizeof(bytes)};
    assert_int_equal(sj_embedded_pdb_read(whole(file), id, note_method, seen), expected);
}

/* The assembly with embedded symbols is another build, but line 36 of Main has the same offset. */
static void embedded_symbols_give_the_same_lines(void **state)
{
    static symbol_file file, pdb;
    uint32_t size = 0;
    seen_lines seen = {0};
    (void)state;
    load("embedded", &file);
    load("portable_pdb", &pdb);
    read_embedded(&file, &seen, SJ_OK);
    check_lines(&seen);
    assert_int_equal(sj_embedded_pdb_read(whole(&pdb), pdb_id(&pdb), note_method, &seen),
                     SJ_ENOTFOUND);
    /* The file states a size that is too large, too small, or impossible. */
    const sj_slice packed = sj_assembly_embedded_pdb(whole(&file), &size);
    assert_true(packed.size > 100 && size > packed.size);
    uint8_t *told = file.bytes + (packed.data - file.bytes) - sizeof(size);
    static const uint32_t others[] = {1, 0, UINT32_MAX, 1 << 27, 1 << 20};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        memcpy(told, &others[i], sizeof(size));
        read_embedded(&file, &seen, SJ_ECORRUPT);
    }
}

static void both_symbol_formats_give_the_same_lines(void **state)
{
    static symbol_file mdb, pdb;
    seen_lines of_mdb = {0};
    seen_lines of_pdb = {0};
    (void)state;
    load("mdb", &mdb);
    load("portable_pdb", &pdb);
    assert_int_equal(sj_mdb_read(whole(&mdb), mdb_id(&mdb), note_method, &of_mdb), SJ_OK);
    assert_int_equal(sj_portable_pdb_read(whole(&pdb), pdb_id(&pdb), note_method, &of_pdb), SJ_OK);
    check_lines(&of_mdb);
    check_lines(&of_pdb);
    assert_int_equal(of_mdb.points, of_pdb.points);
}

static void other_builds_and_files_are_refused(void **state)
{
    static symbol_file mdb, pdb;
    static const uint8_t other[SJ_PORTABLE_PDB_ID_BYTES] = {1};
    seen_lines seen = {0};
    (void)state;
    load("mdb", &mdb);
    load("portable_pdb", &pdb);
    const sj_slice mdb_other = {.data = other, .size = SJ_ASSEMBLY_ID_BYTES};
    const sj_slice pdb_other = {.data = other, .size = sizeof(other)};
    assert_int_equal(sj_mdb_read(whole(&mdb), mdb_other, note_method, &seen), SJ_EVERSION);
    assert_int_equal(sj_mdb_read(whole(&mdb), (sj_slice){0}, note_method, &seen), SJ_EVERSION);
    assert_int_equal(sj_mdb_read(whole(&pdb), pdb_id(&pdb), note_method, &seen), SJ_ECORRUPT);
    assert_int_equal(sj_portable_pdb_read(whole(&pdb), pdb_other, note_method, &seen), SJ_EVERSION);
    assert_int_equal(sj_portable_pdb_read(whole(&mdb), mdb_id(&mdb), note_method, &seen),
                     SJ_ECORRUPT);
    assert_int_equal(sj_mdb_read((sj_slice){0}, mdb_other, note_method, &seen), SJ_ECORRUPT);
    assert_int_equal(seen.points, 0);
}

/* The largest blob has the points of Main. */
static sj_slice largest_blob(const sj_metadata *metadata)
{
    sj_slice largest = {0};
    for (uint32_t at = 1; at < metadata->blobs.size; at++) {
        const sj_slice blob = sj_metadata_blob(metadata, at);
        if (blob.size != 0) {
            largest = blob.size > largest.size ? blob : largest;
            at = (uint32_t)(blob.data + blob.size - metadata->blobs.data) - 1;
        }
    }
    return largest;
}

/* Writes a signed number as in II.23.2: its sign is the lowest bit of 7, 14 or 29. */
static size_t put_signed(uint8_t *at, int32_t number)
{
    const uint32_t sign = number < 0;
    const uint32_t shifted = (uint32_t)number << 1;
    if (number >= -64 && number < 64) {
        at[0] = (uint8_t)((shifted & 0x7e) | sign);
        return 1;
    }
    const uint32_t bits = number >= -8192 && number < 8192
                              ? 0x80000000 | ((shifted & 0x3ffe) | sign) << 16
                              : 0xc0000000 | (shifted & 0x1ffffffe) | sign;
    const size_t size = bits >> 30 == 2 ? 2 : 4;
    for (size_t i = 0; i < size; i++) {
        at[i] = (uint8_t)(bits >> (24 - 8 * i));
    }
    return size;
}

enum { FIRST_LINE = 20000, STEPS = 10 };

static const int32_t line_steps[STEPS] = {-1,    -64,  63,    -65,    64,
                                          -8192, 8191, -8193, 100000, -100000};

/* Replaces the points of Main. The remaining bytes become hidden points. */
static void put_steps(uint8_t *at, size_t size)
{
    static const uint8_t first[] = {0, 0, 1, 0, 0xc0, 0, FIRST_LINE >> 8, FIRST_LINE & 0xff, 1};
    uint8_t *end = at + size;
    memcpy(at, first, sizeof(first));
    at += sizeof(first);
    for (size_t i = 0; i < STEPS; i++) {
        static const uint8_t point[] = {1, 1, 0};
        assert_true(end - at > 16);
        memcpy(at, point, sizeof(point));
        at += sizeof(point);
        at += put_signed(at, line_steps[i]);
        *at++ = 0; /* The column is unchanged. */
    }
    for (size_t i = 0; at != end; i++) {
        *at++ = i % 3 == 0;
    }
}

typedef struct seen_steps {
    size_t count;
    uint32_t lines[STEPS + 1];
} seen_steps;

static sj_status note_step(void *context, const sj_container_line *line)
{
    seen_steps *seen = context;
    if (line->token == MAIN_TOKEN && seen->count <= STEPS) {
        seen->lines[seen->count++] = line->line;
    }
    return SJ_OK;
}

static void steps_of_lines_of_any_size_are_read(void **state)
{
    static symbol_file pdb;
    sj_metadata metadata;
    seen_steps seen = {0};
    int32_t line = FIRST_LINE;
    (void)state;
    load("portable_pdb", &pdb);
    assert_int_equal(sj_metadata_open(whole(&pdb), &metadata), SJ_OK);
    const sj_slice points = largest_blob(&metadata);
    put_steps(pdb.bytes + (points.data - pdb.bytes), points.size);
    assert_int_equal(sj_portable_pdb_read(whole(&pdb), pdb_id(&pdb), note_step, &seen), SJ_OK);
    assert_int_equal(seen.count, STEPS + 1);
    for (size_t i = 0; i <= STEPS; i++) {
        assert_int_equal(seen.lines[i], line);
        line += i < STEPS ? line_steps[i] : 0;
    }
}

static sj_status count_only(void *context, const sj_container_line *line)
{
    size_t *count = context;
    *count += strlen(line->file);
    return SJ_OK;
}

/* Changes each byte in turn, and cuts the file at each byte. A copy in memory of its own lets a
 * sanitizer see reads beyond the file. */
static void damage(const symbol_file *file, bool is_mdb)
{
    size_t told = 0;
    for (size_t i = 0; i < 2 * file->size; i++) {
        const size_t place = i / 2;
        const size_t size = i % 2 == 0 ? file->size : place;
        uint8_t *copy = malloc(size != 0 ? size : 1);
        assert_non_null(copy);
        memcpy(copy, file->bytes, size);
        if (i % 2 == 0) {
            copy[place] ^= (uint8_t)(place % 3 == 0 ? 0xff : 1 << place % 8);
        }
        const sj_slice damaged = {.data = copy, .size = size};
        (void)!(is_mdb ? sj_mdb_read(damaged, mdb_id(file), count_only, &told)
                       : sj_portable_pdb_read(damaged, pdb_id(file), count_only, &told));
        free(copy);
    }
    assert_true(told > 0);
}

static void damage_embedded(const symbol_file *file)
{
    uint8_t bytes[SJ_PORTABLE_PDB_ID_BYTES];
    size_t told = 0;
    assert_true(sj_assembly_pdb_id(whole(file), bytes));
    const sj_slice id = {.data = bytes, .size = sizeof(bytes)};
    for (size_t place = 0; place < file->size; place++) {
        uint8_t *copy = malloc(file->size);
        assert_non_null(copy);
        memcpy(copy, file->bytes, file->size);
        copy[place] ^= (uint8_t)(place % 3 == 0 ? 0xff : 1 << place % 8);
        const sj_slice damaged = {.data = copy, .size = place % 5 == 0 ? place : file->size};
        (void)!sj_embedded_pdb_read(damaged, id, count_only, &told);
        free(copy);
    }
    assert_true(told > 0);
}

static void damaged_files_cause_no_wrong_access(void **state)
{
    static symbol_file file;
    (void)state;
    load("mdb", &file);
    damage(&file, true);
    load("portable_pdb", &file);
    damage(&file, false);
    load("embedded", &file);
    damage_embedded(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_symbol_formats_give_the_same_lines),
        cmocka_unit_test(embedded_symbols_give_the_same_lines),
        cmocka_unit_test(steps_of_lines_of_any_size_are_read),
        cmocka_unit_test(other_builds_and_files_are_refused),
        cmocka_unit_test(damaged_files_cause_no_wrong_access),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
