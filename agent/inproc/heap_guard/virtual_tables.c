/* Design notes
 *
 * In an object whose free is delayed, each pointer to a virtual table of the program is replaced by
 * a pointer to one of our tables. Our table has the same type information, so that typeid and
 * dynamic_cast still work. The program's table ends before the first word that does not point to
 * code. If it has more functions than ours, objects of this class are freed at once; this is
 * checked once per table. A block may begin with any number, so process_vm_readv reads all these
 * addresses without faulting. */
#include "agent/inproc/heap_guard/virtual_tables.h"

#include "agent/inproc/heap_guard/internal.h"
#include "agent/inproc/recorder/maps.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <sys/mman.h>
#include <sys/uio.h>

enum { TABLES = 512, PROBES = 8, STUB_BYTES = 16, WORD = sizeof(uint64_t) };

/* The two words before a virtual table, and its first function. */
typedef struct table_head {
    int64_t offset_to_top;
    uint64_t type;
    uint64_t function;
} table_head;

extern const uint8_t sj_arch_virtual_stubs[] __attribute__((visibility("hidden")));

static sj_virtual_table *tables;

void sj_virtual_tables_init(void)
{
    void *mapped = tables == NULL
                       ? sj_sys_map(NULL, TABLES * sizeof(*tables), PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                       : tables;
    tables = sj_sys_failed(mapped) ? NULL : mapped;
}

bool sj_virtual_read(uint64_t from, void *to, uint64_t bytes)
{
    const struct iovec to_part = {.iov_base = to, .iov_len = bytes};
    const struct iovec from_part = {.iov_base = (void *)(uintptr_t)from, .iov_len = bytes};
    return sj_recorder_may_call() &&
           SJ_SYS(SYS_process_vm_readv, sj_sys_pid(), &to_part, 1, &from_part, 1, 0) == (long)bytes;
}

static bool is_in_module(uint64_t address)
{
    bool is_known = false;
    (void)sj_objects_is_system(address, &is_known);
    return is_known;
}

static bool is_type_info(uint64_t type)
{
    sj_type_head head;
    return type % WORD == 0 && is_in_module(type) && sj_virtual_read(type, &head, sizeof(head)) &&
           is_in_module(head.table) && is_in_module(head.name);
}

/* True if `table` is a virtual table of the program. The word at `offset` in the object points to
 * it. After the destructor of a base class has run, that word may point to the table of the base
 * class, whose offset_to_top is 0. */
static bool is_program_table(uint64_t table, uint64_t offset, table_head *head)
{
    return table % WORD == 0 && is_in_module(table) &&
           sj_virtual_read(table - offsetof(table_head, function), head, sizeof(*head)) &&
           (head->offset_to_top == -(int64_t)offset || head->offset_to_top == 0) &&
           is_in_module(head->function) && is_type_info(head->type);
}

/* True if an address is in executable memory. `*known` caches the executable mapping found last. */
static bool is_code(uint64_t address, sj_mapping *known)
{
    char buffer[SJ_MAPS_LITTLE_BYTES];
    sj_maps maps;
    sj_mapping mapping = *known;
    bool is_found = address >= known->low && address < known->high;
    if (is_found || !sj_maps_open(&maps, buffer, sizeof(buffer))) {
        return is_found;
    }
    while (!is_found && sj_maps_next(&maps, &mapping)) {
        is_found = address >= mapping.low && address < mapping.high &&
                   (mapping.protection & PROT_EXEC) != 0;
    }
    sj_maps_close(&maps);
    *known = is_found ? mapping : *known;
    return is_found;
}

/* True if the first SJ_VIRTUAL_FUNCTIONS + 1 words of the table are addresses in modules (with
 * `with_code`: of code in modules). */
static bool is_filled(uint64_t table, bool with_code)
{
    sj_mapping known = {0};
    uint64_t function = 0;
    for (uint64_t i = 0; i <= SJ_VIRTUAL_FUNCTIONS; i++) {
        if (!sj_virtual_read(table + i * WORD, &function, WORD) || !is_in_module(function) ||
            (with_code && !is_code(function, &known))) {
            return false;
        }
    }
    return true;
}

/* True if a table has more functions than ours can have. Type information, which may follow a
 * table, also points into modules but not to code. The check for code is slow, so it comes second.
 */
static bool is_too_large(uint64_t table)
{
    return is_filled(table, false) && is_filled(table, true);
}

static void fill_table(sj_virtual_table *table, const table_head *head, uint64_t original,
                       uint64_t offset)
{
    if (is_too_large(original)) {
        atomic_store_explicit(&table->state, SJ_VIRTUAL_TOO_LARGE, memory_order_release);
        return;
    }
    table->offset_to_top = -(int64_t)offset;
    table->type = head->type;
    for (uint64_t i = 0; i < SJ_VIRTUAL_FUNCTIONS; i++) {
        table->functions[i] = (uint64_t)(uintptr_t)sj_arch_virtual_stubs + i * STUB_BYTES;
    }
    atomic_store_explicit(&table->state, SJ_VIRTUAL_READY, memory_order_release);
}

/* Returns our table for a virtual table of the program. Returns NULL if `original` is not a virtual
 * table, if another thread is filling our table, or if our tables are used up. */
static const sj_virtual_table *table_for(uint64_t original, uint64_t offset)
{
    /* The offset is in the key, because our table contains it. */
    const uint64_t key = original | offset << 48;
    const uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15) >> 48;
    for (uint64_t i = 0; i < PROBES; i++) {
        sj_virtual_table *table = &tables[(hash + i) % TABLES];
        uint64_t old_key = atomic_load(&table->key);
        table_head head;
        if (old_key == 0) {
            if (!is_program_table(original, offset, &head)) {
                return NULL;
            }
            if (atomic_compare_exchange_strong(&table->key, &old_key, key)) {
                fill_table(table, &head, original, offset);
                return table;
            }
        }
        if (old_key == key) {
            return atomic_load_explicit(&table->state, memory_order_acquire) != SJ_VIRTUAL_UNKNOWN
                       ? table
                       : NULL;
        }
    }
    return NULL;
}

