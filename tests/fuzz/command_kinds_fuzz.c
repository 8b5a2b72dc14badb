/* Parses commands as they arrive over HTTP. Each is accepted, or refused with a sentence. */
#include "collector-server/fleet/command_kinds.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *object = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    const char *name = json_string_value(json_object_get(object, "kind"));
    const json_t *arguments = json_object_get(object, "arguments");
    sj_error error = {0};
    if (name != NULL) {
        const sj_command_kind *kind = sj_command_kind_find(name, &error);
        if ((kind == NULL) != (error.text[0] != '\0')) {
            abort();
        }
        if (kind != NULL && arguments != NULL) {
            const sj_status status = sj_command_kind_check(kind, arguments, &error);
            if ((status == SJ_OK) != (error.text[0] == '\0')) {
                abort();
            }
        }
    }
    json_decref(object);
    return 0;
}
