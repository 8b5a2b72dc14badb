/* Reads arbitrary bytes as a runtime's library in which tracing functions are searched, and as a
 * JVM's description of a class. */
#include "agent/runtimes/jvm/class_listing.h"
#include "agent/runtimes/jvm/tracer.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void find(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(size + 1);
    sj_elf elf;
    sj_tracer tracer;
    if (bytes == NULL) {
        return;
    }
    memcpy(bytes, data, size);
    if (sj_elf_adopt(bytes, size, &elf, NULL) == SJ_OK) {
        if (sj_tracer_find(&elf, &tracer) == SJ_OK && (tracer.entry == 0 || tracer.exit == 0)) {
            abort();
        }
        sj_elf_close(&elf);
    }
}

static void list(const uint8_t *data, size_t size)
{
    sj_class_file file;
    if (sj_class_listing_read((sj_slice){data, size}, &file, NULL) == SJ_OK &&
        file.name.size == 0) {
        abort();
    }
    sj_class_file_deinit(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    find(data, size);
    list(data, size);
    return 0;
}
