/* The months of the rows of one insert. A table of the cluster has one partition for each month,
 * and ClickHouse refuses an insert into more than 100 partitions
 * (max_partitions_per_insert_block). */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_FORWARD_MONTHS_H
#define SJ_COLLECTOR_SERVER_FORWARD_FORWARD_MONTHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_FORWARD_MONTHS = 50 };

typedef struct sj_forward_months {
    uint32_t months[SJ_FORWARD_MONTHS]; /* without duplicates, not sorted */
    size_t count;
} sj_forward_months;

/* Adds the month of a day (days since 1970), unless it is in `months`. Returns false, without a
 * change, if there would be more than `most` months. `most` is at most SJ_FORWARD_MONTHS. */
bool sj_forward_months_add(sj_forward_months *months, uint16_t day, size_t most);

#endif
