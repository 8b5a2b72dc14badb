#include "agent/registry/changes_table.h"

#include "agent/host/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Rules of a recorder that was killed end after this. */
#define GRACE_NS 500e6

_Static_assert((int)SJ_CHANGE_AT_LEAST == (int)SJ_VALUE_AT_LEAST &&
                   (int)SJ_CHANGE_EQUAL == (int)SJ_VALUE_EQUAL &&
                   (int)SJ_CHANGE_RULES == (int)SJ_VALUE_RULES,
               "comparisons and places are those of the rules");

struct sj_changes_table {
    pthread_mutex_t mutex; /* guards the list of functions */
    sj_changes *shared;
    uint32_t changing; /* bits: rules that change something */
    uint32_t used;
};

static void fill_conditions(sj_change_rule *to, const sj_value_rule *from)
{
    _Static_assert((int)SJ_CHANGE_CONDITIONS == (int)SJ_VALUE_CONDITIONS, "room for all");
    for (size_t i = 0; i < from->condition_count; i++) {
        const sj_value_condition *condition = &from->conditions[i];
        sj_change_condition *filled = &to->conditions[to->condition_count++];
        filled->descriptor = condition->descriptor;
        filled->comparison = (uint8_t)condition->comparison;
        filled->operand = condition->bits;
        if (condition->subject == SJ_CONDITION_THREAD) {
            snprintf(filled->thread, sizeof(filled->thread), "%s", condition->text.text);
        }
    }
}

static void fill_rule(sj_change_rule *to, const sj_value_rule *from, double ns_per_tick)
{
    const sj_value_change *change = &from->change;
    fill_conditions(to, from);
    to->until_ticks = change->lasts_ns != 0
                          ? sj_clock_ticks() + (uint64_t)((double)change->lasts_ns / ns_per_tick)
                          : 0;
    memcpy(to->data, change->data, sizeof(to->data));
    to->data_bytes = change->data_bytes;
    memcpy(to->begin_mark, change->begin_mark, sizeof(to->begin_mark));
    memcpy(to->end_mark, change->end_mark, sizeof(to->end_mark));
    to->descriptor = from->descriptor;
    to->target = from->change.target;
    to->comparison = (uint8_t)from->own.comparison;
    to->action = (uint8_t)from->change.action;
    to->error = from->change.error;
    to->operand = from->own.bits;
    to->bits = from->change.bits;
    to->delay_ns = from->change.delay_ns;
    to->from = from->change.from;
    to->times = from->change.times;
    to->one_in = from->change.one_in;
    memcpy(to->thrown, from->change.thrown, sizeof(to->thrown));
}

static void fill(sj_changes_table *table, const sj_value_rules *rules, double ns_per_tick)
{
    sj_changes *shared = table->shared;
    for (size_t i = 0; i < rules->count; i++) {
        if (rules->items[i].changes) {
            fill_rule(&shared->rules[i], &rules->items[i], ns_per_tick);
            table->changing |= UINT32_C(1) << i;
        }
    }
    shared->recorder = (uint32_t)getpid();
    shared->grace_ticks = (uint64_t)(GRACE_NS / ns_per_tick);
    shared->magic = SJ_CHANGES_MAGIC;
    sj_changes_table_beat(table);
    atomic_store(&shared->is_on, 1);
}

sj_status sj_changes_table_new(const char *runtime_directory, const sj_value_rules *rules,
                               const char *program, double ns_per_tick, sj_changes_table **table,
                               sj_error *error)
{
    char path[PATH_MAX];
    sj_changes_table *made = calloc(1, sizeof(*made));
    const int written = snprintf(path, sizeof(path), "%s/" SJ_CHANGES_NAME, runtime_directory);
    if (made == NULL || written < 0 || (size_t)written >= sizeof(path)) {
        free(made);
        return sj_fail(error, SJ_ENOMEM, "no room for the table of changes");
    }
    pthread_mutex_init(&made->mutex, NULL);
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    void *shared = MAP_FAILED;
    if (file >= 0 && ftruncate(file, sizeof(sj_changes)) == 0) {
        shared = mmap(NULL, sizeof(sj_changes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    const int reason = errno;
    if (file >= 0) {
        close(file);
    }
    if (shared == MAP_FAILED) {
        free(made);
        return sj_fail(error, SJ_EIO, "cannot write %s: %s", path, strerror(reason));
    }
    made->shared = shared;
    snprintf(made->shared->program, sizeof(made->shared->program), "%s", program);
    fill(made, rules, ns_per_tick);
    *table = made;
    return SJ_OK;
}

void sj_changes_table_free(sj_changes_table *table)
{
    if (table == NULL) {
        return;
    }
    sj_changes_table_stop(table);
    munmap(table->shared, sizeof(*table->shared));
    pthread_mutex_destroy(&table->mutex);
    free(table);
}

void sj_changes_table_add(sj_changes_table *table, uint32_t function, uint32_t rules)
{
    rules &= table->changing;
    uint32_t place = sj_changes_place(function);
    pthread_mutex_lock(&table->mutex);
    for (; rules != 0 && table->used < SJ_CHANGED_MOST;
         place = (place + 1) & (SJ_CHANGED_FUNCTIONS - 1)) {
        sj_changed_function *entry = &table->shared->functions[place];
        const uint32_t held = atomic_load(&entry->function);
        if (held == 0 || held == function) {
            atomic_store(&entry->rules, rules);
            atomic_store(&entry->function, function); /* probes read it first */
            table->used += held == 0;
            break;
        }
    }
    pthread_mutex_unlock(&table->mutex);
}

void sj_changes_table_beat(sj_changes_table *table)
{
    atomic_store(&table->shared->alive_ticks, sj_clock_ticks());
}

void sj_changes_table_stop(sj_changes_table *table)
{
    atomic_store(&table->shared->is_on, 0);
}

bool sj_changes_table_is_on(const sj_changes_table *table)
{
    return atomic_load(&table->shared->is_on) != 0;
}
