#include "agent/daemon/orders.h"

#include "agent/daemon/device_policies.h"
#include "agent/daemon/order_kinds.h"

#include <string.h>

sj_status sj_order_run_policies(const sj_order *order, json_t **result, sj_error *error)
{
    SJ_TRY(sj_device_policies_keep(order->arguments, error));
    *result = json_pack("{sI}", "rules",
                        (json_int_t)json_array_size(json_object_get(order->arguments, "rules")));
    return SJ_OK;
}

typedef struct order_kind {
    const char *name;
    sj_order_run_fn run;
} order_kind;

static const order_kind kinds[] = {
    {"status", sj_order_run_status},
    {"apps", sj_order_run_apps},
    {"ps", sj_order_run_ps},
    {"sessions", sj_order_run_sessions},
    {"doctor", sj_order_run_doctor},
    {"launch", sj_order_run_launch},
    {"attach", sj_order_run_attach},
    {"detach", sj_order_run_detach},
    {"stop", sj_order_run_stop},
    {"mark", sj_order_run_mark},
    {"dump", sj_order_run_dump},
    {"write", sj_order_run_write},
    {"policies", sj_order_run_policies},
};

sj_status sj_order_run(const sj_order_context *context, const char *kind, const char *arguments,
                       int timeout_ms, json_t **result, sj_error *error)
{
    json_error_t problem;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, kind) != 0) {
            continue;
        }
        json_t *object = json_loads(arguments, JSON_REJECT_DUPLICATES, &problem);
        if (!json_is_object(object)) {
            json_decref(object);
            return sj_fail(error, SJ_EINVAL, "the command's arguments are no JSON object");
        }
        const sj_order order = {.context = context, .arguments = object, .timeout_ms = timeout_ms};
        const sj_status status = kinds[i].run(&order, result, error);
        json_decref(object);
        return status;
    }
    return sj_fail(error, SJ_EUNSUPPORTED, "this device (version %s) knows no command \"%.32s\"",
                   SJ_VERSION, kind);
}
