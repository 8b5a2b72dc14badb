/* The statement behind `sojourn devices`. */
#ifndef SJ_COLLECTOR_SERVER_CLI_DEVICE_LIST_H
#define SJ_COLLECTOR_SERVER_CLI_DEVICE_LIST_H

/* Lists the devices of a database. The cost grows with the number of devices plus the number of
 * token events, not with their product. */
extern const char sj_device_list_sql[];

#endif
