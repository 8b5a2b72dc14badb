/* The quarantine behind an allocator of the test's own: blocks are named places of an array. */
#include "agent/inproc/heap_guard/internal.h"
#include "agent/inproc/heap_guard/objects.h"
#include "agent/inproc/heap_guard/trace.h"
#include "agent/inproc/heap_guard/virtual_tables.h"

#include "tests/support/check.h"

#include <link.h>
#include <stdlib.h>

enum { BLOCKS = 64, BLOCK_BYTES = 256, MANY_FUNCTIONS = SJ_VIRTUAL_FUNCTIONS + 1 };

typedef void (*free_function)(void *block);
typedef void *(*resize_function)(void *block, size_t bytes);

static __attribute__((aligned(16))) uint8_t blocks[BLOCKS][BLOCK_BYTES];
static uint32_t made;    /* blocks that were given out, one after the other */
static uint32_t freed;   /* blocks that came back */
static uint32_t resized; /* that the allocator resized itself */
static uint32_t asked;   /* for the size of what is no block */
static const void *last_freed;
static sj_zombie_region *region;

static bool is_block(const void *block)
{
    const uint64_t at = (uint64_t)((const uint8_t *)block - blocks[0]);
    return at < sizeof(blocks) && at % BLOCK_BYTES == 0;
}

static void take_back(void *block)
{
    assert_true(is_block(block));
    last_freed = block;
    freed++;
}

static size_t size_of(const void *block)
{
    asked += is_block(block) ? 0 : 1;
    return is_block(block) ? BLOCK_BYTES : SIZE_MAX;
}

static void *give_out(size_t bytes)
{
    (void)bytes;
    return made < BLOCKS ? blocks[made++] : NULL;
}

static void *resize(void *block, size_t bytes)
{
    (void)bytes;
    resized++;
    return block;
}

/* A class as compilers lay it out: a table with its type in front of it. */
static void method(void)
{
}

static const sj_type_head type = {.table = (uint64_t)(uintptr_t)&type,
                                  .name = (uint64_t)(uintptr_t) "4duck"};

typedef struct class_table {
    int64_t offset_to_top;
    uint64_t type;
    uint64_t functions[MANY_FUNCTIONS + 1];
} class_table;

static class_table few;
static class_table many;

static void fill_class(class_table *table, uint32_t functions)
{
    memset(table, 0, sizeof(*table));
    table->type = (uint64_t)(uintptr_t)&type;
    for (uint32_t i = 0; i < functions; i++) {
        table->functions[i] = (uint64_t)(uintptr_t)method;
    }
}

static int note_program(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    region->modules[0].bias = info->dlpi_addr;
    region->modules[0].text_high = (uint64_t)(uintptr_t)&blocks[BLOCKS] + (1 << 20);
    atomic_store(&region->module_count, 1);
    return 1; /* the first is the program */
}

static int set_up(void **state)
{
    (void)state;
    region = calloc(1, sizeof(*region));
    sj_custody_now = calloc(1, sizeof(*sj_custody_now));
    assert_true(region != NULL && sj_custody_now != NULL);
    (void)dl_iterate_phdr(note_program, NULL);
    region->settings.quarantine_blocks = 16;
    region->settings.quarantine_kib = 1024;
    region->settings.vtables = 1;
    region->settings.reports_per_minute = 100;
    region->heads[SJ_HEAD_FREE] = 1;
    region->heads[SJ_HEAD_REALLOC] = 2;
    region->heads[SJ_HEAD_USABLE_SIZE] = 3;
    sj_zombie_originals[SJ_HEAD_FREE] = (uint64_t)(uintptr_t)take_back;
    sj_zombie_originals[SJ_HEAD_USABLE_SIZE] = (uint64_t)(uintptr_t)size_of;
    sj_zombie_originals[SJ_HEAD_MALLOC] = (uint64_t)(uintptr_t)give_out;
    sj_zombie_originals[SJ_HEAD_REALLOC] = (uint64_t)(uintptr_t)resize;
    atomic_store(&sj_custody_now->shared.is_whole, 1);
    atomic_store(&sj_zombie_region_now, region);
    made = freed = resized = asked = 0;
    fill_class(&few, 3);
    fill_class(&many, MANY_FUNCTIONS);
    sj_quarantine_begin(region);
    return sj_quarantine_is_on() ? 0 : 1;
}

