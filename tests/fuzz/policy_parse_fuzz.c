#include "agent/policy/policy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The document is read, or refused with a position inside it. A policy that was read must be
 * readable again. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sj_policy policy;
    sj_error error = {0};
    if (sj_policy_parse((const char *)data, size, "fuzz", &policy, &error) == SJ_OK) {
        sj_policy again;
        const sj_status status =
            sj_policy_parse(policy.document, strlen(policy.document), "again", &again, &error);
        if (status != SJ_OK || again.trigger_count != policy.trigger_count) {
            abort();
        }
        sj_policy_free(&again);
        sj_policy_free(&policy);
    } else if (strncmp(error.text, "fuzz:", 5) != 0) {
        abort();
    }
    return 0;
}
