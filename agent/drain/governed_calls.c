#include "agent/drain/governed_calls.h"

void sj_governed_calls_count(sj_governed_process *governed, const sj_record *records, size_t count)
{
    uint64_t *calls = sj_governed_process_calls(governed);
    uint64_t counted = 0;
    uint32_t highest = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t tag = sj_record_tag(&records[i]);
        /* An ENTER is a tag of nothing but a function. */
        if (tag < SJ_GOVERNED_PROCESS_FUNCTIONS) {
            __atomic_store_n(&calls[tag], calls[tag] + 1, __ATOMIC_RELAXED);
            counted++;
            highest = tag > highest ? tag : highest;
        }
    }
    sj_governed_process_count(governed, counted, highest);
}
