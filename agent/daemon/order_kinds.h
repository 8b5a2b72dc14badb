/* The orders, each a function in one of the files order_*.c; listed in orders.c. */
#ifndef SJ_AGENT_DAEMON_ORDER_KINDS_H
#define SJ_AGENT_DAEMON_ORDER_KINDS_H

#include "agent/daemon/orders.h"

/* What an order is given; `arguments` is an object. */
typedef struct sj_order {
    const sj_order_context *context;
    const json_t *arguments;
    int timeout_ms;
} sj_order;

/* An order gives its result, released by the caller, or says in `error` why it could not be
 * carried out. */
typedef sj_status (*sj_order_run_fn)(const sj_order *order, json_t **result, sj_error *error);

/* order_tell.c: nothing changes */
SJ_MUST_CHECK sj_status sj_order_run_status(const sj_order *order, json_t **result,
                                            sj_error *error);
SJ_MUST_CHECK sj_status sj_order_run_apps(const sj_order *order, json_t **result, sj_error *error);
SJ_MUST_CHECK sj_status sj_order_run_doctor(const sj_order *order, json_t **result,
                                            sj_error *error);
SJ_MUST_CHECK sj_status sj_order_run_sessions(const sj_order *order, json_t **result,
                                              sj_error *error);
SJ_MUST_CHECK sj_status sj_order_run_ps(const sj_order *order, json_t **result, sj_error *error);

/* order_record.c: recordings begin and end */
SJ_MUST_CHECK sj_status sj_order_run_launch(const sj_order *order, json_t **result,
                                            sj_error *error);
SJ_MUST_CHECK sj_status sj_order_run_attach(const sj_order *order, json_t **result,
                                            sj_error *error);
SJ_MUST_CHECK sj_status sj_order_run_detach(const sj_order *order, json_t **result,
                                            sj_error *error);
SJ_MUST_CHECK sj_status sj_order_run_stop(const sj_order *order, json_t **result, sj_error *error);

/* order_live.c: recordings that go on are told something */
SJ_MUST_CHECK sj_status sj_order_run_mark(const sj_order *order, json_t **result, sj_error *error);
SJ_MUST_CHECK sj_status sj_order_run_dump(const sj_order *order, json_t **result, sj_error *error);

/* order_write.c, device_policies.h */
SJ_MUST_CHECK sj_status sj_order_run_write(const sj_order *order, json_t **result, sj_error *error);
SJ_MUST_CHECK sj_status sj_order_run_policies(const sj_order *order, json_t **result,
                                              sj_error *error);

/* sj_order_spool_bytes sums up what lies in the spool. */
uint64_t sj_order_spool_bytes(const sj_order_context *context);

#endif
