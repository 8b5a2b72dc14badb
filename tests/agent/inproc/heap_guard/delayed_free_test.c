/* Tests delayed frees with an allocator of this test: its blocks are the rows of an array. */
#include "agent/inproc/heap_guard/internal.h"
#include "agent/inproc/heap_guard/objects.h"
#include "agent/inproc/heap_guard/trace.h"
#include "agent/inproc/heap_guard/virtual_tables.h"

#include "tests/support/check.h"

#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 64, BLOCK_BYTES = 256, MANY_FUNCTIONS = SJ_VIRTUAL_FUNCTIONS + 1 };

typedef void (*free_function)(void *block);
typedef void *(*resize_function)(void *block, size_t bytes);

static __attribute__((aligned(16))) uint8_t blocks[BLOCKS][BLOCK_BYTES];
static uint32_t allocated; /* Blocks allocated so far, in order. */
static uint32_t freed;     /* Blocks freed so far. */
static uint32_t resized;   /* How often the allocator itself resized a block. */
static uint32_t
    foreign_sizes_asked; /* How often the size of an address was asked for that is not a block. */
static const void *last_freed;
static sj_zombie_region *region;

static bool is_block(const void *block)
{
    const uint64_t at = (uint64_t)((const uint8_t *)block - blocks[0]);
    return at < sizeof(blocks) && at % BLOCK_BYTES == 0;
}

static void count_free(void *block)
{
    assert_true(is_block(block));
    last_freed = block;
    freed++;
}

static size_t size_of(const void *block)
{
    foreign_sizes_asked += is_block(block) ? 0 : 1;
    return is_block(block) ? BLOCK_BYTES : SIZE_MAX;
}

static void *allocate(size_t bytes)
{
    (void)bytes;
    return allocated < BLOCKS ? blocks[allocated++] : NULL;
}

static void *resize(void *block, size_t bytes)
{
    (void)bytes;
    resized++;
    return block;
}

/* A class as compilers lay it out: a table with its type information before it. */
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
    return 1; /* The first module is the program. */
}

static int set_up(void **state)
{
    (void)state;
    region = calloc(1, sizeof(*region));
    sj_residue_now = calloc(1, sizeof(*sj_residue_now));
    assert_true(region != NULL && sj_residue_now != NULL);
    (void)dl_iterate_phdr(note_program, NULL);
    region->settings.delayed_blocks = 16;
    region->settings.delayed_kib = 1024;
    region->settings.vtables = 1;
    region->settings.reports_per_minute = 100;
    region->heap_entries[SJ_ENTRY_FREE] = 1;
    region->heap_entries[SJ_ENTRY_REALLOC] = 2;
    region->heap_entries[SJ_ENTRY_USABLE_SIZE] = 3;
    sj_heap_originals[SJ_ENTRY_FREE] = (uint64_t)(uintptr_t)count_free;
    sj_heap_originals[SJ_ENTRY_USABLE_SIZE] = (uint64_t)(uintptr_t)size_of;
    sj_heap_originals[SJ_ENTRY_MALLOC] = (uint64_t)(uintptr_t)allocate;
    sj_heap_originals[SJ_ENTRY_REALLOC] = (uint64_t)(uintptr_t)resize;
    atomic_store(&sj_residue_now->shared.is_whole, 1);
    atomic_store(&sj_zombie_region_now, region);
    allocated = freed = resized = foreign_sizes_asked = 0;
    fill_class(&few, 3);
    fill_class(&many, MANY_FUNCTIONS);
    sj_delayed_free_begin(region);
    return sj_delayed_free_is_on() ? 0 : 1;
}

static int tear_down(void **state)
{
    (void)state;
    sj_delayed_free_end();
    sj_delayed_free_deinit();
    atomic_store(&sj_zombie_region_now, NULL);
    free(sj_residue_now);
    sj_residue_now = NULL;
    free(region);
    return 0;
}

/* Frees a block as the patched entry of free does. */
static void free_by_entry(void *block)
{
    const uint64_t entry = atomic_load(&sj_residue_now->delay_handlers[SJ_ENTRY_FREE]);
    assert_true(entry != 0);
    ((free_function)entry)(block);
}

static void *make_object(class_table *table)
{
    uint64_t *object = allocate(BLOCK_BYTES);
    object[0] = (uint64_t)(uintptr_t)table->functions;
    return object;
}

static void a_freed_block_has_no_table_of_the_agent(void **state)
{
    (void)state;
    uint64_t *object = make_object(&few);
    free_by_entry(object);
    assert_true(freed == 0 && sj_virtual_is_table(object[0]));
    sj_delayed_free_end();
    assert_true(freed == 1 && last_freed == object);
    assert_false(sj_virtual_is_table(object[0]));
    assert_int_equal(atomic_load(&region->counters.uses), 0);
}