static int tear_down(void **state)
{
    (void)state;
    sj_quarantine_end();
    sj_quarantine_forget();
    atomic_store(&sj_zombie_region_now, NULL);
    free(sj_custody_now);
    sj_custody_now = NULL;
    free(region);
    return 0;
}

/* By the entry of the program's free. */
static void drop(void *block)
{
    const uint64_t entry = atomic_load(&sj_custody_now->keeps_by[SJ_HEAD_FREE]);
    assert_true(entry != 0);
    ((free_function)entry)(block);
}

static void *make_object(class_table *table)
{
    uint64_t *object = give_out(BLOCK_BYTES);
    object[0] = (uint64_t)(uintptr_t)table->functions;
    return object;
}

static void what_is_let_go_has_no_table_of_the_agent(void **state)
{
    (void)state;
    uint64_t *object = make_object(&few);
    drop(object);
    assert_true(freed == 0 && sj_virtual_is_table(object[0]));
    sj_quarantine_end();
    assert_true(freed == 1 && last_freed == object);
    assert_false(sj_virtual_is_table(object[0]));
    assert_int_equal(atomic_load(&region->counters.uses), 0);
}

static void resizing_a_freed_object_gives_it_back_without_a_table(void **state)
{
    (void)state;
    uint64_t *object = make_object(&few);
    drop(object);
    const uint64_t entry = atomic_load(&sj_custody_now->keeps_by[SJ_HEAD_REALLOC]);
    assert_ptr_equal(((resize_function)entry)(object, 8), object);
    assert_false(sj_virtual_is_table(object[0]));
    assert_true(resized == 1 && freed == 0);
    assert_int_equal(atomic_load(&region->counters.uses), 1);
    sj_quarantine_end();
    assert_int_equal(freed, 0); /* it is the allocator's again */
}

/* What calls a virtual function may be a copy anywhere, of which the allocator knows nothing. */
static void copies_are_not_taken_for_blocks(void **state)
{
    (void)state;
    static __attribute__((aligned(16))) uint64_t copy[BLOCK_BYTES / sizeof(uint64_t)];
    uint64_t *object = make_object(&few);
    drop(object);
    memcpy(copy, object, sizeof(copy));
    assert_int_equal(sj_virtual_answer((uint64_t)(uintptr_t)copy, 0, 1, 0), 0);
    assert_true(asked == 0 && atomic_load(&region->counters.uses) == 0);
    assert_null(sj_quarantine_find_object((uint64_t)(uintptr_t)copy));
    const sj_kept_block *kept = sj_quarantine_find_object((uint64_t)(uintptr_t)object);
    assert_true(kept != NULL && kept->address == (uint64_t)(uintptr_t)object);
    assert_int_equal(sj_virtual_answer((uint64_t)(uintptr_t)object, 0, 1, 0), 0);
    assert_int_equal(atomic_load(&region->counters.uses), 1);
}

/* More objects than places: each is found as long as it is kept, and none afterwards. */
static void all_objects_that_are_kept_are_found(void **state)
{
    (void)state;
    void *objects[40];
    for (uint32_t i = 0; i < 40; i++) {
        objects[i] = make_object(&few);
        drop(objects[i]);
    }
    assert_int_equal(freed, 24);
    for (uint32_t i = 0; i < 40; i++) {
        const sj_kept_block *kept = sj_quarantine_find_object((uint64_t)(uintptr_t)objects[i]);
        assert_true((kept != NULL) == (i >= 24));
    }
}

/* A table that is longer than ours would be called beyond its end. */
static void objects_with_too_many_functions_are_freed_at_once(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t *object = make_object(&many);
        drop(object);
        assert_true(freed == i + 1 && last_freed == object);
        assert_int_equal(object[0], (uint64_t)(uintptr_t)many.functions);
    }
    assert_int_equal(atomic_load(&region->counters.not_quarantined), 2);
    fill_class(&few, SJ_VIRTUAL_FUNCTIONS);
    uint64_t *object = make_object(&few);
    drop(object);
    assert_true(freed == 2 && sj_virtual_is_table(object[0]));
    const uint64_t *functions = (const uint64_t *)(uintptr_t)object[0];
    assert_true(functions[SJ_VIRTUAL_FUNCTIONS - 1] - functions[0] ==
                16 * (SJ_VIRTUAL_FUNCTIONS - 1));
}

