#include "agent/inproc/heap_guard/delayed_free.h"
#include "agent/inproc/heap_guard/internal.h"
#include "agent/inproc/heap_guard/trace.h"
#include "agent/inproc/heap_guard/virtual_tables.h"
#include "agent/inproc/recorder/recorder.h"

#include <string.h>

/* Writes the mangled name of a type. Omits a leading '*', by which GCC marks names that it compares
 * by address. */
static void write_type(sj_zombie_object *target, uint64_t type)
{
    sj_type_head head;
    char *name = target->class_name;
    name[0] = '\0';
    if (!sj_virtual_read(type, &head, sizeof(head))) {
        return;
    }
    for (uint32_t i = 0; i + 1 < SJ_ZOMBIE_CLASS_BYTES; i++) {
        if (!sj_virtual_read(head.name + i, name + i, 1) || name[i] == '\0') {
            name[i] = '\0';
            break;
        }
        name[i + 1] = '\0';
    }
    if (name[0] == '*') {
        memmove(name, name + 1, strnlen(name, SJ_ZOMBIE_CLASS_BYTES - 1));
    }
}

static __attribute__((noinline)) void
report_call(sj_kept_block *kept, const sj_virtual_table *table, uint64_t number, uint64_t site)
{
    sj_zombie_trace here = {0};
    sj_trace_here(&here);
    sj_zombie_report *report = sj_report_begin(site, SJ_ZOMBIE_VIRTUAL_CALL);
    if (report == NULL) {
        return;
    }
    sj_report_fill_kept(report, kept, SJ_ZOMBIE_VIRTUAL_CALL, kept->address);
    write_type(&report->object, kept->type);
    report->place = (uint32_t)number;
    if (!sj_virtual_read((atomic_load(&table->key) & SJ_VIRTUAL_ADDRESS) +
                             number * sizeof(report->code),
                         &report->code, sizeof(report->code))) {
        report->code = 0;
    }
    sj_report_finish(report, &here);
}

/* The second argument is the object if the function returns its result in memory. Then the first
 * argument is the address of the result, and this function returns it. */
uint64_t sj_virtual_call_handler(uint64_t first, uint64_t second, uint64_t number, uint64_t site)
{
    const sj_zombie_region *region = atomic_load(&sj_zombie_region_now);
    const sj_virtual_table *table = sj_virtual_table_of(first);
    const bool is_second = table == NULL;
    table = is_second ? sj_virtual_table_of(second) : table;
    const uint64_t object = is_second ? second : first;
    sj_kept_block *kept =
        table != NULL ? sj_delayed_free_find_object(object + (uint64_t)table->offset_to_top) : NULL;
    if (kept != NULL && region != NULL) {
        if (atomic_exchange(&kept->is_reported, 1) == 0) {
            report_call(kept, table, number, site);
        }
        sj_report_stop_if((sj_zombie_on_use)region->settings.on_use);
    }
    return is_second ? first : 0;
}