static void resizing_a_freed_object_removes_its_table(void **state)
{
    (void)state;
    uint64_t *object = make_object(&few);
    free_by_entry(object);
    const uint64_t entry = atomic_load(&sj_residue_now->delay_handlers[SJ_ENTRY_REALLOC]);
    assert_ptr_equal(((resize_function)entry)(object, 8), object);
    assert_false(sj_virtual_is_table(object[0]));
    assert_true(resized == 1 && freed == 0);
    assert_int_equal(atomic_load(&region->counters.uses), 1);
    sj_delayed_free_end();
    assert_int_equal(freed, 0); /* The allocator has the block again. */
}

/* The program may make a virtual call on a copy of the object. The allocator does not know the
 * copy. */
static void a_copy_of_an_object_is_not_a_block(void **state)
{
    (void)state;
    static __attribute__((aligned(16))) uint64_t copy[BLOCK_BYTES / sizeof(uint64_t)];
    uint64_t *object = make_object(&few);
    free_by_entry(object);
    memcpy(copy, object, sizeof(copy));
    assert_int_equal(sj_virtual_call_handler((uint64_t)(uintptr_t)copy, 0, 1, 0), 0);
    assert_true(foreign_sizes_asked == 0 && atomic_load(&region->counters.uses) == 0);
    assert_null(sj_delayed_free_find_object((uint64_t)(uintptr_t)copy));
    const sj_kept_block *kept = sj_delayed_free_find_object((uint64_t)(uintptr_t)object);
    assert_true(kept != NULL && kept->address == (uint64_t)(uintptr_t)object);
    assert_int_equal(sj_virtual_call_handler((uint64_t)(uintptr_t)object, 0, 1, 0), 0);
    assert_int_equal(atomic_load(&region->counters.uses), 1);
}

/* There are more objects than slots in the hash table. Each kept object is found, and no other
 * object. */
static void all_kept_objects_are_found(void **state)
{
    (void)state;
    void *objects[40];
    for (uint32_t i = 0; i < 40; i++) {
        objects[i] = make_object(&few);
        free_by_entry(objects[i]);
    }
    assert_int_equal(freed, 24);
    for (uint32_t i = 0; i < 40; i++) {
        const sj_kept_block *kept = sj_delayed_free_find_object((uint64_t)(uintptr_t)objects[i]);
        assert_true((kept != NULL) == (i >= 24));
    }
}

/* A call beyond the end of our table would harm the program. */
static void objects_with_too_many_functions_are_freed_at_once(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t *object = make_object(&many);
        free_by_entry(object);
        assert_true(freed == i + 1 && last_freed == object);
        assert_int_equal(object[0], (uint64_t)(uintptr_t)many.functions);
    }
    assert_int_equal(atomic_load(&region->counters.not_delayed), 2);
    fill_class(&few, SJ_VIRTUAL_FUNCTIONS);
    uint64_t *object = make_object(&few);
    free_by_entry(object);
    assert_true(freed == 2 && sj_virtual_is_table(object[0]));
    const uint64_t *functions = (const uint64_t *)(uintptr_t)object[0];
    assert_true(functions[SJ_VIRTUAL_FUNCTIONS - 1] - functions[0] ==
                16 * (SJ_VIRTUAL_FUNCTIONS - 1));
}

static void a_block_that_grows_moves_and_is_kept(void **state)
{
    (void)state;
    const uint64_t entry = atomic_load(&sj_residue_now->delay_handlers[SJ_ENTRY_REALLOC]);
    char *block = allocate(BLOCK_BYTES);
    memset(block, 'x', BLOCK_BYTES);
    char *moved = ((resize_function)entry)(block, BLOCK_BYTES + 1);
    assert_true(moved != NULL && moved != block && resized == 0 && freed == 0);
    assert_true(moved[0] == 'x' && moved[BLOCK_BYTES - 1] == 'x' && block[0] != 'x');
    block[8] = 'y'; /* The program writes through a pointer that it has kept. */
    assert_ptr_equal(((resize_function)entry)(moved, BLOCK_BYTES - 1), moved);
    assert_int_equal(resized, 1);
    sj_delayed_free_end();
    assert_true(freed == 1 && atomic_load(&region->counters.uses) == 1);
}

