/* Reads arbitrary bytes as a function table. An accepted table must have exactly as many entries as
 * it announces. */
#include "proto/wire/function_table.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sj_function_table table;
    sj_function_entry entry;
    uint64_t count = 0;
    if (sj_function_table_open((sj_slice){.data = data, .size = size}, &table) != SJ_OK) {
        return 0;
    }
    while (sj_function_table_next(&table, &entry)) {
        if (strlen(entry.name) >= size) {
            abort();
        }
        count++;
    }
    if (count != table.count || table.names.bad || table.sizes.bad || table.offsets.bad) {
        abort();
    }
    return 0;
}
