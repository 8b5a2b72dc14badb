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

/* Rules end when their recorder has been dead for this long (in ns). */
#define GRACE_NS 500e6

_Static_assert((int)SJ_CHANGE_AT_LEAST == (int)SJ_VALUE_AT_LEAST &&
                   (int)SJ_CHANGE_EQUAL == (int)SJ_VALUE_EQUAL &&
                   (int)SJ_CHANGE_RULES == (int)SJ_VALUE_RULES &&
                   (int)SJ_CHANGE_RULE_WORDS == (int)SJ_RULE_WORDS,
               "comparisons and places are those of the rules");

struct sj_changes_table {
    pthread_mutex_t mutex; /* protects the list of functions, `changing` and `rewritten` */
    sj_changes *shared;
    sj_value_rules *rules;   /* list of rules; an index in it is an index in the table */
    sj_value_rules *current; /* list of the active rules; NULL: none */
    size_t current_count;    /* number of active rules; the list may have grown since */
    double ns_per_tick;
    sj_rule_set changing;  /* rules that change calls */
    sj_rule_set rewritten; /* rules for which Java code was rewritten */
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
        filled->is_caller = condition->subject == SJ_CONDITION_CALLER;
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

static void fill_table(sj_changes_table *table, sj_value_rules *rules, double ns_per_tick)
{
    sj_changes *shared = table->shared;
    table->rules = sj_value_rules_share(rules);
    table->current = sj_value_rules_share(rules);
    table->current_count = rules->count;
    table->ns_per_tick = ns_per_tick;
    for (size_t i = 0; i < rules->count; i++) {
        if (rules->items[i].changes) {
            fill_rule(&shared->rules[i], &rules->items[i], ns_per_tick);
            sj_rule_set_add(&table->changing, i);
        }
    }
    shared->recorder = (uint32_t)getpid();
    shared->grace_ticks = (uint64_t)(GRACE_NS / ns_per_tick);
    shared->magic = SJ_CHANGES_MAGIC;
    sj_changes_table_beat(table);
    atomic_store(&shared->is_on, 1);
}

/* Creates a zeroed file of the table's size and maps it. Returns 0, or an errno and leaves no file.
 * */
static int map_new(const char *path, sj_changes **shared)
{
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) {
        return errno;
    }
    /* Allocate the file's blocks: without disk space, writing through the mapping would raise
     * SIGBUS. */
    int reason = posix_fallocate(file, 0, sizeof(sj_changes));
    void *mapped = MAP_FAILED;
    if (reason == 0) {
        mapped = mmap(NULL, sizeof(sj_changes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        reason = mapped == MAP_FAILED ? errno : 0;
    }
    close(file);
    if (reason != 0) {
        unlink(path);
        return reason;
    }
    *shared = mapped;
    return 0;
}

static void free_table(sj_changes_table *table)
{
    if (table->shared != NULL) {
        munmap(table->shared, sizeof(*table->shared));
    }
    sj_value_rules_free(table->rules);
    sj_value_rules_free(table->current);
    pthread_mutex_destroy(&table->mutex);
    free(table);
}

/* Renames the file when it is complete, so that an agent that joins finds a complete table or none.
 * */
sj_status sj_changes_table_new(const char *runtime_directory, sj_value_rules *rules,
                               const char *program, double ns_per_tick, sj_changes_table **table,
                               sj_error *error)
{
    char final[PATH_MAX];
    char path[PATH_MAX];
    sj_changes_table *made = calloc(1, sizeof(*made));
    snprintf(final, sizeof(final), "%s/" SJ_CHANGES_NAME, runtime_directory);
    const int written =
        snprintf(path, sizeof(path), "%s/" SJ_CHANGES_NAME ".new", runtime_directory);
    if (made == NULL || written < 0 || (size_t)written >= sizeof(path)) {
        free(made);
        return sj_fail(error, SJ_ENOMEM, "cannot create the table of changes: out of memory");
    }
    pthread_mutex_init(&made->mutex, NULL);
    const int reason = map_new(path, &made->shared);
    if (reason != 0) {
        free_table(made);
        return sj_fail(error, SJ_EIO, "cannot write %s: %s", path, strerror(reason));
    }
    snprintf(made->shared->program, sizeof(made->shared->program), "%s", program);
    fill_table(made, rules, ns_per_tick);
    if (rename(path, final) != 0) {
        const int refused = errno;
        unlink(path);
        free_table(made);
        return sj_fail(error, SJ_EIO, "cannot rename %s: %s", path, strerror(refused));
    }
    *table = made;
    return SJ_OK;
}

void sj_changes_table_free(sj_changes_table *table)
{
    if (table == NULL) {
        return;
    }
    sj_changes_table_stop(table);
    free_table(table);
}

/* Returns the rules of a set that change calls. */
static sj_rule_set changing_of(const sj_changes_table *table, const sj_rule_set *rules)
{
    sj_rule_set changing = *rules;
    for (size_t i = 0; i < SJ_RULE_WORDS; i++) {
        changing.words[i] &= table->changing.words[i];
    }
    return changing;
}

static void set_rules(sj_changed_function *entry, const sj_rule_set *rules,
                      const sj_rule_set *callers)
{
    for (size_t i = 0; i < SJ_RULE_WORDS; i++) {
        atomic_store(&entry->rules[i], rules->words[i]);
        atomic_store(&entry->callers[i], callers->words[i]);
    }
}

void sj_changes_table_add(sj_changes_table *table, uint32_t function, const sj_rule_set *rules,
                          const sj_rule_set *callers, bool is_quiet, bool is_rewritten)
{
    uint32_t place = sj_changes_place(function);
    pthread_mutex_lock(&table->mutex);
    const sj_rule_set changing = changing_of(table, rules);
    const sj_rule_set changing_calls = changing_of(table, callers);
    const bool has_rules =
        !sj_rule_set_is_empty(&changing) || !sj_rule_set_is_empty(&changing_calls);
    if (is_rewritten) {
        sj_rule_set_add_all(&table->rewritten, &changing);
    }
    for (; has_rules && table->used < SJ_CHANGED_MOST;
         place = (place + 1) & (SJ_CHANGED_FUNCTIONS - 1)) {
        sj_changed_function *entry = &table->shared->functions[place];
        const uint32_t held = atomic_load(&entry->function);
        if (held == 0 || held == function) {
            set_rules(entry, &changing, &changing_calls);
            atomic_store(&entry->is_quiet, is_quiet ? 1 : 0);
            atomic_store(&entry->function, function); /* probes read it first */
            table->used += held == 0;
            break;
        }
    }
    pthread_mutex_unlock(&table->mutex);
}

void sj_changes_table_grow(sj_changes_table *table)
{
    pthread_mutex_lock(&table->mutex);
    for (size_t i = 0; i < table->rules->count; i++) {
        if (table->rules->items[i].changes) {
            sj_rule_set_add(&table->changing, i);
        }
    }
    pthread_mutex_unlock(&table->mutex);
}

/* True if the code that was rewritten for one rule can serve the other. */
static bool can_share_code(const sj_value_rule *left, const sj_value_rule *right)
{
    bool same = left->change.action == right->change.action &&
                left->change.target == right->change.target &&
                sj_value_rule_has_condition(left) == sj_value_rule_has_condition(right) &&
                left->condition_count == right->condition_count;
    for (size_t i = 0; same && i < left->condition_count; i++) {
        same = left->conditions[i].subject == right->conditions[i].subject &&
               left->conditions[i].descriptor == right->conditions[i].descriptor;
    }
    return same;
}

/* Finds the rule for index `index` of the table among the first `count` rules of a list. The n-th
 * of several equal rules corresponds to the n-th of them in the table. */
static const sj_value_rule *find_rule(const sj_changes_table *table, const sj_value_rules *rules,
                                      size_t count, size_t index, bool is_rewritten)
{
    const sj_value_rule *wanted = &table->rules->items[index];
    size_t before = 0;
    for (size_t i = 0; i < index; i++) {
        before += table->rules->items[i].changes &&
                  sj_value_rule_same_place(&table->rules->items[i], wanted);
    }
    for (size_t i = 0; i < count; i++) {
        if (rules->items[i].changes && sj_value_rule_same_place(&rules->items[i], wanted) &&
            before-- == 0) {
            return !is_rewritten || can_share_code(&rules->items[i], wanted) ? &rules->items[i]
                                                                             : NULL;
        }
    }
    return NULL;
}

/* Writes a rule while probes may read it. NULL: removes the rule. */
static void rewrite_rule(sj_change_rule *place, const sj_value_rule *rule, double ns_per_tick)
{
    const uint32_t version = atomic_load(&place->version);
    /* Probes read the version before and after a rule. They discard the rule if the versions differ
     * or are uneven. */
    atomic_store(&place->version, version + 1);
    atomic_thread_fence(memory_order_seq_cst);
    place->descriptor = 0;
    place->condition_count = 0;
    memset(place->conditions, 0, sizeof(place->conditions));
    atomic_store(&place->met, 0);
    atomic_store(&place->fired, 0);
    atomic_store(&place->unfit, 0);
    atomic_store(&place->is_between, 0);
    if (rule != NULL) {
        fill_rule(place, rule, ns_per_tick);
    }
    atomic_thread_fence(memory_order_seq_cst);
    atomic_store(&place->version, version + 2);
}

void sj_changes_table_replace(sj_changes_table *table, sj_value_rules *rules, size_t *unknown)
{
    const size_t count = rules != NULL ? rules->count : 0;
    size_t wanted = 0;
    pthread_mutex_lock(&table->mutex);
    const sj_rule_set rewritten = table->rewritten;
    pthread_mutex_unlock(&table->mutex);
    *unknown = 0;
    for (size_t i = 0; i < count; i++) {
        wanted += rules->items[i].changes ? 1 : 0;
    }
    SJ_EACH_RULE (i, &table->changing) {
        const bool is_rewritten = sj_rule_set_has(&rewritten, i);
        const sj_value_rule *before =
            find_rule(table, table->current, table->current_count, i, false);
        const sj_value_rule *rule = find_rule(table, rules, count, i, is_rewritten);
        const bool is_same = before != NULL && rule != NULL && sj_value_rule_same(before, rule);
        if (!is_same && before != rule) { /* an unchanged rule keeps its counts */
            rewrite_rule(&table->shared->rules[i], rule, table->ns_per_tick);
        }
        wanted -= rule != NULL ? 1 : 0;
    }
    *unknown = wanted;
    sj_value_rules_free(table->current);
    table->current = sj_value_rules_share(rules);
    table->current_count = count;
}

static void mark_rule(sj_change_rule *rule, const char *name, bool end)
{
    if (rule->begin_mark[0] == '\0') {
        return;
    }
    if (!end && strcmp(rule->begin_mark, name) == 0) {
        atomic_store(&rule->is_between, 1);
    } else if (strcmp(rule->end_mark, name) == 0) {
        atomic_store(&rule->is_between, 0);
    }
}

void sj_changes_table_mark(sj_changes_table *table, const char *name, bool end)
{
    pthread_mutex_lock(&table->mutex);
    SJ_EACH_RULE (i, &table->changing) {
        mark_rule(&table->shared->rules[i], name, end);
    }
    pthread_mutex_unlock(&table->mutex);
}

const char *sj_changes_table_program(const sj_changes_table *table)
{
    return table->shared->program;
}

uint64_t sj_changes_table_unfit(const sj_changes_table *table, const char *name)
{
    uint64_t calls = 0;
    for (size_t i = 0; i < table->rules->count; i++) {
        calls += strcmp(table->rules->items[i].name, name) == 0
                     ? atomic_load(&table->shared->rules[i].unfit)
                     : 0;
    }
    return calls;
}

void sj_changes_table_beat(sj_changes_table *table)
{
    atomic_store(&table->shared->alive_ticks, sj_clock_ticks());
}

void sj_changes_table_stop(sj_changes_table *table)
{
    atomic_store(&table->shared->is_on, 0);
}
