/* Reads arbitrary bytes as an assembly's file. Names may be wrong, but memory accesses must be
 * valid. */
#include "agent/runtimes/mono/key_token.h"
#include "agent/runtimes/mono/methods.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static sj_status check_method(void *context, uint32_t token, const char *name, bool has_code)
{
    uint32_t *last = context;
    (void)has_code;
    if (token != *last + 1 || strlen(name) >= SJ_MONO_NAME_BYTES || strpbrk(name, "\n\r") != NULL) {
        abort();
    }
    *last = token;
    return SJ_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sj_assembly assembly;
    uint32_t last = 0;
    if (sj_assembly_open((sj_slice){.data = data, .size = size}, &assembly) == SJ_OK &&
        sj_mono_each_method(&assembly, check_method, &last) == SJ_OK &&
        last != assembly.tables[SJ_TABLE_METHOD_DEF].rows) {
        abort();
    }
    (void)sj_assembly_is_framework(&assembly);
    return 0;
}
