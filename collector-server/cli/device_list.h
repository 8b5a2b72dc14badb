/* The statement behind `sojourn devices`. */
#ifndef SJ_COLLECTOR_SERVER_CLI_DEVICE_LIST_H
#define SJ_COLLECTOR_SERVER_CLI_DEVICE_LIST_H

/* sj_device_list_sql lists the devices of a database. Its work grows with the number of devices and
 * events of tokens, not with their product. */
extern const char sj_device_list_sql[];

#endif
