#include "collector-server/store/store.h"

const sj_sink_kind sj_sqlite_sink = {
    .name = "SQLite",
    .open = sj_store_open,
    .close = sj_store_close,
    .begin = sj_store_begin,
    .apply = sj_store_apply,
    .commit = sj_store_commit,
    .rollback = sj_store_rollback,
    .check = sj_store_check,
    .maintain = sj_store_maintain,
    .recover = sj_store_recover,
    .get_counters = sj_store_get_counters,
};