bool sj_virtual_replace(uint64_t *words, uint64_t count, uint64_t *type, uint64_t *replaced)
{
    const sj_virtual_table *found[SJ_VIRTUAL_WORDS] = {NULL};
    *replaced = 0;
    for (uint64_t i = 0; tables != NULL && i < count && i < SJ_VIRTUAL_WORDS; i++) {
        found[i] = words[i] != 0 ? table_for(words[i], i * WORD) : NULL;
        if (found[i] == NULL && i == 0) {
            return true;
        }
        if (found[i] != NULL && atomic_load(&found[i]->state) == SJ_VIRTUAL_TOO_LARGE) {
            return false;
        }
    }
    for (uint64_t i = 0; i < SJ_VIRTUAL_WORDS; i++) {
        if (found[i] != NULL) {
            words[i] = (uint64_t)(uintptr_t)found[i]->functions;
            *replaced |= UINT64_C(1) << i;
        }
    }
    *type = found[0] != NULL ? found[0]->type : *type;
    return true;
}

bool sj_virtual_is_table(uint64_t word)
{
    const uint64_t first = (uint64_t)(uintptr_t)tables;
    const uint64_t at = word - first - offsetof(sj_virtual_table, functions);
    return tables != NULL && at < TABLES * sizeof(*tables) && at % sizeof(*tables) == 0;
}

const sj_virtual_table *sj_virtual_table_of(uint64_t object)
{
    uint64_t word = 0;
    return object % WORD == 0 && sj_virtual_read(object, &word, sizeof(word)) &&
                   sj_virtual_is_table(word)
               ? (const sj_virtual_table *)(uintptr_t)(word - offsetof(sj_virtual_table, functions))
               : NULL;
}