static void the_end_of_delaying_releases_the_records(void **state)
{
    (void)state;
    void *object = make_object(&few);
    free_by_entry(object);
    sj_delayed_free_deinit(); /* Delaying has not ended, so the blocks stay known. */
    assert_non_null(sj_delayed_free_find_object((uint64_t)(uintptr_t)object));
    sj_delayed_free_end();
    sj_delayed_free_deinit();
    assert_null(sj_delayed_free_find_object((uint64_t)(uintptr_t)object));
    sj_delayed_free_deinit();             /* Nothing is left to release. */
    region->settings.delayed_blocks = 32; /* The policy of a later agent. */
    sj_delayed_free_begin(region);
    for (uint32_t i = 0; i < 33; i++) {
        free_by_entry(make_object(&few));
    }
    assert_int_equal(freed, 2); /* They are the object above and the first of these. */
}

/* Limits delayed frees to `kib` KiB. Returns how many blocks fit into that. */
static uint32_t capacity_of(uint32_t kib)
{
    region->settings.delayed_kib = kib;
    return (uint32_t)((kib << 10) / (BLOCK_BYTES + sizeof(sj_kept_block)));
}

static void the_limit_bounds_the_number_of_kept_blocks(void **state)
{
    (void)state;
    const uint32_t held = capacity_of(4);
    assert_true(held > 2 && held < region->settings.delayed_blocks);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        free_by_entry(allocate(BLOCK_BYTES));
        assert_int_equal(freed, i < held ? 0 : i + 1 - held);
    }
    sj_delayed_free_shrink();
    assert_int_equal(freed, BLOCKS - held / 2);
}

/* A resized block belongs to the allocator again, so it does not count for the limit. */
static void resized_blocks_do_not_use_the_limit(void **state)
{
    (void)state;
    const uint32_t held = capacity_of(4);
    const uint64_t entry = atomic_load(&sj_residue_now->delay_handlers[SJ_ENTRY_REALLOC]);
    void *block = allocate(BLOCK_BYTES);
    for (uint32_t i = 0; i < 2 * held; i++) {
        free_by_entry(block);
        assert_ptr_equal(((resize_function)entry)(block, 8), block);
    }
    for (uint32_t i = 0; i < held; i++) {
        free_by_entry(allocate(BLOCK_BYTES));
    }
    assert_int_equal(freed, 0);
}

static void the_budget_delays_only_one_free_in_n(void **state)
{
    (void)state;
    atomic_store(&region->delayed_shift, 2);
    for (uint32_t i = 0; i < 16; i++) {
        free_by_entry(allocate(BLOCK_BYTES));
    }
    assert_int_equal(freed, 12);
    assert_int_equal(atomic_load(&region->counters.delayed), 4);
}

/* Runs while the thread owns a record. Ends with 0 if the child delays as many blocks as its limit
 * allows. */
static void fork_in_report(int signal)
{
    (void)signal;
    if (fork() != 0) {
        return;
    }
    sj_delayed_free_after_fork();
    const uint32_t before = freed;
    region->settings.on_use = SJ_ZOMBIE_CONTINUE;
    region->settings.delayed_kib = 1; /* Two blocks with their records, not three. */
    free_by_entry(allocate(BLOCK_BYTES));
    free_by_entry(allocate(BLOCK_BYTES));
    const uint32_t after_two = freed;
    free_by_entry(allocate(BLOCK_BYTES));
    _exit(after_two == before && freed == before + 1 ? 0 : 1);
}

static void a_child_does_not_count_blocks_that_threads_of_its_parent_owned(void **state)
{
    int status = -1;
    (void)state;
    const struct sigaction action = {.sa_handler = fork_in_report};
    struct sigaction before;
    region->settings.on_use = SJ_ZOMBIE_STOP;
    uint8_t *block = allocate(BLOCK_BYTES);
    free_by_entry(block);
    block[8] = 1;
    assert_int_equal(sigaction(SIGABRT, &action, &before), 0);
    sj_delayed_free_shrink(); /* Reports the write by SIGABRT, before it frees the block. */
    assert_int_equal(sigaction(SIGABRT, &before, NULL), 0);
    assert_true(wait(&status) > 0);
    assert_int_equal(status, 0);
}

static void a_stack_of_no_bytes_is_empty(void **state)
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
    const struct CMUnitTest tests[] = {
        TEST(a_freed_block_has_no_table_of_the_agent),
        TEST(resizing_a_freed_object_removes_its_table),
        TEST(a_copy_of_an_object_is_not_a_block),
        TEST(all_kept_objects_are_found),
        TEST(objects_with_too_many_functions_are_freed_at_once),
        TEST(a_block_that_grows_moves_and_is_kept),
        TEST(the_end_of_delaying_releases_the_records),
        TEST(the_limit_bounds_the_number_of_kept_blocks),
        TEST(resized_blocks_do_not_use_the_limit),
        TEST(the_budget_delays_only_one_free_in_n),
        TEST(a_child_does_not_count_blocks_that_threads_of_its_parent_owned),
        TEST(a_stack_of_no_bytes_is_empty)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
