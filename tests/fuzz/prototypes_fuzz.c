/* Reads arbitrary bytes as a file of prototypes. Each line is a name and a signature that a policy
 * accepts. Otherwise the file is refused with the number of the wrong line. */
#include "agent/policy/prototypes.h"
#include "agent/policy/value_signature.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool is_in_order(const sj_signature *signature)
{
    uint32_t before = 0;
    for (size_t i = 0; i < signature->count; i++) {
        const uint32_t position = sj_value_position(signature->values[i].source);
        const bool is_result = position == SJ_VALUE_RESULT;
        if (!(is_result ? i + 1 == signature->count : position > before)) {
            return false;
        }
        before = position;
    }
    return true;
}

/* Checks the signature for both machines: a value that one has in registers may be on the stack of
 * the other. */
static sj_status check_prototype(void *context, const char *name, const char *text)
{
    size_t *count = context;
    sj_signature signature;
    sj_error error = {0};
    must(name[0] != '\0' && strlen(name) + strlen(text) < SJ_PROTOTYPE_BYTES);
    must(sj_signature_parse(text, SJ_CONVENTION_NATIVE, false, &signature, &error) == SJ_OK);
    must(signature.count != 0 && is_in_order(&signature));
    for (int convention = SJ_CONVENTION_SYSTEM_V; convention <= SJ_CONVENTION_AAPCS64;
         convention++) {
        sj_error reason = {0};
        const sj_status status =
            sj_signature_parse(text, (sj_calling_convention)convention, true, &signature, &reason);
        must((status == SJ_OK) == (reason.text[0] == '\0'));
    }
    ++*count;
    return SJ_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sj_error error = {0};
    size_t count = 0;
    const sj_status status =
        sj_prototypes_read((const char *)data, size, "fuzz", &count, check_prototype, &error);
    must(status == SJ_OK || (status == SJ_EINVAL && strncmp(error.text, "fuzz:", 5) == 0));
    must(count <= size);
    return 0;
}