static void a_block_that_grows_moves_and_is_kept(void **state)
{
    (void)state;
    const uint64_t entry = atomic_load(&sj_custody_now->keeps_by[SJ_HEAD_REALLOC]);
    char *block = give_out(BLOCK_BYTES);
    memset(block, 'x', BLOCK_BYTES);
    char *moved = ((resize_function)entry)(block, BLOCK_BYTES + 1);
    assert_true(moved != NULL && moved != block && resized == 0 && freed == 0);
    assert_true(moved[0] == 'x' && moved[BLOCK_BYTES - 1] == 'x' && block[0] != 'x');
    block[8] = 'y'; /* by a pointer that was kept */
    assert_ptr_equal(((resize_function)entry)(moved, BLOCK_BYTES - 1), moved);
    assert_int_equal(resized, 1);
    sj_quarantine_end();
    assert_true(freed == 1 && atomic_load(&region->counters.uses) == 1);
}

static void forgetting_gives_the_records_back_once_it_has_ended(void **state)
{
    (void)state;
    void *object = make_object(&few);
    drop(object);
    sj_quarantine_forget(); /* it has not ended: what is kept stays known */
    assert_non_null(sj_quarantine_find_object((uint64_t)(uintptr_t)object));
    sj_quarantine_end();
    sj_quarantine_forget();
    assert_null(sj_quarantine_find_object((uint64_t)(uintptr_t)object));
    sj_quarantine_forget();                  /* nothing is left to give back */
    region->settings.quarantine_blocks = 32; /* a later agent's policy */
    sj_quarantine_begin(region);
    for (uint32_t i = 0; i < 33; i++) {
        drop(make_object(&few));
    }
    assert_int_equal(freed, 2); /* the one above, and the first of these */
}

/* How many blocks a quarantine of so many KiB holds, as long as there are records. */
static uint32_t room_for(uint32_t kib)
{
    region->settings.quarantine_kib = kib;
    return (uint32_t)((kib << 10) / (BLOCK_BYTES + sizeof(sj_kept_block)));
}

static void its_size_says_how_many_blocks_are_kept(void **state)
{
    (void)state;
    const uint32_t held = room_for(4);
    assert_true(held > 2 && held < region->settings.quarantine_blocks);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        drop(give_out(BLOCK_BYTES));
        assert_int_equal(freed, i < held ? 0 : i + 1 - held);
    }
    sj_quarantine_shrink();
    assert_int_equal(freed, BLOCKS - held / 2);
}

/* What the allocator has back takes no room: as many are kept as ever. */
static void resized_blocks_take_no_room(void **state)
{
    (void)state;
    const uint32_t held = room_for(4);
    const uint64_t entry = atomic_load(&sj_custody_now->keeps_by[SJ_HEAD_REALLOC]);
    void *block = give_out(BLOCK_BYTES);
    for (uint32_t i = 0; i < 2 * held; i++) {
        drop(block);
        assert_ptr_equal(((resize_function)entry)(block, 8), block);
    }
    for (uint32_t i = 0; i < held; i++) {
        drop(give_out(BLOCK_BYTES));
    }
    assert_int_equal(freed, 0);
}

static void the_budget_leaves_frees_out(void **state)
{
    (void)state;
    atomic_store(&region->quarantine_shift, 2);
    for (uint32_t i = 0; i < 16; i++) {
        drop(give_out(BLOCK_BYTES));
    }
    assert_int_equal(freed, 12);
    assert_int_equal(atomic_load(&region->counters.quarantined), 4);
}

static void a_stack_of_no_bytes_is_none(void **state)
{
    (void)state;
    sj_zombie_trace trace = {.stack_bytes = 1};
    trace.registers[SJ_TRACE_STACK_POINTER] = (uint64_t)(uintptr_t)&trace;
    sj_trace_stack(&trace, NULL, 0);
    assert_int_equal(trace.stack_bytes, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(what_is_let_go_has_no_table_of_the_agent),
                                       TEST(resizing_a_freed_object_gives_it_back_without_a_table),
                                       TEST(copies_are_not_taken_for_blocks),
                                       TEST(all_objects_that_are_kept_are_found),
                                       TEST(objects_with_too_many_functions_are_freed_at_once),
                                       TEST(a_block_that_grows_moves_and_is_kept),
                                       TEST(forgetting_gives_the_records_back_once_it_has_ended),
                                       TEST(its_size_says_how_many_blocks_are_kept),
                                       TEST(resized_blocks_take_no_room),
                                       TEST(the_budget_leaves_frees_out),
                                       TEST(a_stack_of_no_bytes_is_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
