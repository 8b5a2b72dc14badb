/* Reads arbitrary bytes as the index of a package of split debug data. The result must be in order,
 * and each unit must be found by its id. */
#include "agent/objfile/split_index.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sj_split_index index = {0};
    const sj_slice bytes = {.data = data, .size = size};
    if (sj_split_index_read(bytes, &index) == SJ_OK) {
        for (size_t i = 0; i < index.count; i++) {
            const sj_split_unit *found = sj_split_index_find(&index, index.units[i].id);
            if (found == NULL || found->id != index.units[i].id ||
                (i != 0 && index.units[i - 1].id > index.units[i].id)) {
                abort();
            }
        }
    }
    if (index.count > size) {
        abort();
    }
    sj_split_index_deinit(&index);
    return 0;
}
