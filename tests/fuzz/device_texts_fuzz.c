/* Parses the texts that a device reads from files and receives from its collector. The first byte
 * selects the kind. Each is accepted, or refused with a sentence. */
#include "agent/daemon/apps.h"
#include "agent/daemon/device_policies.h"
#include "agent/daemon/enrolment.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    json_t *object = json_loadb((const char *)data + 1, size - 1, JSON_REJECT_DUPLICATES, NULL);
    sj_error error = {0};
    sj_status status = SJ_OK;
    if (object == NULL) {
        return 0;
    }
    switch (data[0] % 4) {
    case 0:
        status = sj_apps_check_catalogue(object, &error);
        break;
    case 1:
        status = sj_apps_check(object, &error);
        break;
    case 2:
        status = sj_invitation_check(object, &error);
        break;
    default:
        status = sj_device_policies_check(object, &error);
        break;
    }
    if ((status == SJ_OK) != (error.text[0] == '\0')) {
        abort();
    }
    json_decref(object);
    return 0;
}
